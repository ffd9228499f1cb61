// Strong entity tags, and the conditions of a request (RFC 9110, 8.8 and 13).
#ifndef H5MIRROR_SERVER_HTTP_PRECONDITIONS_H_
#define H5MIRROR_SERVER_HTTP_PRECONDITIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "onion_store/types.h"

namespace h5mirror::server {

// The state that an entity tag stands for: a version, or a cut of an open file.
struct EntityTag {
  enum class Kind : uint8_t { kVersion, kCut };
  Kind kind = Kind::kVersion;
  int64_t number = 0;
  store::FileId file_id{};  // another file may take the name, and reach the same number
  // kCut: of the server's start. After a crash the number of a lost cut is given again.
  uint64_t start_id = 0;

  bool operator==(const EntityTag&) const = default;
};

// With its quotes: "\"v12-<file id>\"", "\"c340-<file id>-<start id>\"".
std::string Format(const EntityTag& tag);
// nullopt: the tag is weak, or has another form.
std::optional<EntityTag> ParseEntityTag(std::string_view text);

// The texts of a list of entity tags, "W/" included; "*" stands for itself. Malformed ones are left
// out.
std::vector<std::string> SplitEntityTags(std::string_view list);

// "Tue, 03 Nov 2026 14:00:00 GMT".
std::string FormatHttpTime(absl::Time time);
// The three forms of RFC 9110, 5.6.7. nullopt: none of them.
std::optional<absl::Time> ParseHttpTime(std::string_view text);

// The headers of a request that carry conditions. nullopt: not there.
struct Conditions {
  std::optional<std::string> if_match = std::nullopt;
  std::optional<std::string> if_none_match = std::nullopt;
  std::optional<std::string> if_modified_since = std::nullopt;
  std::optional<std::string> if_unmodified_since = std::nullopt;
  std::optional<std::string> if_range = std::nullopt;
};

enum class Verdict : uint8_t {
  kProceed,
  kNotModified,  // 304
  kFailed,       // 412
};

// In the order of RFC 9110, 13.2.2, for a GET or HEAD of a state with that tag and time.
Verdict Decide(const Conditions& conditions, const EntityTag& tag, absl::Time modified);
// Whether a Range header counts: there is no If-Range, or it names the tag. A time in If-Range
// never counts: two versions may be of the same second.
bool CountsRange(const Conditions& conditions, const EntityTag& tag);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HTTP_PRECONDITIONS_H_
