// Scenarios of versions that are dropped.
#include "tests/crash/scenario_steps.h"
#include "tests/crash/scenarios.h"

namespace h5mirror::store {
namespace {

// Makes `count` more versions.
void Versions(Player& player, const std::string& file, int count, uint64_t pages) {
  player.Begin(file);
  for (int i = 0; i < count; ++i) {
    Overwrite(player, file, pages, 3);
    player.Commit(file);
  }
  player.End(file);
}

void PruneSingles(Player& player) {
  OneVersion(player, "x.h5", 12);
  Versions(player, "x.h5", 3, 12);
  player.Begin("x.h5");
  player.Truncate("x.h5", 5.5);
  player.Commit("x.h5");
  player.Write("x.h5", 9, 2);
  player.Commit("x.h5");
  player.End("x.h5");
  player.Prune("x.h5", {3});
  player.Prune("x.h5", {1});
  player.Prune("x.h5", {5});
  Versions(player, "x.h5", 2, 12);
  player.Prune("x.h5", {2, 4, 7});
  OneVersion(player, "x.h5", 4);
}

void PruneRuns(Player& player) {
  OneVersion(player, "x.h5", 14);
  Versions(player, "x.h5", 9, 14);
  player.Prune("x.h5", {2, 3, 4, 5, 6, 7});
  player.Begin("x.h5");
  player.Zeros("x.h5", 2, 6);
  player.Commit("x.h5");
  player.Truncate("x.h5", 8.5);
  player.Commit("x.h5");
  player.End("x.h5");
  player.Prune("x.h5", {1, 8, 9, 10, 11});
  OneVersion(player, "x.h5", 3);
}

// The order in which rows are moved decides what the oldest version reads: a newer row of the same
// page, or a longer row around it, must not come before.
void PruneOrder(Player& player) {
  OneVersion(player, "x.h5", 8);
  player.Begin("x.h5");
  const auto change = [&](double page, double count) {
    player.Write("x.h5", page, count);
    player.Commit("x.h5");
  };
  change(6, 1);
  change(2, 1);
  change(0, 4);
  change(2, 1);
  change(7, 1);
  player.End("x.h5");
  player.Prune("x.h5", {3});
  player.Prune("x.h5", {2, 4});
  OneVersion(player, "x.h5", 1);
}

// The oldest version is larger than the next ones, and has a hole where these grow.
void PruneSizes(Player& player) {
  player.Begin("x.h5");
  player.Write("x.h5", 0, 3);
  player.Truncate("x.h5", 12);
  player.Commit("x.h5");
  player.Truncate("x.h5", 3);
  player.Commit("x.h5");
  player.Write("x.h5", 0, 1);
  player.Commit("x.h5");
  player.Write("x.h5", 8, 2);
  player.Commit("x.h5");
  Overwrite(player, "x.h5", 10, 2);
  player.Commit("x.h5");
  player.End("x.h5");
  player.Prune("x.h5", {3});
  player.Prune("x.h5", {4});
  OneVersion(player, "x.h5", 1);
}

void PruneTags(Player& player) {
  OneVersion(player, "x.h5", 8);
  Versions(player, "x.h5", 5, 8);
  player.Tag("x.h5", 2, "kept");
  player.Tag("x.h5", 3, "dropped");
  player.Tag("x.h5", 3, "moved");
  player.Tag("x.h5", 5, "late");
  player.Tag("x.h5", 4, "moved");
  player.Prune("x.h5", {1, 3});
  player.Tag("x.h5", 5, "dropped");
  player.Prune("x.h5", {4});
  player.Tag("x.h5", 0, "moved");
  player.Close();
  player.Open();
  player.Prune("x.h5", {5}, 3);
  player.Untag("x.h5", "kept");
  player.Prune("x.h5", {2});
  OneVersion(player, "x.h5", 2);
}

// Generations are dropped with their last version.
void PruneGenerations(Player& player) {
  OneVersion(player, "x.h5", 9);
  Versions(player, "x.h5", 2, 9);
  OneVersion(player, "x.h5", 6.5, kNewGeneration);
  Versions(player, "x.h5", 1, 6);
  OneVersion(player, "x.h5", 3, kNewGeneration);
  player.Prune("x.h5", {1, 3});
  player.Prune("x.h5", {2});
  player.Rollback("x.h5", 4);
  player.WaitApplied("x.h5");
  player.Prune("x.h5", {4, 5, 6});
  OneVersion(player, "x.h5", 2);
}

void PruneCutShort(Player& player) {
  OneVersion(player, "x.h5", 10);
  Versions(player, "x.h5", 8, 10);
  const std::vector<VersionNumber> doomed{2, 3, 5, 6};
  for (int step_max : {1, 2, 4}) {
    player.Prune("x.h5", doomed, step_max);
    player.Close();
    player.Open();
  }
  Versions(player, "x.h5", 1, 10);
  player.Prune("x.h5", {1, 7}, 6);
  player.Rollback("x.h5", 4);
  player.Prune("x.h5", {8}, 8);
  OneVersion(player, "x.h5", 2);
  player.Prune("x.h5", {4});
}

// Unapplied rollbacks need bytes of segments that a prune would free.
void PruneAndRollback(Player& player) {
  OneVersion(player, "x.h5", 10);
  Versions(player, "x.h5", 5, 10);
  for (VersionNumber i = 1; i <= 3; ++i) {
    player.Begin("x.h5");
    Overwrite(player, "x.h5", 10, 3);
    player.CutAndGoOn("x.h5", BarrierKind::kCommit);
    player.End("x.h5");
    player.Rollback("x.h5", i);
    player.Prune("x.h5", {i, i + 3});
    player.Close(absl::ZeroDuration());
    player.Open();
    player.Prune("x.h5", {});
  }
  player.WaitApplied("x.h5");
}

// A prune in the middle of a session, and of readers that continue.
void PruneBesideAll(Player& player) {
  OneVersion(player, "x.h5", 12);
  Versions(player, "x.h5", 4, 12);
  for (VersionNumber version = 1; version <= 4; ++version) player.BeginExport("x.h5", version);
  player.ReadOn();
  player.Begin("x.h5");
  Overwrite(player, "x.h5", 12, 3);
  player.CutAndGoOn("x.h5", BarrierKind::kCommit);
  player.Prune("x.h5", {2, 4}, 5);
  Overwrite(player, "x.h5", 12, 3);
  player.CutAndGoOn("x.h5", BarrierKind::kTick);
  player.Prune("x.h5", {3});
  Overwrite(player, "x.h5", 12, 3);
  player.CutAndGoOn("x.h5", BarrierKind::kCommit);
  player.ReadOn();
  player.Prune("x.h5", {1, 5});
  player.FinishExport();
  player.Commit("x.h5");
  player.End("x.h5");
}

}  // namespace

std::vector<Scenario> PruneScenarios() {
  return {
      {"prune_singles", PruneSingles, {}},
      {"prune_runs", PruneRuns, kSmallPages},
      {"prune_order", PruneOrder, {}},
      {"prune_sizes", PruneSizes, {}},
      {"prune_tags", PruneTags, {}},
      {"prune_generations", PruneGenerations, {}},
      {"prune_cut_short", PruneCutShort, {}},
      {"prune_and_rollback", PruneAndRollback, {}, Pace::kConcurrent},
      {"prune_beside_all", PruneBesideAll, {}, Pace::kConcurrent},
  };
}

}  // namespace h5mirror::store
