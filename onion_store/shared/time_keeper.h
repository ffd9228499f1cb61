// The time of day that a store stamps with. A machine's clock may be wrong: an empty battery, a
// typing error, a virtual machine that was suspended. The harm would last: versions from years
// ahead, removed files that are purged at once. So the clock is compared with the time since the
// boot, which cannot be set, and over restarts with a note beside the files. For operators:
// docs/reference/clocks.md.
#ifndef H5MIRROR_ONION_STORE_SHARED_TIME_KEEPER_H_
#define H5MIRROR_ONION_STORE_SHARED_TIME_KEEPER_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/env.h"
#include "base/machine.h"

namespace h5mirror::store {

// An Env over another one, with this clock. If the other knows no boot time, this clock is the
// machine's. Thread-safe.
class TimeKeeper final : public Env {
 public:
  // `env` must outlive this. Any call may call `tell` with a line for the log; null: no lines.
  TimeKeeper(Env& env, std::function<void(std::string text)> tell);

  // Continues from the note of an earlier run, `name` in `tree`, and writes the note from now on.
  // Without a note it uses `at_least`, the time of the last write to the root.
  void Open(EnvTree& tree, std::string name, std::optional<absl::Time> at_least);
  // Writes the note, if the last one is some minutes old. A failure to write it is ignored.
  void Tend();
  void Note();

  absl::Time Now() override;
  // For people: why no version or removed file may be dropped for its age; empty: it may.
  std::string Doubt();
  // By how much the machine's clock is ahead of this one.
  absl::Duration Ahead();

  absl::StatusOr<std::unique_ptr<EnvTree>> OpenTree(const std::filesystem::path& root) override {
    return env_.OpenTree(root);
  }
  absl::StatusOr<int64_t> GroupNumber(const std::string& group) override {
    return env_.GroupNumber(group);
  }

 private:
  // A line to tell once the lock is released.
  using Told = std::optional<std::string>;
  struct Reading {
    absl::Time time;     // this clock
    absl::Time machine;  // the machine's
  };
  struct Clocks {
    absl::Time machine;
    std::optional<BootTime> boot;
  };
  // Both of one moment.
  Clocks ReadClocks() const;
  Reading Look(Told* told) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The machine's clock agrees with this one, but for drift.
  void Agree(absl::Time machine, absl::Duration since, Told* told)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether to believe the machine's clock although this one shows another time, `here`. True if
  // the machine's clock
  //   - went back, but not below floor_;
  //   - went on from an impossible time, as NTP sets it after a start without a battery; or
  //   - went on by a span that is possible.
  bool IsBelieved(absl::Time machine, absl::Time here) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Goes on with the machine's clock. It makes nothing expire until it has been watched for a
  // while.
  void Believe(absl::Time machine, absl::Time here, absl::Duration since, Told* told)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string DisbeliefText(absl::Time machine, absl::Time here) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(absl::Time machine, absl::Duration since) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell(const Told& told) const {
    if (told && tell_ != nullptr) tell_(*told);
  }

  std::optional<BootTime> SinceBoot() const {
    return boot_ == nullptr ? std::nullopt : boot_->SinceBoot();
  }

  Env& env_;
  KnowsBootTime* const boot_;
  const std::function<void(std::string)> tell_;
  absl::Mutex note_mutex_;  // held while the note is written
  absl::Mutex mutex_;
  EnvTree* tree_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::string name_ ABSL_GUARDED_BY(mutex_);
  // This clock was at `time_` when SinceBoot() was `since_`.
  absl::Time time_ ABSL_GUARDED_BY(mutex_);
  absl::Duration since_ ABSL_GUARDED_BY(mutex_);
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  // The machine was off between the note and now, for an unknown time.
  bool was_off_ ABSL_GUARDED_BY(mutex_) = false;
  // This clock goes on alone: the machine's clock is not believed.
  bool goes_alone_ ABSL_GUARDED_BY(mutex_) = false;
  // Before SinceBoot() is this, nothing is dropped for its age.
  absl::Duration settled_ ABSL_GUARDED_BY(mutex_);
  std::string why_unsettled_ ABSL_GUARDED_BY(mutex_);
  // A lower bound of the time: the newest moment at which the clock had been right for a day.
  absl::Time floor_ ABSL_GUARDED_BY(mutex_);
  absl::Duration right_since_ ABSL_GUARDED_BY(mutex_);
  absl::Duration noted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_SHARED_TIME_KEEPER_H_
