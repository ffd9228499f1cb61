// The archive of one root, as a server uses it. It may be away, it is checked to be the root's, and
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
#include "archive/archive_line.h"
#include "archive/archive_url.h"
#include "archive/call_watch.h"
#include "archive/cluster_mark.h"
#include "base/env.h"
#include "onion_store/object_store.h"

namespace h5mirror::archive {

// The 32 hex digits of the root that owns an archive, or owns `part` below it. kNotFound: no root
// owns it. kFailedPrecondition: this version of h5mirror does not know the object's form.
absl::StatusOr<std::string> ReadArchiveOwner(store::ObjectStore& archive, absl::Duration timeout,
                                             const std::string& part = "");
// Makes `id` the owner, in place of any other. After a crash the archive may have no owner.
absl::Status ReplaceArchiveOwner(store::ObjectStore& archive, std::string_view id,
                                 absl::Duration timeout);

// Thread-safe. Errors as in ObjectStore, and of all calls:
//   kUnavailable         the directory is not there, or Stop() was called. Or calls get no answer.
//                        Or there is no place for one more call: else a hanging archive would hold
//                        up the threads of all readers. Or it is not known to be the root's yet.
//   kFailedPrecondition  it is the archive of another root, or of none: an empty directory where a
//                        disk should be mounted. The message tells the way out.
// And for Put() and Delete() of a part (OpenPart): the errors of its guard.
class RootArchive final : public store::ObjectStore {
 public:
  // The object that names the owner of the archive: docs/reference/format.md, "Objects of an
  // archive".
  static constexpr std::string_view kOwnerObject = "root";
  // The prefix of the names of all parts.
  static constexpr std::string_view kParts = "cells/";
  // A server notices within this time that the archive has got another owner.
  static constexpr absl::Duration kOwnerCheckEvery = absl::Seconds(30);

  struct Settings {
    std::string url;  // ParseArchiveUrl()
    // The place of the objects below `url`: "cells/lab". Empty: at `url`.
    std::string part = {};
    // The bytes a second that all threads with a BackgroundWork put and get together. 0: no limit.
    uint64_t background_rate = 0;
    // The text last given to `keep_owner`; empty: the root has had no archive yet.
    std::string owner = {};
    // Keeps a text of at most 64 bytes with the root, durably. The first call of a BackgroundWork
    // calls it, and so makes the archive the root's. Null: no root owns this archive itself, only
    // its parts have owners.
    std::function<absl::Status(const std::string& owner)> keep_owner = nullptr;
    // The place where `keep_owner` keeps the text, for messages.
    std::string owner_place = {};
    CallWatch::Limits limits = {};
  };

  // Makes no call: a root must be served even if its archive is away.
  // Errors: as ParseArchiveUrl(), S3Store::Open().
  static absl::StatusOr<std::unique_ptr<RootArchive>> Open(Env& env, Settings settings);
  ~RootArchive() override;

  // A part of this archive, `settings.part`, with an owner of its own. It takes `url`, rate and
  // limits from this archive, and shares pace, places of readers, and silence with it. Puts and
  // deletes nothing before SetGuard(). May outlive this. Uses this archive's credentials and does
  // not read their file, so a cell can be opened whatever became of that file. Errors: as
  // ParseArchiveUrl(), and kFailedPrecondition: `settings.owner` is not an owner.
  absl::StatusOr<std::unique_ptr<RootArchive>> OpenPart(Settings settings) const;
  // A part whose calls all fail with `failure`, which the standing shows. So the root is served
  // without its archive rather than not at all. Errors: as OpenPart().
  absl::StatusOr<std::unique_ptr<RootArchive>> OpenFailingPart(Settings settings,
                                                               absl::Status failure) const;
  // Called before each put and delete. OK: the root is still this server's, and its index is
  // durable as it was at the call. May wait.
  using Guard = std::function<absl::Status()>;
  void SetGuard(Guard guard) ABSL_LOCKS_EXCLUDED(mutex_);
  // True: this part's calls end within some 1 s, and further calls fail, because its root goes to
  // another server. False: the root stays after all.
  void SetBrokenOff(bool is_broken_off) { line_->SetBrokenOff(&stopped_, is_broken_off); }

  // While it lives, the calls of its thread are paced. One thread at a time has it.
  class BackgroundWork {
   public:
    BackgroundWork() { ++depth; }
    ~BackgroundWork() { --depth; }
    BackgroundWork(const BackgroundWork&) = delete;
    static bool is_on() { return depth > 0; }

   private:
    static thread_local int depth;
  };

  // While it lives, the calls of its thread fail at once, with kUnavailable: that thread's work
  // cannot wait.
  class NoCalls {
   public:
    NoCalls() { ++depth; }
    ~NoCalls() { --depth; }
    NoCalls(const NoCalls&) = delete;
    static bool is_on() { return depth > 0; }

