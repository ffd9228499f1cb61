// Tells the receivers of the [[notify]] tables of events. For operators: docs/how-to/be-told.md.
#ifndef H5MIRROR_SERVER_NOTIFY_NOTIFIER_H_
#define H5MIRROR_SERVER_NOTIFY_NOTIFIER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "server/notify/receiver.h"

namespace h5mirror::server {

// Thread-safe.
class Notifier final : public EventSink {
 public:
  // Reads the secret files. `clock` must outlive this. If this machine lacks the means for a
  // receiver, logs that; the receiver's events wait. Errors: as Reload().
  static absl::StatusOr<std::unique_ptr<Notifier>> Open(std::vector<NotifyRule> rules, Clock& clock,
                                                        QueueLimits limits = {});
  ~Notifier() override { Stop(absl::ZeroDuration()); }

  void Notify(Event event) override;

  // These rules from now on, and secret files as they are now. Pending events of receivers that
  // stay are kept. Waits up to a few seconds for receivers that go. On an error all stays as it
  // was. Errors: as MakeDeliverer(), and kResourceExhausted: the system gives no more threads.
  absl::Status Reload(std::vector<NotifyRule> rules);

  NotifyCounts Counts() const;

  // Takes no more events, and waits up to `grace` for those that were never tried. Deliveries that
  // still hang are broken off, within seconds.
  void Stop(absl::Duration grace);

 private:
  using Receivers = std::vector<std::shared_ptr<Receiver>>;

  Notifier(Clock& clock, QueueLimits limits);
  Receivers TakeReceivers();
  absl::StatusOr<std::shared_ptr<Receiver>> Start(const NotifyRule& rule,
                                                  std::shared_ptr<const Deliverer> deliverer);
  // The receiver of `before` that `rule` names, which is taken out; null: there is none.
  static std::shared_ptr<Receiver> TakeOne(Receivers& before, const NotifyRule& rule);

  Clock& clock_;
  const QueueLimits limits_;
  const std::string host_;
  NotifyCounter counter_;
  mutable absl::Mutex mutex_;
  Receivers receivers_ ABSL_GUARDED_BY(mutex_);
};

// Reads the secret files. Errors: as MakeDeliverer().
absl::Status CheckSecrets(absl::Span<const NotifyRule> rules);

// For --check-config: this machine has the means of the rules. Errors: as CheckTools().
absl::Status CheckTools(absl::Span<const NotifyRule> rules);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_NOTIFY_NOTIFIER_H_
