// Plays a scenario against a store, and keeps what the store promised meanwhile.
#ifndef H5MIRROR_TESTS_CRASH_PLAYER_H_
#define H5MIRROR_TESTS_CRASH_PLAYER_H_

#include <array>
#include <climits>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "base/testing/counted_env.h"
#include "onion_store/store.h"
#include "onion_store/testing/test_store.h"
#include "tests/crash/promises.h"

namespace h5mirror::store {

struct PlayOptions {
  uint32_t page_size_bytes = 1024;
  uint64_t memory_max_bytes = uint64_t{64} << 20;
  uint64_t stage_segment_bytes = uint64_t{64} << 30;
  PageCompression page_compression = PageCompression::kZstd;
};

// Whether playing a scenario twice makes the same record.
enum class Pace : uint8_t {
  kInStep,     // each session's end waits for the background
  kConcurrent  // the background works beside the steps
};

// A store on `env`, with an archive on the same disk, as the scenarios and the checks open it:
// one thread behind it (or none,
// for Store::RunBackground()), and ticks that wait for the next sync or commit.
absl::StatusOr<std::unique_ptr<Store>> OpenOn(Env& env, const PlayOptions& options,
                                              int background_threads = 1);

// Each call is a step. After the first that fails all others do nothing. Not thread-safe.
class Player {
 public:
  Player(CountedEnv& env, uint64_t seed, PlayOptions options, Pace pace);
  // Closes the store.
  ~Player();

  void Open();
  // Applies what fits into `apply_time`.
  void Close(absl::Duration apply_time = absl::Seconds(30));
  // A file that nobody mirrors, made by somebody else. `pages` in pages.
  void PutPlainFile(const std::string& file, uint64_t pages);
  // Opens the file without a session, as a tool does.
  void Touch(const std::string& file);

  // One session per file at a time.
  void Begin(const std::string& file, SessionStart start = SessionStart::kContinue);
  // Random bytes; places and lengths are in pages, and may be broken ones.
  void Write(const std::string& file, double page, double page_count);
  void Zeros(const std::string& file, double page, double page_count);
  void Truncate(const std::string& file, double pages);
  void Tick(const std::string& file);
  // Waits for the ack, and until the head holds the cut.
  void Sync(const std::string& file) { CutAndWait(file, BarrierKind::kSync); }
  void Commit(const std::string& file) { CutAndWait(file, BarrierKind::kCommit); }
  // Waits for nothing: the background works beside the steps that follow.
  void CutAndGoOn(const std::string& file, BarrierKind kind);
  void End(const std::string& file, SessionEnd end = SessionEnd::kClean);

  void WaitApplied(const std::string& file);
  // Makes `version` the newest again, with nobody writing.
  void Rollback(const std::string& file, VersionNumber version);
  // Another session takes the file over from one that has not ended, whose calls are refused then.
  void TakeOver(const std::string& file);
  // Moves the tag where another version has it. `version` 0: the newest.
  void Tag(const std::string& file, VersionNumber version, const std::string& tag);
  void Untag(const std::string& file, const std::string& tag);
  // Drops `versions`, as far as the file lets it, in at most `step_max` steps; then it is cut
  // short. Each that is open is read on between the steps.
  void Prune(const std::string& file, std::vector<VersionNumber> versions, int step_max = INT_MAX);
  // Takes what is saved of the file to the archive, in at most `step_max` steps; then it is cut
  // short. Each version that is open is read on between the steps.
  void Archive(const std::string& file, int step_max = INT_MAX);
  // The same, with a copy of the file.
  void ArchiveCopy(const std::string& file, int step_max = INT_MAX);
  // Gives the file another name; steps go on to call it by its first one.
  void Move(const std::string& file, const std::string& new_name);
  // Takes it away, to be brought back.
  void Remove(const std::string& file);
  void Undelete(const std::string& file, const std::string& new_name);
  // Takes all that was removed away for good. `file` is one of those; no step may name it again.
  void Purge(const std::string& file);
  // Makes the file `new_name`, which no step has named, of a version (0: the newest) of `file`.
  void Fork(const std::string& file, VersionNumber version, const std::string& new_name);
  // Makes the newest version of `fork` the newest one of `file`, which is as the fork last knew it.
  void Promote(const std::string& fork, const std::string& file);
  // Opens `version` and keeps it open. ReadOn() reads the next page of each that is open,
  // FinishExport() what is left of them, whatever happened in between.
  void BeginExport(const std::string& file, VersionNumber version);
  void ReadOn();
  void FinishExport();