   private:
    static thread_local int depth;
  };

  // Breaks off the calls of all parts within some 1 s, and makes all further calls fail. A call
  // that hangs in the kernel, on a directory, goes on.
  void Stop() { line_->StopAll(); }
  // As ArchiveLine::Standing() and IsAway().
  ArchiveStanding Standing() { return line_->Standing(); }
  bool IsAway() { return line_->IsAway(); }
  // As ArchiveLine::IsRefused().
  bool IsRefused() { return line_->IsRefused(); }
  // For the archive of a cluster: notes whether a root that is no cell owns the whole archive. That
  // counts as a fault until it ends.
  void NoteTopOwner(bool is_there);
  // Makes this the archive of a cluster; its parts belong to the cells. From then on no part puts
  // or deletes anything until the archive is known to be that cluster's. Call it before the first
  // part is opened. All that `settings` refers to must outlive all calls.
  void SetCluster(ClusterMark::Settings settings);
  // Checks the owner, even if nothing is to be put. If the archive is another cluster's, that
  // counts as a fault until it ends.
  void NoteCluster(absl::Duration timeout);
  // As CallWatch::ForgetChanges().
  void ForgetChanges() { line_->watch().ForgetChanges(); }

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
  static absl::Status CheckSettings(const Settings& settings);
  RootArchive(Env& env, Settings settings, ArchiveUrl url, std::shared_ptr<ArchiveLine> line);

  using Kind = CallWatch::Kind;
  using Work = absl::FunctionRef<absl::Status(store::ObjectStore&, CallWatch::Ticket)>;

  // OK: a call may begin. If the archive is silent, asks it now and then whether it answers again.
  absl::Status MayCall() ABSL_LOCKS_EXCLUDED(mutex_);
  // Does `work` with an archive that is known to be the root's, and notes the result.
  absl::Status Run(Kind kind, absl::Duration timeout, Work work) ABSL_LOCKS_EXCLUDED(mutex_);
  // Facts that the status of a call does not tell.
  struct Look {
    bool is_anothers = false;        // it answers, but is not the root's
    bool is_other_clusters = false;  // it answers, but is not the cluster's
    bool is_memorys = false;         // the cluster's memory failed, not the archive
    ClusterMark::Waits waits = nullptr;
  };
  absl::StatusOr<std::shared_ptr<store::ObjectStore>> OpenNow(absl::Duration timeout, Look* look);
  absl::StatusOr<std::shared_ptr<store::ObjectStore>> OpenDirectory();
  absl::StatusOr<std::unique_ptr<EnvTree>> OpenTree();
  // Whether the error is a fault of this part alone, which says nothing about the others.
  bool IsFault(bool is_anothers, const absl::Status& status);
  absl::Status MayChange() ABSL_LOCKS_EXCLUDED(mutex_);
  // OK: this is not the archive of a cluster, or it is the right cluster's.
  absl::Status CheckCluster(ClusterMark::Asker asker, absl::Duration timeout, Look* look);
  // Whether `top` has a part that belongs to a root of this server.
  bool HasOwnPart(store::ObjectStore& top, absl::Duration timeout);
  // Tells the other parts that this part belongs to its root.
  void NoteOwn() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckOwner(store::ObjectStore& opened, absl::Duration timeout, Look* look)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Claim(store::ObjectStore& opened, const std::string& owner, absl::Duration timeout,
                     Look* look) ABSL_LOCKS_EXCLUDED(mutex_);
  // kFailedPrecondition: a cluster has the archive already.
  absl::Status CheckHasNoParts(store::ObjectStore& opened, absl::Duration timeout);
  absl::Status Keep(const std::string& text) ABSL_LOCKS_EXCLUDED(mutex_);
  std::string owner() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status OthersArchive() const;
  absl::Status BrokenOff() const;
  absl::Status Named(const absl::Status& status) const;

  Env& env_;
  const Settings settings_;
  const ArchiveUrl url_;
  const std::shared_ptr<ArchiveLine> line_;
  // Only for S3. A directory is opened for each call, since it may have been mounted anew.
  std::shared_ptr<S3Store> service_;  // set only by Open() and OpenPart()
  std::shared_ptr<S3Store> top_;      // of a part: the whole archive; set likewise
  std::atomic<bool> stopped_{false};  // set by `line_`
  std::atomic<bool> has_fault_{false};
  // When the service's owner was last checked, by the steady clock: the owner may change. Long ago:
  // never.
  std::atomic<int64_t> checked_ns_{INT64_MIN / 2};
  mutable absl::Mutex mutex_;
  std::string owner_ ABSL_GUARDED_BY(mutex_);  // as Settings::owner
  Guard guard_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_;  // of a failing part; set only by OpenFailingPart()
};

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_ROOT_ARCHIVE_H_
