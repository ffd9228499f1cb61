#include "cli/restore/restore_job.h"

#include <exception>

#include "absl/strings/escaping.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "nlohmann/json.hpp"

namespace h5mirror::tools {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FileToOpen, said, path, config)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RestoreJob, plugin_dir, source, target, makes_target, becomes,
                                   is_mirrored, path, as, attributes, replaces, dry_run, grows)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LostReferences, object, leads_to, count, why, removed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Split, object, other)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RestoreResult, kind, replaced, objects, links, attributes, bytes,
                                   made_groups, other_names, references, led_over, lost, old_kind,
                                   old_objects, old_bytes, split_count, splits, scaled_count,
                                   scaled)

namespace {

using nlohmann::json;

// CBOR keeps bytes that are not UTF-8, which JSON has no form for.
std::string Encode(const json& value) {
  std::string bytes;
  json::to_cbor(value, bytes);
  return absl::BytesToHexString(bytes);
}

template <typename T>
absl::StatusOr<T> Decode(std::string_view text, json* whole) {
  try {
    *whole = json::from_cbor(absl::HexStringToBytes(ToAbsl(text)));
    if constexpr (std::is_same_v<T, RestoreResult>) {
      if (whole->contains("error")) return RestoreResult{};
    }
    return whole->get<T>();
  } catch (const std::exception& error) {
    return absl::InternalError(StrCat(
        "restore: the CLI and its helper h5mirror-restore do not understand each other, install "
        "them together: ",
        error.what()));
  }
}

}  // namespace

std::string EncodeJob(const RestoreJob& job) { return Encode(job); }

std::string EncodeResult(const absl::StatusOr<RestoreResult>& result) {
  if (result.ok()) return Encode(*result);
  return Encode(json{{"error", static_cast<int>(result.status().code())},
                     {"message", std::string(result.status().message())}});
}

absl::StatusOr<RestoreJob> DecodeJob(std::string_view text) {
  json whole;
  return Decode<RestoreJob>(text, &whole);
}

absl::StatusOr<RestoreResult> DecodeResult(std::string_view text) {
  json whole;
  H5M_ASSIGN_OR_RETURN(RestoreResult result, Decode<RestoreResult>(text, &whole));
  if (!whole.contains("error")) return result;
  const auto code = static_cast<absl::StatusCode>(whole.value("error", 0));
  const std::string message = whole.value("message", "");
  if (code == absl::StatusCode::kOk) return absl::InternalError(message);
  return absl::Status(code, message);
}

}  // namespace h5mirror::tools
