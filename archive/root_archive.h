// The archive of one root, as a server uses it: it may be away, it is known to be the root's, and
// its calls can be broken off.
#ifndef H5MIRROR_ARCHIVE_ROOT_ARCHIVE_H_
#define H5MIRROR_ARCHIVE_ROOT_ARCHIVE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "archive/archive_url.h"
#include "archive/call_watch.h"
#include "archive/pace.h"
#include "base/env.h"
#include "onion_store/object_store.h"

namespace h5mirror::archive {

// The 32 hex digits of the root that an archive belongs to. kNotFound: of none.
// kFailedPrecondition: the object is none of this version of h5mirror.
absl::StatusOr<std::string> ReadArchiveOwner(store::ObjectStore& archive, absl::Duration timeout);
// Makes `id` the owner, in place of any other one. After a crash it may have none.
absl::Status ReplaceArchiveOwner(store::ObjectStore& archive, std::string_view id,
                                 absl::Duration timeout);

// Thread-safe. Errors as in ObjectStore, and of all calls:
//   kUnavailable         the directory is not there, or Stop() was called. Or calls get no answer,
//                        or no place: what hangs would hold up as many threads as there are
//                        readers. Or it is not known to be the root's yet.
//   kFailedPrecondition  it is the archive of another root, or of none: an empty directory where a
//                        disk should be mounted. The message tells the way out.
class RootArchive final : public store::ObjectStore {
 public:
  // The object that says whose the archive is: docs/reference/format.md, "Objects of an archive".
  static constexpr std::string_view kOwnerObject = "root";
  // A server notices within this time that the archive has got another owner.
  static constexpr absl::Duration kOwnerCheckEvery = absl::Seconds(30);

  struct Settings {
    std::string url;  // ParseArchiveUrl()
    // Bytes a second that threads of a BackgroundWork put and get, together. 0: no limit.
    uint64_t background_rate = 0;
    // What `keep_owner` was last given; empty: the root has had no archive yet.
    std::string owner = {};
    // Keeps a text of at most 64 bytes with the root, durably. Called with the first call of a
    // BackgroundWork, which makes the archive the root's.
    std::function<absl::Status(const std::string& owner)> keep_owner = nullptr;
    // Where `keep_owner` keeps it, for messages.
    std::string owner_place = {};
    CallWatch::Limits limits = {};
  };

  // Makes no call: an archive that is away is no reason not to serve a root.
  // Errors: as ParseArchiveUrl(), S3Store::Open().
  static absl::StatusOr<std::unique_ptr<RootArchive>> Open(Env& env, Settings settings);

  // Of one thread at a time, whose calls are paced.
  class BackgroundWork {
   public:
    BackgroundWork() { ++depth; }
    ~BackgroundWork() { --depth; }
    BackgroundWork(const BackgroundWork&) = delete;
    static bool is_on() { return depth > 0; }

   private:
    static thread_local int depth;
  };

  // Calls of a thread that has one fail at once, with kUnavailable: its work cannot wait.
  class NoCalls {
   public:
    NoCalls() { ++depth; }
    ~NoCalls() { --depth; }
    NoCalls(const NoCalls&) = delete;
    static bool is_on() { return depth > 0; }

   private:
    static thread_local int depth;
  };

  // Breaks off what is under way, within some 1 s, and lets all further calls fail. A call that the
  // kernel holds in a directory goes on.
  void Stop() { stopped_ = true; }
  ArchiveStanding Standing() { return watch_.Standing(); }
  // As CallWatch::ForgetChanges().
  void ForgetChanges() { watch_.ForgetChanges(); }

  std::string Describe() const override;
  absl::Status Put(std::string_view name, store::ObjectSource& source,
                   absl::Duration timeout) override;
  absl::Status Get(std::string_view name, uint64_t offset, absl::Span<char> out,
                   absl::Duration timeout) override;
  absl::StatusOr<store::ObjectInfo> Head(std::string_view name, absl::Duration timeout) override;
  absl::StatusOr<store::ObjectPage> List(std::string_view prefix, std::string_view next,
                                         size_t limit, absl::Duration timeout) override;
  absl::Status Delete(std::string_view name, absl::Duration timeout) override;

 private:
  RootArchive(Env& env, Settings settings, ArchiveUrl url);

  using Kind = CallWatch::Kind;
  using Work = absl::FunctionRef<absl::Status(store::ObjectStore&, CallWatch::Ticket)>;

  // OK: a call may begin. Asks a silent archive whether it answers again, where it is time to.
  absl::Status MayCall() ABSL_LOCKS_EXCLUDED(mutex_);
  // Does `work` with what is known to be the root's archive, and notes how that went.
  absl::Status Run(Kind kind, absl::Duration timeout, Work work) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::shared_ptr<store::ObjectStore>> OpenNow(absl::Duration timeout);
  absl::Status CheckOwner(store::ObjectStore& opened, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Claim(store::ObjectStore& opened, const std::string& owner, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Keep(const std::string& text) ABSL_LOCKS_EXCLUDED(mutex_);
  std::string owner() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status OthersArchive() const;
  absl::Status Named(const absl::Status& status) const;

  Env& env_;
  const Settings settings_;
  const ArchiveUrl url_;
  // Of S3. A directory is opened for each call: it may have been mounted anew.
  std::shared_ptr<store::ObjectStore> service_;  // set by Open() alone
  std::atomic<bool> stopped_{false};
  Pace pace_;
  // When the service's owner was last seen, by the steady clock: it may get another one. Long ago:
  // never.
  std::atomic<int64_t> checked_ns_{INT64_MIN / 2};
  CallWatch watch_;
  mutable absl::Mutex mutex_;
  std::string owner_ ABSL_GUARDED_BY(mutex_);  // as Settings::owner
};

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_ROOT_ARCHIVE_H_
