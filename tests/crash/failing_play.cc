#include "tests/crash/failing_play.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "base/strings.h"
#include "tests/crash/check_store.h"

namespace h5mirror::store {
namespace {

// A fault that the background met may show only now: the failed file must be opened again. False:
// it waits to retry a full disk.
bool IsStill(Store& store, const Promises& promised, absl::Duration patience) {
  for (const auto& [name, file] : promised.files) {
    auto opened = store.OpenFile(name);
    if (!opened.ok()) continue;
    if (absl::IsDeadlineExceeded((*opened)->WaitApplied(patience))) return false;
  }
  return true;
}

absl::Status CheckLiving(Player& player, CountedEnv& env, const FailingPlay& play,
                         Promises* promised) {
  if (player.store() == nullptr || play.is_for_good) return absl::OkStatus();
  if (!IsStill(*player.store(), *promised, play.patience)) return absl::OkStatus();
  const absl::Status kept = CheckStore(*player.store(), env, play.choice, promised);
  if (!absl::StrContains(kept.message(), "must be opened again")) return kept;
  // A fault that the file met before may make it fail only now.
  return CheckStore(*player.store(), env, play.choice, promised);
}

}  // namespace

bool TellsWhy(const absl::Status& status, const char* reason) {
  if (status.ok() || absl::IsDeadlineExceeded(status)) return true;
  return !absl::IsDataLoss(status) && (absl::StrContains(status.message(), reason) ||
                                       absl::StrContains(status.message(), kNoSpace) ||
                                       absl::StrContains(status.message(), ".h5"));
}

PlayEnd PlayOnFailing(CountedEnv& env, const Scenario& scenario, const FailingPlay& play) {
  Player player(env, play.seed, scenario.options, Pace::kConcurrent);
  player.SetPatience(play.patience);
  player.Open();
  scenario.play(player);
  PlayEnd end;
  if (!TellsWhy(player.status(), play.reason)) {
    end.wrong = StrCat("told: ", player.status().ToString());
    return end;
  }
  play.lift();
  player.Abandon();
  end.promised = player.promises().At(SIZE_MAX);
  const absl::Status kept = CheckLiving(player, env, play, &end.promised);
  if (!kept.ok()) {
    end.wrong = StrCat(kept.ToString(), "\nin the store that met it in step \"",
                       player.steps().back().text, "\": ", player.status().ToString());
  }
  player.Leave();
  return end;
}

std::string PlayAll(uint64_t count, int at_once, const std::function<std::string(uint64_t)>& play) {
  std::atomic<uint64_t> next{0};
  std::atomic<bool> failed{false};
  absl::Mutex mutex;
  std::string wrong;
  auto play_some = [&] {
    for (uint64_t i = next++; i < count && !failed; i = next++) {
      const std::string found = play(i);
      if (found.empty()) continue;
      failed = true;
      absl::MutexLock lock(&mutex);
      if (wrong.empty()) wrong = found;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < at_once; ++i) threads.emplace_back(play_some);
  for (std::thread& thread : threads) thread.join();
  return wrong;
}

}  // namespace h5mirror::store
