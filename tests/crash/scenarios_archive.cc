// Scenarios of histories that go to an archive: docs/design/050-archive.md.
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

void ArchiveSingles(Player& player) {
  OneVersion(player, "d/x.h5", 10);
  Versions(player, "d/x.h5", 3, 10);
  player.Archive("d/x.h5");
  Versions(player, "d/x.h5", 2, 10);
  player.Archive("d/x.h5");
  player.Archive("d/x.h5");
  player.Close();
  player.Open();
  Versions(player, "d/x.h5", 2, 10);
  player.Archive("d/x.h5");
  OneVersion(player, "d/x.h5", 3);
}

// Each step of the job is once the last one.
void ArchiveCutShort(Player& player) {
  OneVersion(player, "x.h5", 8);
  for (int step_max = 1; step_max <= 10; ++step_max) {
    Versions(player, "x.h5", 1, 8);
    player.Archive("x.h5", step_max);
    player.Close();
    player.Open();
  }
  player.Archive("x.h5");
  OneVersion(player, "x.h5", 2);
}

void ArchiveAndPrune(Player& player) {
  OneVersion(player, "x.h5", 10);
  Versions(player, "x.h5", 3, 10);
  player.Archive("x.h5");
  Versions(player, "x.h5", 3, 10);
  player.Archive("x.h5", 7);
  player.Prune("x.h5", {1, 3});
  player.Archive("x.h5");
  player.Prune("x.h5", {2, 4}, 4);
  player.Close();
  player.Open();
  Versions(player, "x.h5", 2, 10);
  player.Prune("x.h5", {2, 4, 5, 6});
  player.Archive("x.h5", 9);
  player.Prune("x.h5", {7, 8});
  OneVersion(player, "x.h5", 2);
  player.Archive("x.h5");
}

// Rollbacks bring segments back, and their reverts name bytes there.
void ArchiveAndRollback(Player& player) {
  OneVersion(player, "x.h5", 8);
  Versions(player, "x.h5", 4, 8);
  for (VersionNumber i = 1; i <= 3; ++i) {
    player.Archive("x.h5");
    player.Begin("x.h5");
    Overwrite(player, "x.h5", 8, 3);
    player.CutAndGoOn("x.h5", BarrierKind::kCommit);
    player.End("x.h5");
    player.Rollback("x.h5", i);
    player.Archive("x.h5");
    player.Close(absl::ZeroDuration());
    player.Open();
    player.Archive("x.h5");
  }
  OneVersion(player, "x.h5", 4, kNewGeneration);
  player.Rollback("x.h5", 2);
  player.WaitApplied("x.h5");
  player.Archive("x.h5");
}

void ArchiveAndNames(Player& player) {
  OneVersion(player, "d/x.h5", 6);
  Versions(player, "d/x.h5", 3, 6);
  player.Archive("d/x.h5");
  player.Move("d/x.h5", "e/y.h5");
  Versions(player, "d/x.h5", 2, 6);
  player.Archive("d/x.h5", 6);
  player.Remove("d/x.h5");
  player.Undelete("d/x.h5", "z.h5");
  player.Archive("d/x.h5");
  player.Fork("d/x.h5", 2, "fork.h5");
  player.Archive("d/x.h5");
  OneVersion(player, "y.h5", 4);
  Versions(player, "y.h5", 2, 4);
  player.Archive("y.h5");
  player.Remove("y.h5");
  OneVersion(player, "d/x.h5", 2);
  player.Purge("y.h5");
}

// Copies of the file are in the archive, too: it can be rebuilt at each moment.
void ArchiveCopies(Player& player) {
  OneVersion(player, "d/x.h5", 8);
  player.ArchiveCopy("d/x.h5");
  for (int i = 0; i < 3; ++i) {
    Versions(player, "d/x.h5", 2, 8);
    player.ArchiveCopy("d/x.h5");
  }
  player.Prune("d/x.h5", {1, 3, 4});
  player.ArchiveCopy("d/x.h5");
  player.Close();
  player.Open();
  OneVersion(player, "d/x.h5", 3, kNewGeneration);
  player.ArchiveCopy("d/x.h5");
}

// Each step of a copy is once the last one.
void ArchiveCopiesCutShort(Player& player) {
  OneVersion(player, "x.h5", 4);
  for (int step_max = 1; step_max <= 24; ++step_max) {
    Versions(player, "x.h5", 1, 4);
    player.ArchiveCopy("x.h5", step_max);
    if (step_max % 4 == 0) player.Prune("x.h5", {step_max / 2});
  }
  player.ArchiveCopy("x.h5");
}

// In the middle of a session, and of readers that continue.
void ArchiveBesideAll(Player& player) {
  OneVersion(player, "x.h5", 12);
  Versions(player, "x.h5", 4, 12);
  for (VersionNumber version = 1; version <= 4; ++version) player.BeginExport("x.h5", version);
  player.ReadOn();
  player.Begin("x.h5");
  Overwrite(player, "x.h5", 12, 3);
  player.CutAndGoOn("x.h5", BarrierKind::kCommit);
  player.Archive("x.h5", 8);
  Overwrite(player, "x.h5", 12, 3);
  player.CutAndGoOn("x.h5", BarrierKind::kTick);
  player.Archive("x.h5");
  Overwrite(player, "x.h5", 12, 3);
  player.CutAndGoOn("x.h5", BarrierKind::kCommit);
  player.ReadOn();
  player.Prune("x.h5", {1, 2, 3});
  player.Archive("x.h5");
  player.FinishExport();
  player.Commit("x.h5");
  player.End("x.h5");
}

}  // namespace

std::vector<Scenario> ArchiveScenarios() {
  return {
      {"archive_singles", ArchiveSingles, {}},
      {"archive_cut_short", ArchiveCutShort, kSmallPages},
      {"archive_and_prune", ArchiveAndPrune, {}},
      {"archive_and_rollback", ArchiveAndRollback, kPlainPages, Pace::kConcurrent},
      {"archive_and_names", ArchiveAndNames, {}},
      {"archive_copies", ArchiveCopies, {}},
      {"archive_copies_cut_short", ArchiveCopiesCutShort, kSmallPages},
      {"archive_beside_all", ArchiveBesideAll, {}, Pace::kConcurrent},
  };
}

}  // namespace h5mirror::store
