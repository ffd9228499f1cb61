// Scenarios of writers: cuts, truncates, generations, closes; and the list of all scenarios.
#include "tests/crash/scenarios.h"

#include <iterator>

#include "tests/crash/scenario_steps.h"

namespace h5mirror::store {
namespace {

void FirstVersions(Player& player) {
  for (const char* file : {"a.h5", "d/b.h5", "d/e/c.h5"}) OneVersion(player, file, 5.5);
  OneVersion(player, "d/f.h5", 0.1);
  player.Close();
  player.Open();
  OneVersion(player, "d/e/c.h5", 6);
}

void Overwrites(Player& player) {
  OneVersion(player, "x.h5", 16);
  player.Begin("x.h5");
  for (int i = 0; i < 4; ++i) {
    Overwrite(player, "x.h5", 16, 4);
    player.Commit("x.h5");
  }
  player.Zeros("x.h5", 3.5, 4);
  player.Commit("x.h5");
  player.Commit("x.h5");  // Nothing has changed.
  player.End("x.h5");
}

// Each second cut goes over the larger one before, and on into the next segment.
void StageUsedAgain(Player& player) {
  OneVersion(player, "x.h5", 16);
  player.Begin("x.h5");
  for (int i = 0; i < 3; ++i) {
    player.Write("x.h5", 0, 2);  // with its cut a segment
    player.Sync("x.h5");
    player.Write("x.h5", 4, 0.5);
    player.Write("x.h5", 2, 2);  // no room beside the one before
    player.Sync("x.h5");
  }
  player.End("x.h5");
}

void TicksAndSyncs(Player& player) {
  player.Begin("x.h5");
  for (int i = 0; i < 3; ++i) {
    player.Write("x.h5", 3 * i, 3.3);
    player.Tick("x.h5");
    Overwrite(player, "x.h5", 3, 2);
    player.Tick("x.h5");
    player.Write("x.h5", 3 * i + 3, 0.5);
    player.Sync("x.h5");
    Overwrite(player, "x.h5", 3 * i + 3, 2);
    player.Sync("x.h5");
  }
  player.Commit("x.h5");
  Overwrite(player, "x.h5", 9, 2);
  player.Tick("x.h5");
  player.End("x.h5");
  player.WaitApplied("x.h5");
}

void LostWriters(Player& player) {
  for (int i = 0; i < 3; ++i) {
    player.Begin("x.h5");
    player.Write("x.h5", 4 * i, 4);
    if (i == 1) player.Sync("x.h5");
    player.Tick("x.h5");
    Overwrite(player, "x.h5", 4 * i + 4, 3);
    player.Write("x.h5", 4 * i + 5, 3);  // Never cut.
    player.End("x.h5", SessionEnd::kLost);
    player.WaitApplied("x.h5");
  }
  OneVersion(player, "x.h5", 2);
}

void TruncateAndRegrow(Player& player) {
  OneVersion(player, "x.h5", 18);
  player.Begin("x.h5");
  player.Truncate("x.h5", 5.5);
  player.Commit("x.h5");
  player.Write("x.h5", 12.2, 3);
  player.Commit("x.h5");
  player.Truncate("x.h5", 3);
  player.Write("x.h5", 7, 2.5);
  player.Tick("x.h5");
  player.Truncate("x.h5", 8);
  player.Write("x.h5", 16, 6);
  player.Commit("x.h5");
  player.Truncate("x.h5", 0);
  player.Commit("x.h5");
  player.Write("x.h5", 2, 1);
  player.Truncate("x.h5", 20.5);
  player.Commit("x.h5");
  player.End("x.h5");
}

// A cut becomes durable together with one that is shorter.
void ShrinksBeforeItIsDurable(Player& player) {
  OneVersion(player, "x.h5", 3);
  player.Begin("x.h5");
  player.Write("x.h5", 1.5, 18);
  player.Tick("x.h5");
  player.Truncate("x.h5", 5.5);
  player.Commit("x.h5");
  player.Write("x.h5", 4, 10);
  player.Tick("x.h5");
  player.Truncate("x.h5", 2);
  player.Sync("x.h5");
  player.End("x.h5");
}

void Growth(Player& player) {
  player.Begin("d/x.h5");
  for (int i = 1; i <= 5; ++i) {
    player.Write("d/x.h5", 4 * i - 4.5 + (i == 1 ? 0.5 : 0), 4);
    Overwrite(player, "d/x.h5", 4 * i, 1);
    if (i % 2) {
      player.Sync("d/x.h5");
    } else {
      player.Commit("d/x.h5");
    }
  }
  player.Write("d/x.h5", 30, 3);
  player.End("d/x.h5");  // The last write is dropped.
}

void Recreation(Player& player) {
  OneVersion(player, "x.h5", 10);
  OneVersion(player, "x.h5", 3);
  player.Begin("x.h5", kNewGeneration);
  player.Write("x.h5", 0, 6.5);
  player.Tick("x.h5");
  Overwrite(player, "x.h5", 7, 3);
  player.Commit("x.h5");
  Overwrite(player, "x.h5", 7, 2);
  player.Commit("x.h5");
  player.End("x.h5");
  player.Begin("x.h5", kNewGeneration);
  player.Write("x.h5", 0, 2);
  player.End("x.h5");  // Without a cut: nothing happened.
  player.Begin("x.h5", kNewGeneration);
  player.Write("x.h5", 1, 2);
  player.Sync("x.h5");
  Overwrite(player, "x.h5", 3, 2);
  player.End("x.h5", SessionEnd::kLost);
  player.WaitApplied("x.h5");
  OneVersion(player, "x.h5", 4);
}

// What a lost writer left in a head goes for good before the head becomes an old one.
void LostBeforeANewGeneration(Player& player) {
  OneVersion(player, "x.h5", 2);
  player.Begin("x.h5");
  player.Write("x.h5", 4.5, 3);
  player.End("x.h5", SessionEnd::kLost);
  player.Begin("x.h5", kNewGeneration);
  player.Write("x.h5", 0, 1.5);
  player.Commit("x.h5");
  player.End("x.h5");
}

void Spill(Player& player) {
  OneVersion(player, "x.h5", 14);
  player.Begin("x.h5");
  for (int i = 0; i < 3; ++i) {
    for (int tick = 0; tick < 3; ++tick) {
      Overwrite(player, "x.h5", 14, 4);
      player.Tick("x.h5");
    }
    if (i == 1) player.Truncate("x.h5", 6.5);
    player.Commit("x.h5");
  }
  player.End("x.h5");
  player.Rollback("x.h5", 1);
  player.WaitApplied("x.h5");
}

void Reopened(Player& player) {
  for (int i = 0; i < 4; ++i) {
    player.Begin("x.h5");
    player.Write("x.h5", 2 * i, 5);
    player.Commit("x.h5");
    Overwrite(player, "x.h5", 2 * i + 5, 2);
    player.Tick("x.h5");
    player.End("x.h5");
    player.Close();
    player.Open();
    player.Touch("x.h5");
  }
}

void ClosedBeforeApplied(Player& player) {
  OneVersion(player, "x.h5", 12);
  for (int i = 0; i < 3; ++i) {
    player.Begin("x.h5");
    Overwrite(player, "x.h5", 12, 4);
    player.CutAndGoOn("x.h5", BarrierKind::kCommit);
    Overwrite(player, "x.h5", 12, 4);
    player.CutAndGoOn("x.h5", BarrierKind::kCommit);
    if (i == 1) player.Truncate("x.h5", 6);
    player.CutAndGoOn("x.h5", BarrierKind::kSync);
    player.End("x.h5");
    player.Close(absl::ZeroDuration());
    player.Open();
    player.Rollback("x.h5", 1 + i);
  }
}

void PlainFiles(Player& player) {
  player.PutPlainFile("x.h5", 6);
  player.Touch("x.h5");
  player.WaitApplied("x.h5");
  player.Begin("x.h5");
  Overwrite(player, "x.h5", 6, 3);
  player.Commit("x.h5");
  player.End("x.h5");
  player.PutPlainFile("y.h5", 4);
  OneVersion(player, "y.h5", 3, kNewGeneration);
}

void SeveralWriters(Player& player) {
  const char* files[] = {"x.h5", "d/y.h5", "d/z.h5"};
  for (const char* file : files) player.Begin(file);
  for (int i = 0; i < 4; ++i) {
    for (const char* file : files) {
      Overwrite(player, file, 8, 3);
      player.CutAndGoOn(file, i % 2 ? BarrierKind::kCommit : BarrierKind::kSync);
    }
  }
  for (const char* file : files) player.End(file);
  for (const char* file : files) player.WaitApplied(file);
}

// More files than indexes may be open: each is closed and opened again between its transactions.
void ManyFiles(Player& player) {
  const char* files[] = {"a.h5", "b.h5", "c.h5", "d.h5", "e.h5", "f.h5"};
  for (const char* file : files) OneVersion(player, file, 4);
  for (const char* file : files) player.Begin(file);
  for (int i = 0; i < 2; ++i) {
    for (const char* file : files) {
      Overwrite(player, file, 4, 2);
      player.Commit(file);
    }
  }
  for (const char* file : files) player.End(file);
  for (const char* file : files) player.Rollback(file, 1);
  for (const char* file : files) player.WaitApplied(file);
}

void AnyLife(Player& player) {
  for (int i = 0; i < 60; ++i) player.RandomStep(player.Random(3) ? "x.h5" : "d/y.h5");
}

}  // namespace

std::vector<Scenario> WriterScenarios() {
  return {
      {"first_versions", FirstVersions, {}},
      {"overwrites", Overwrites, {}},
      {"overwrites_of_small_pages", Overwrites, kSmallPages},
      {"overwrites_in_small_segments", Overwrites, kSmallSegments},
      {"stage_used_again", StageUsedAgain, kSmallSegments},
      {"ticks_and_syncs", TicksAndSyncs, {}},
      {"lost_writers", LostWriters, {}},
      {"lost_writers_in_small_segments", LostWriters, kSmallSegments},
      {"truncate_and_regrow", TruncateAndRegrow, {}},
      {"truncate_large_pages", TruncateAndRegrow, kLargePages},
      {"shrinks_before_it_is_durable", ShrinksBeforeItIsDurable, {}},
      {"growth", Growth, {}},
      {"recreation", Recreation, {}},
      {"lost_before_a_new_generation", LostBeforeANewGeneration, {}},
      {"spill", Spill, kNoMemory},
      {"reopened", Reopened, {}},
      {"closed_before_applied", ClosedBeforeApplied, {}, Pace::kConcurrent},
      {"plain_files", PlainFiles, {}},
      {"several_writers", SeveralWriters, {}, Pace::kConcurrent},
      {"many_files", ManyFiles, kNoMemory},
      {"any_life", AnyLife, {}, Pace::kConcurrent},
      {"any_life_without_memory", AnyLife, kNoMemory, Pace::kConcurrent},
      {"any_life_in_small_segments", AnyLife, kSmallSegments, Pace::kConcurrent},
      {"any_life_of_small_pages", AnyLife, kSmallPages, Pace::kConcurrent},
      {"any_life_of_plain_pages", AnyLife, kPlainPages, Pace::kConcurrent},
  };
}

const std::vector<Scenario>& AllScenarios() {
  static const std::vector<Scenario>& all = *new std::vector<Scenario>([] {
    std::vector<Scenario> scenarios;
    for (auto* part : {WriterScenarios, HistoryScenarios, PruneScenarios, NameScenarios,
                       ForkScenarios, ArchiveScenarios}) {
      std::vector<Scenario> some = part();
      std::move(some.begin(), some.end(), std::back_inserter(scenarios));
    }
    return scenarios;
  }());
  return all;
}

std::vector<std::string> ScenarioNames() {
  std::vector<std::string> names;
  for (const Scenario& scenario : AllScenarios()) names.push_back(scenario.name);
  return names;
}

const Scenario* FindScenario(std::string_view name) {
  for (const Scenario& scenario : AllScenarios()) {
    if (name == scenario.name) return &scenario;
  }
  return nullptr;
}

}  // namespace h5mirror::store
