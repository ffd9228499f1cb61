#include "h5perf/group.h"

#include "base/strings.h"

namespace h5mirror::pperf {

Group Group::Of(MPI_Comm comm, MPI_Info info) {
  Group group{comm, info};
  MPI_Comm_size(comm, &group.processes);
  MPI_Comm_rank(comm, &group.rank);
  return group;
}

Spread Group::SpreadOf(const Times& mine) const {
  Spread spread;
  MPI_Allreduce(mine.data(), spread.min.data(), kTimerCount, MPI_DOUBLE, MPI_MIN, comm);
  MPI_Allreduce(mine.data(), spread.max.data(), kTimerCount, MPI_DOUBLE, MPI_MAX, comm);
  return spread;
}

std::vector<std::string> Group::Share(std::vector<std::string> words) const {
  std::string bytes;
  for (const std::string& word : words) bytes += word + '\0';
  int size = static_cast<int>(bytes.size());
  MPI_Bcast(&size, 1, MPI_INT, 0, comm);
  bytes.resize(static_cast<size_t>(size));
  MPI_Bcast(bytes.data(), size, MPI_BYTE, 0, comm);
  words.clear();
  for (size_t at = 0; at < bytes.size();) {
    words.emplace_back(bytes.c_str() + at);
    at += words.back().size() + 1;
  }
  return words;
}

absl::Status CheckMpi(int code, const std::string& what) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING] = {};
  int size = 0;
  MPI_Error_string(code, text, &size);
  return absl::InternalError(
      ToAbsl(StrCat(what, ": ", std::string(text, static_cast<size_t>(size)))));
}

}  // namespace h5mirror::pperf