  // How long a step may wait for the background; 60 s at first.
  void SetPatience(absl::Duration patience) { patience_ = patience; }
  // Ends what has begun, with writers lost, whatever comes of it.
  void Abandon();
  // Closes the store, whatever comes of it.
  void Leave() {
    if (store_ != nullptr) store_->Close(absl::ZeroDuration()).IgnoreError();
    store_.reset();
  }

  // Any step that makes sense now, on `file`.
  void RandomStep(const std::string& file);

  uint64_t Random(uint64_t end) { return random_() % end; }

  // OK, or what the first step that failed met.
  const absl::Status& status() const { return status_; }
  // null before Open() and after Close().
  Store* store() { return store_.get(); }
  Promises promises() const ABSL_LOCKS_EXCLUDED(mutex_);
  // What was done, and how many changes the disk had seen before it.
  struct Step {
    size_t change_count = 0;
    std::string text;
  };
  const std::vector<Step>& steps() const { return steps_; }

 private:
  struct Export {
    std::string file;
    std::unique_ptr<VersionReader> reader;
    Bytes wanted;
    uint64_t read_bytes = 0;
  };
  // Reads `one` up to `end_bytes`, and compares; what is dropped meanwhile may end early.
  absl::Status ReadUpTo(Export& one, uint64_t end_bytes);
  // A call that gives the file `new_name`.
  void ChangeName(const std::string& file, const std::string& new_name,
                  absl::FunctionRef<absl::Status()> call);
  const std::string& NameOf(const std::string& file) const;
  // A call that changes `tag` to `version` (0: takes it away).
  void ChangeTag(const std::string& file, VersionNumber version, const std::string& tag,
                 absl::FunctionRef<absl::Status(File&)> call);

  bool Begun(const std::string& text);  // false: a step before failed
  bool Ok(const absl::Status& status);
  uint64_t BytesOf(double pages) const {
    return static_cast<uint64_t>(pages * options_.page_size_bytes);
  }
  // Waits until the background has nothing to do for `file`.
  void Settle(const std::string& file);
  std::shared_ptr<File> FileOf(const std::string& file);
  void RandomTag(const std::string& file);
  void RandomPrune(const std::string& file);
  void RandomName(const std::string& file);
  void RandomFork(const std::string& file);
  void RunArchive(const std::string& file, const ArchiveRequest& request, int step_max);
  void RandomArchive(const std::string& file);
  // Of a version that was not dropped; 0 where that is none.
  VersionNumber RandomVersion(const std::string& file);
  void CutAndWait(const std::string& file, BarrierKind kind);
  // The bytes of `file` at that cut.
  Bytes GoldenOf(const std::string& file, CutNumber cut) ABSL_LOCKS_EXCLUDED(mutex_);
  // A call is about to make a version of `file` with the bytes `wanted`, or to fail.
  void Attempt(const std::string& file, const Bytes& wanted);
  // It has made `made`, when the disk had seen `changes`.
  void NoteMade(const std::string& file, const Bytes& wanted, const VersionInfo& made,
                size_t changes);
  std::string RandomBytes(uint64_t size);
  std::array<uint8_t, 16> RandomId();

  CountedEnv& env_;
  std::mt19937_64 random_;
  absl::Duration patience_ = absl::Seconds(60);
  const PlayOptions options_;
  const Pace pace_;
  std::unique_ptr<Store> store_;
  std::map<std::string, std::shared_ptr<File>> files_;
  std::map<std::string, std::string> names_;     // of those that were moved
  std::map<std::string, std::string> removals_;  // ids of those that were removed
  std::map<std::string, std::unique_ptr<Writer>> writers_;
  std::map<std::string, std::string> newest_;  // the content at the newest cut
  int fork_count_ = 0;                         // of RandomFork()
  std::vector<Export> exports_;
  std::vector<Step> steps_;
  absl::Status status_;
  mutable absl::Mutex mutex_;
  Promises promises_ ABSL_GUARDED_BY(mutex_);
  absl::Status cut_error_ ABSL_GUARDED_BY(mutex_);  // of a cut that nobody waited for
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_TESTS_CRASH_PLAYER_H_
