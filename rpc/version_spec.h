// A version in the form of the command line and of the driver's `version=`. Without the wire:
// version_request.h asks a server for one.
#ifndef H5MIRROR_RPC_VERSION_SPEC_H_
#define H5MIRROR_RPC_VERSION_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rpc/time_spec.h"

namespace h5mirror::rpc {

// A version as the user names it.
struct VersionSpec {
  // The number, from 1; 0: the fields below name the version.
  int64_t number = 0;
  // By its tag, if that is not empty; else the newest at or before a time, if there is one.
  std::string tag;
  std::optional<TimeSpec> at;
  // Else by how many versions are newer. 0 is `latest`.
  int64_t back = 0;
  bool operator==(const VersionSpec&) const = default;
};

// The forms of a version, for messages; kTimeForm follows.
inline constexpr char kVersionForm[] =
    "a version is a number from 1, latest, latest-K, tag:NAME, or a time ";

// "12", "latest", "latest-K", "tag:NAME" or a time (rpc/time_spec.h), of `zone` if it names none.
// kInvalidArgument quotes the text and shows the form.
absl::StatusOr<VersionSpec> ParseVersionSpec(std::string_view text, absl::TimeZone zone);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_VERSION_SPEC_H_
