// Times as people say them: "yesterday", "last monday 14:00", "2h ago".
#ifndef H5MIRROR_RPC_TIME_WORDS_H_
#define H5MIRROR_RPC_TIME_WORDS_H_

#include <optional>
#include <string_view>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace h5mirror::rpc {

// The meaning of the words: a moment, a day, or a time of a day.
struct SpokenTime {
  std::optional<absl::Time> moment = std::nullopt;
  absl::CivilDay day = {};
  std::optional<absl::CivilSecond> of_day = std::nullopt;
};

// The words of ParseTimeSpec() (rpc/time_spec.h); nullopt: these are none of them.
std::optional<SpokenTime> ParseTimeWords(std::string_view text, absl::TimeZone zone,
                                         absl::Time now);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_TIME_WORDS_H_
