#include "server/notify/notifier.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/time/clock.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(20);

using Deliverers = std::vector<std::shared_ptr<const Deliverer>>;

absl::StatusOr<Deliverers> MakeDeliverers(absl::Span<const NotifyRule> rules,
                                          const std::string& host) {
  Deliverers deliverers;
  for (const NotifyRule& rule : rules) {
    H5M_ASSIGN_OR_RETURN(std::unique_ptr<const Deliverer> one, MakeDeliverer(rule, host));
    deliverers.push_back(std::move(one));
  }
  return deliverers;
}

}  // namespace

Notifier::Notifier(Clock& clock, QueueLimits limits)
    : clock_(clock), limits_(limits), host_(HostName()) {}

absl::StatusOr<std::unique_ptr<Notifier>> Notifier::Open(std::vector<NotifyRule> rules,
                                                         Clock& clock, QueueLimits limits) {
  auto notifier = absl::WrapUnique(new Notifier(clock, limits));
  H5M_RETURN_IF_ERROR(notifier->Reload(std::move(rules)));
  return notifier;
}

void Notifier::Notify(Event event) {
  if (event.id.empty()) event.id = HexOf(RandomBytes16());
  event.time = clock_.Now();
  event.last_time = event.time;
  const absl::MutexLock lock(&mutex_);
  for (const auto& receiver : receivers_) receiver->Add(event);
}

std::shared_ptr<Receiver> Notifier::TakeOne(Receivers& before, const NotifyRule& rule) {
  const auto found =
      std::find_if(before.begin(), before.end(), [&](const auto& each) { return each->Is(rule); });
  if (found == before.end()) return nullptr;
  std::shared_ptr<Receiver> receiver = std::move(*found);
  before.erase(found);
  return receiver;
}

absl::StatusOr<std::shared_ptr<Receiver>> Notifier::Start(
    const NotifyRule& rule, std::shared_ptr<const Deliverer> deliverer) {
  try {
    return std::make_shared<Receiver>(rule, std::move(deliverer), clock_, counter_, limits_);
  } catch (const std::system_error& thrown) {  // As where TasksMax of the unit is reached.
    return absl::ResourceExhaustedError(
        StrCat(rule.source, ": [[notify]]: no thread for it: ", thrown.what()));
  }
}

absl::Status Notifier::Reload(std::vector<NotifyRule> rules) {
  H5M_ASSIGN_OR_RETURN(const Deliverers deliverers, MakeDeliverers(rules, host_));
  for (const NotifyRule& rule : rules) {
    // A server that does not start, or keeps old tables, for a missing program would be worse.
    if (const absl::Status tools = CheckTools(rule); !tools.ok()) {
      spdlog::error("notify: its events wait: {}", tools.ToString());
    }
  }
  Receivers after;  // Ends without the lock, on an error.
  Receivers gone;
  {
    const absl::MutexLock lock(&mutex_);
    gone = receivers_;
    for (size_t i = 0; i < rules.size(); ++i) {
      after.push_back(TakeOne(gone, rules[i]));
      if (after[i] != nullptr) continue;
      H5M_ASSIGN_OR_RETURN(after[i], Start(rules[i], deliverers[i]));
    }
    for (size_t i = 0; i < rules.size(); ++i) after[i]->Change(rules[i], deliverers[i]);
    receivers_ = std::move(after);
  }
  // All at once; the end of each waits for its thread.
  for (const auto& receiver : gone) {
    receiver->BeginStop();
    receiver->Cancel();
  }
  return absl::OkStatus();
}

NotifyCounts Notifier::Counts() const {
  NotifyCounts counts = counter_.Get();
  const absl::MutexLock lock(&mutex_);
  for (const auto& receiver : receivers_) counts.pending += receiver->pending();
  return counts;
}

Notifier::Receivers Notifier::TakeReceivers() {
  const absl::MutexLock lock(&mutex_);
  return std::exchange(receivers_, {});
}

void Notifier::Stop(absl::Duration grace) {
  const Receivers receivers = TakeReceivers();
  for (const auto& receiver : receivers) receiver->BeginStop();
  SystemClock clock;  // Real time, also where a test's stands still.
  const absl::Duration deadline = clock.Monotonic() + grace;
  const auto all_stopped = [&] {
    return std::all_of(receivers.begin(), receivers.end(),
                       [](const auto& each) { return each->has_stopped(); });
  };
  while (!all_stopped() && clock.Monotonic() < deadline) absl::SleepFor(kPause);
  for (const auto& receiver : receivers) receiver->Cancel();
}

absl::Status CheckSecrets(absl::Span<const NotifyRule> rules) {
  return MakeDeliverers(rules, "").status();
}

absl::Status CheckTools(absl::Span<const NotifyRule> rules) {
  for (const NotifyRule& rule : rules) H5M_RETURN_IF_ERROR(CheckTools(rule));
  return absl::OkStatus();
}

}  // namespace h5mirror::server
