// What scenarios are made of, beside the steps of player.h.
#ifndef H5MIRROR_TESTS_CRASH_SCENARIO_STEPS_H_
#define H5MIRROR_TESTS_CRASH_SCENARIO_STEPS_H_

#include <string>

#include "tests/crash/player.h"

namespace h5mirror::store {

inline constexpr SessionStart kNewGeneration = SessionStart::kNewGeneration;
inline constexpr PlayOptions kSmallPages{.page_size_bytes = 512};
inline constexpr PlayOptions kLargePages{.page_size_bytes = 4096};
inline constexpr PlayOptions kPlainPages{.page_compression = PageCompression::kNone};
// So little that every index of staged bytes goes to disk.
inline constexpr PlayOptions kNoMemory{.memory_max_bytes = 1};
// A cut lies in several segments of the stage.
inline constexpr PlayOptions kSmallSegments{.stage_segment_bytes = 2500};

// One version with all of `pages` new.
inline void OneVersion(Player& player, const std::string& file, double pages,
                       SessionStart start = SessionStart::kContinue) {
  player.Begin(file, start);
  player.Write(file, 0, pages);
  player.Commit(file);
  player.End(file);
}

// A version that changes `count` places below `pages`.
inline void Overwrite(Player& player, const std::string& file, uint64_t pages, int count) {
  for (int i = 0; i < count; ++i) {
    player.Write(file, static_cast<double>(player.Random(pages * 4)) / 4,
                 0.2 + static_cast<double>(player.Random(16)) / 10);
  }
}

}  // namespace h5mirror::store

#endif  // H5MIRROR_TESTS_CRASH_SCENARIO_STEPS_H_
