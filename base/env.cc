#include "base/env.h"

#include <cstring>

#include "base/status_macros.h"

namespace h5mirror {

absl::Status ReadOrZeros(EnvFile& file, uint64_t offset, absl::Span<char> out) {
  if (out.empty()) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(size_t got, file.ReadAt(offset, out));
  std::memset(out.data() + got, 0, out.size() - got);
  return absl::OkStatus();
}

absl::Status EnvTree::SyncAll(absl::Span<const FileSync> files) {
  for (const FileSync& file : files) H5M_RETURN_IF_ERROR(file.Run());
  return absl::OkStatus();
}

absl::StatusOr<bool> EnvTree::Exists(std::string_view name) {
  const absl::Status status = Stat(name).status();
  if (absl::IsNotFound(status)) return false;
  H5M_RETURN_IF_ERROR(status);
  return true;
}

}  // namespace h5mirror
