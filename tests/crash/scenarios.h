// The lives of files that the crash tests go through. A new feature of the store adds a row.
#ifndef H5MIRROR_TESTS_CRASH_SCENARIOS_H_
#define H5MIRROR_TESTS_CRASH_SCENARIOS_H_

#include <string>
#include <string_view>
#include <vector>

#include "tests/crash/player.h"

namespace h5mirror::store {

struct Scenario {
  const char* name;
  void (*play)(Player& player);
  PlayOptions options;
  Pace pace = Pace::kInStep;
};

// One function per source: scenarios.cc, scenarios_history.cc, ...
std::vector<Scenario> WriterScenarios();
std::vector<Scenario> HistoryScenarios();
std::vector<Scenario> PruneScenarios();
std::vector<Scenario> NameScenarios();
std::vector<Scenario> ForkScenarios();
std::vector<Scenario> ArchiveScenarios();

const std::vector<Scenario>& AllScenarios();
std::vector<std::string> ScenarioNames();
// null: there is none of that name.
const Scenario* FindScenario(std::string_view name);

}  // namespace h5mirror::store

#endif  // H5MIRROR_TESTS_CRASH_SCENARIOS_H_
