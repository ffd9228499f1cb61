#include "cli/verbs/archive_text.h"

#include "base/human.h"
#include "base/strings.h"
#include "cli/output/text.h"
#include "rpc/archive_calls.h"

namespace h5mirror::tools {

ArchiveState ArchiveOf(const rpc::ClientOptions& server, const std::string& name) {
  const auto answer = rpc::GetArchive(server, name);
  if (!answer.ok() || !answer->has_archive()) return std::nullopt;
  return *answer;
}

std::string ArchiveText(const v1::GetArchiveResponse& archive, absl::TimeZone zone) {
  std::string text = archive.place().empty() ? "" : StrCat(archive.place(), ": ");
  if (!archive.error().empty()) {
    return StrCat(text, "fails since ", LocalTime(FromProto(archive.failing_since_time()), zone),
                  ": ", archive.error());
  }
  StrAppend(&text, archive.has_last_success_time() ? "answers" : "was not asked yet", "; ",
            archive.segments_archived(),
            archive.segments_archived() == 1 ? " segment, " : " segments, ",
            HumanBytes(static_cast<uint64_t>(archive.archived_bytes())),
            ", archived since the server started");
  return text;
}

std::string ArchivedText(const v1::GetArchiveResponse& archive) {
  if (!archive.has_file_bytes()) return "unknown: the archive does not answer";
  return StrCat(HumanBytes(static_cast<uint64_t>(archive.file_bytes())), " in ",
                archive.file_objects(), archive.file_objects() == 1 ? " object" : " objects");
}

Json ArchiveToJson(const v1::GetArchiveResponse& archive) {
  const auto time = [](bool is_set, const google::protobuf::Timestamp& timestamp) {
    return is_set ? TimeToJson(FromProto(timestamp)) : Json(nullptr);
  };
  return Json{
      {"place", archive.place()},
      {"error", archive.error()},
      {"failing_since", time(archive.has_failing_since_time(), archive.failing_since_time())},
      {"last_success", time(archive.has_last_success_time(), archive.last_success_time())},
      {"segments_archived", archive.segments_archived()},
      {"archived_bytes", archive.archived_bytes()},
      {"next_pass", time(archive.has_next_pass_time(), archive.next_pass_time())}};
}

}  // namespace h5mirror::tools
