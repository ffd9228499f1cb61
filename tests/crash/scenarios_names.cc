// Scenarios of files that are moved, removed and brought back.
#include "tests/crash/scenario_steps.h"
#include "tests/crash/scenarios.h"

namespace h5mirror::store {
namespace {

void Moves(Player& player) {
  OneVersion(player, "x.h5", 6);
  OneVersion(player, "x.h5", 2);
  player.Move("x.h5", "new/a.h5");
  OneVersion(player, "x.h5", 3);
  player.Tag("x.h5", 1, "first");
  player.Move("x.h5", "new/b/a.h5");
  player.Close();
  player.Open();
  OneVersion(player, "x.h5", 4, kNewGeneration);
  player.Rollback("x.h5", 1);
  player.Move("x.h5", "x.h5");
}

// Moved while cuts are not applied yet.
void MovesOfWhatIsNew(Player& player) {
  OneVersion(player, "x.h5", 6);
  for (const char* name : {"new/a.h5", "x.h5", "b.h5"}) {
    player.Begin("x.h5");
    Overwrite(player, "x.h5", 6, 3);
    player.CutAndGoOn("x.h5", BarrierKind::kCommit);
    Overwrite(player, "x.h5", 6, 2);
    player.CutAndGoOn("x.h5", BarrierKind::kTick);
    player.End("x.h5");
    player.Move("x.h5", name);
  }
  OneVersion(player, "x.h5", 3);
}

void Removals(Player& player) {
  OneVersion(player, "d/x.h5", 5);
  OneVersion(player, "d/x.h5", 2);
  OneVersion(player, "y.h5", 3);
  player.Remove("d/x.h5");
  player.Remove("y.h5");
  player.Undelete("d/x.h5", "d/x.h5");
  OneVersion(player, "d/x.h5", 3);
  player.Remove("d/x.h5");
  player.Close();
  player.Open();
  player.Undelete("d/x.h5", "e/z.h5");
  OneVersion(player, "d/x.h5", 4);
  player.Purge("y.h5");
}

// Purges right after the removal, so that no other move has made the removal's end durable.
void PurgesAtOnce(Player& player) {
  OneVersion(player, "d/x.h5", 4);
  OneVersion(player, "y.h5", 4);
  player.Remove("y.h5");
  player.Purge("y.h5");
  OneVersion(player, "d/x.h5", 2);
}

}  // namespace

std::vector<Scenario> NameScenarios() {
  return {
      {"moves", Moves, {}},
      {"moves_of_what_is_new", MovesOfWhatIsNew, {}, Pace::kConcurrent},
      {"removals", Removals, {}},
      {"purges_at_once", PurgesAtOnce, {}},
  };
}

}  // namespace h5mirror::store
