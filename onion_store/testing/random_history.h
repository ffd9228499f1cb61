// A random life of one file, beside a model that only knows strings. For the model test, the crash
// test and the fault test.
#ifndef H5MIRROR_ONION_STORE_TESTING_RANDOM_HISTORY_H_
#define H5MIRROR_ONION_STORE_TESTING_RANDOM_HISTORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/testing/fault_env.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {

class RandomHistory {
 public:
  // Errors of the store end the history; `faults_expected` says whether they fail the test.
  enum class Faults : uint8_t { kNone, kExpected };
  RandomHistory(FaultEnv& env, uint64_t seed, Faults faults)
      : env_(env), random_(seed), own_random_(seed), faults_(faults) {}

  // Makes `step_count` random steps, and closes the store.
  void Run(int step_count);

  // A cut that was acked as durable, and how many changes the disk had seen by then.
  struct Acked {
    CutNumber cut = 0;
    size_t change_count = 0;
  };
  std::vector<Acked> acked() const;
  // The bytes of the file at every cut ever made.
  const std::map<CutNumber, std::string>& golden() const { return golden_; }

  // The content of a rollback that failed, but may have been made all the same.
  const std::optional<std::string>& unsure() const { return unsure_; }

  // The versions that were acked and never pruned, and so must exist; with the number of disk
  // changes by then.
  std::map<VersionNumber, size_t> kept() const;

  // Opens the store on `env` and compares the newest durable cut, the head and all versions with
  // the golden bytes. `needed`: the oldest cut that may be the newest one. `kept`: versions that
  // must be there. `unsure`: another content that the newest one may have.
  static void Check(FaultEnv& env, std::map<CutNumber, std::string> golden, CutNumber needed,
                    const std::vector<VersionNumber>& kept = {},
                    const std::optional<std::string>& unsure = std::nullopt);
  // Opens the store on the same disk, and compares the tags with the model's. For histories without
  // faults.
  void CheckTags();
  // How many reads of old versions continued after other steps.
  int paused_read_count() const { return paused_read_count_; }
  // How many reads of pinned cuts found the model's bytes.
  int pinned_read_count() const { return pinned_read_count_; }

 private:
  bool Ok(const absl::Status& status);
  void Reopen();
  void StartSession();
  void Step();
  void StepWithoutSession();
  void StepOfSession();
  void WriteSomething();
  void CutSomehow(BarrierKind kind);
  void EndSession(SessionEnd end);
  void RollBack();
  // Drops some versions, perhaps only in part, beside readers of these and of other versions.
  void Prune();
  struct PrunePlan {
    std::vector<VersionNumber> doomed;
    std::vector<std::unique_ptr<VersionReader>> readers;
  };
  // Nullopt: the history is broken.
  std::optional<PrunePlan> PlanPrune();
  // False: the history is broken.
  bool ReadBesidePrune(VersionReader& reader);
  bool IsTagged(VersionNumber version) const;
  void TagSomething();
  // Makes other steps once, after this thread's next read of a file with `part` in its name. The
  // result tells whether that has happened.
  std::shared_ptr<const bool> PauseAfterRead(const std::string& part);
  // Reads a version, with other steps between the two of a read: first head and sums, then the
  // rows.
  void ReadWithPause();
  // Pins the newest cut, ends a pin, or reads a pinned cut, perhaps with other steps after the read
  // of the head or of its checksums.
  void UsePinnedCuts();
  void ReadPinnedCut(const Snapshot& snapshot);
  // False: the pin has expired, which is allowed, or the history is broken.
  bool WasRead(const absl::Status& read);
  void ExpectHolesAreZeros(const Snapshot& snapshot, const std::string& wanted);
  // Reads the session's own writes, cut or not.
  void ReadOwnWrites();
  std::string RandomBytes(size_t size);

  FaultEnv& env_;
  std::mt19937_64 random_;
  std::mt19937_64 own_random_;  // for steps that change nothing
  const Faults faults_;
  bool broken_ = false;
  std::unique_ptr<Store> store_;
  std::shared_ptr<File> file_;
  std::unique_ptr<Writer> writer_;
  std::map<CutNumber, std::string> golden_;
  CutNumber newest_cut_ = 0;
  std::string newest_;  // content of newest_cut_
  std::optional<std::string> unsure_;
  std::map<std::string, VersionNumber> tags_;
  bool paused_ = false;  // within a read
  int paused_read_count_ = 0;
  std::vector<std::shared_ptr<Snapshot>> pinned_;
  bool may_expire_ = false;
  int pinned_read_count_ = 0;
  mutable absl::Mutex mutex_;
  std::vector<Acked> acked_ ABSL_GUARDED_BY(mutex_);
  std::map<VersionNumber, size_t> acked_versions_ ABSL_GUARDED_BY(mutex_);
  std::set<VersionNumber> pruned_;  // or chosen for a prune
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_TESTING_RANDOM_HISTORY_H_
