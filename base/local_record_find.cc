// Finds the record of a mirror, for files that have or had several mirrors.
#include <algorithm>
#include <system_error>
#include <utility>

#include "base/local_record.h"
#include "base/server_list.h"
#include "base/status_macros.h"

namespace h5mirror {
namespace {

constexpr std::string_view kPrefix = "client-";
constexpr std::string_view kSuffix = ".json";
// The writer of a record changes it a few times, then no more.
constexpr int kAttemptsMax = 5;

bool IsOf(const absl::StatusOr<LocalRecord>& record, std::string_view server) {
  return record.ok() && IsSameServer(record->server, server);
}

// The tags in the names of the records beside a file.
std::vector<std::string> TagsBeside(const std::filesystem::path& local_file) {
  std::vector<std::string> tags;
  std::error_code error;
  auto entry = std::filesystem::directory_iterator(RecordDirectory(local_file), error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().native();
    // The name of a new record, before it is renamed into place, goes on after the suffix.
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    tags.push_back(name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()));
  }
  return tags;
}

}  // namespace

absl::StatusOr<FoundRecord> FindRecordOf(const RecordPlace& place, std::string_view server) {
  absl::StatusOr<LocalRecord> own = ReadLocalRecord(place);
  if (IsOf(own, server)) return FoundRecord{place, *std::move(own)};
  const RecordPlace other(place.local_file, place.tag.empty() ? ServerTag(server) : "");
  absl::StatusOr<LocalRecord> taken_over = ReadLocalRecord(other);
  if (IsOf(taken_over, server)) return FoundRecord{other, *std::move(taken_over)};
  H5M_RETURN_IF_ERROR(own.status());
  return FoundRecord{place, *std::move(own)};
}

absl::StatusOr<FoundRecord> TakeRecordOf(const RecordPlace& place, std::string_view server) {
  for (int attempt = 1;; ++attempt) {
    H5M_ASSIGN_OR_RETURN(FoundRecord found, FindRecordOf(place, server));
    // In the other states nobody writes the record any more.
    const bool is_settled = found.record.state != RecordState::kBehind;
    if (is_settled || !IsSameServer(found.record.server, server)) return found;
    LocalRecord taken = found.record;
    taken.since += absl::Nanoseconds(1);
    const absl::StatusOr<bool> written = UpdateLocalRecord(found.place, taken, found.record.since);
    // If this process cannot write the record, its writer cannot either.
    if (!written.ok() || attempt == kAttemptsMax) return found;
    if (*written) return FoundRecord{found.place, std::move(taken)};
  }
}

absl::StatusOr<std::vector<FoundRecord>> FindLocalRecords(const std::filesystem::path& local_file) {
  std::vector<std::string> tags = TagsBeside(local_file);
  tags.insert(tags.begin(), "");
  std::vector<FoundRecord> found;
  for (const std::string& tag : tags) {
    const RecordPlace place(local_file, tag);
    absl::StatusOr<LocalRecord> record = ReadLocalRecord(place);
    if (absl::IsNotFound(record.status())) continue;
    H5M_RETURN_IF_ERROR(record.status());
    const auto same = std::find_if(found.begin(), found.end(), [&](const FoundRecord& known) {
      return IsSameServer(known.record.server, record->server);
    });
    if (same == found.end()) {
      found.push_back({place, *std::move(record)});
    } else if (record->since > same->record.since) {
      *same = {place, *std::move(record)};
    }
  }
  std::sort(found.begin(), found.end(), [](const FoundRecord& a, const FoundRecord& b) {
    if (a.place.tag.empty() != b.place.tag.empty()) return a.place.tag.empty();
    return a.record.server < b.record.server;
  });
  return found;
}

}  // namespace h5mirror
