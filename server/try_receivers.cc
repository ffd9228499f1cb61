#include "server/try_receivers.h"

#include <atomic>
#include <iostream>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "server/notify/notifier.h"

namespace h5mirror::server {
namespace {

Event TestEvent() {
  Event event{.kind = EventKind::kTest,
              .text = "a test, sent by `h5mirrord notify test`: nothing has happened"};
  event.id = HexOf(RandomBytes16());
  event.time = absl::Now();
  event.last_time = event.time;
  return event;
}

absl::Status TryOne(const NotifyRule& rule, const Event& event) {
  H5M_RETURN_IF_ERROR(CheckTools(rule));
  H5M_ASSIGN_OR_RETURN(const std::unique_ptr<const Deliverer> deliverer,
                       MakeDeliverer(rule, HostName()));
  const std::atomic<bool> cancel = false;
  return deliverer->Deliver(event, cancel);
}

std::vector<absl::Status> TryAll(absl::Span<const NotifyRule> rules) {
  const Event event = TestEvent();
  std::vector<absl::Status> results(rules.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < rules.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = TryOne(rules[i], event); });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

}  // namespace

ExitCode TryReceivers(const Config& config) {
  if (config.notify.empty()) {
    std::cerr << "h5mirrord: the configuration has no [[notify]] table\n";
    return ExitCode::kUsage;
  }
  if (const absl::Status status = CheckSecrets(config.notify); !status.ok()) {
    std::cerr << "h5mirrord: " << Printable(ToStd(status.message())) << "\n";
    return ExitCode::kUsage;
  }
  const std::vector<absl::Status> results = TryAll(config.notify);
  ExitCode code = ExitCode::kOk;
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string who =
        StrCat(Printable(config.notify[i].Label()), " (", Printable(config.notify[i].source), ")");
    if (results[i].ok()) {
      std::cout << "delivered  " << who << "\n";
      continue;
    }
    std::cout << "failed     " << who << ": " << Printable(ToStd(results[i].message())) << "\n";
    code = ExitCode::kFailed;
  }
  return code;
}

}  // namespace h5mirror::server
