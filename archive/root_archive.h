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
#include "archive/archive_line.h"
#include "archive/archive_url.h"
#include "archive/call_watch.h"
#include "archive/cluster_mark.h"
#include "base/env.h"
#include "onion_store/object_store.h"

namespace h5mirror::archive {

// The 32 hex digits of the root that an archive belongs to. kNotFound: of none.
// kFailedPrecondition: the object is none of this version of h5mirror.
// `part`: that of the part below it.
absl::StatusOr<std::string> ReadArchiveOwner(store::ObjectStore& archive, absl::Duration timeout,
                                             const std::string& part = "");
// Makes `id` the owner, in place of any other one. After a crash it may have none.
absl::Status ReplaceArchiveOwner(store::ObjectStore& archive, std::string_view id,
                                 absl::Duration timeout);

// Thread-safe. Errors as in ObjectStore, and of all calls:
//   kUnavailable         the directory is not there, or Stop() was called. Or calls get no answer,
//                        or no place: what hangs would hold up as many threads as there are
//                        readers. Or it is not known to be the root's yet.
//   kFailedPrecondition  it is the archive of another root, or of none: an empty directory where a
//                        disk should be mounted. The message tells the way out.
// And of a part (OpenPart): what its guard says, of Put() and Delete().
class RootArchive final : public store::ObjectStore {
 public:
  // The object that says whose the archive is: docs/reference/format.md, "Objects of an archive".
  static constexpr std::string_view kOwnerObject = "root";
  // What the names of all parts begin with.
  static constexpr std::string_view kParts = "cells/";
  // A server notices within this time that the archive has got another owner.
  static constexpr absl::Duration kOwnerCheckEvery = absl::Seconds(30);

  struct Settings {
    std::string url;  // ParseArchiveUrl()
    // Below `url`, where the objects lie: "cells/lab". Empty: at `url`.
    std::string part = {};
    // Bytes a second that threads of a BackgroundWork put and get, together. 0: no limit.
    uint64_t background_rate = 0;
    // What `keep_owner` was last given; empty: the root has had no archive yet.
    std::string owner = {};
    // Keeps a text of at most 64 bytes with the root, durably. Called with the first call of a
    // BackgroundWork, which makes the archive the root's. Null: of no root itself, only its parts
    // are.
    std::function<absl::Status(const std::string& owner)> keep_owner = nullptr;
    // Where `keep_owner` keeps it, for messages.
    std::string owner_place = {};
    CallWatch::Limits limits = {};
  };

  // Makes no call: an archive that is away is no reason not to serve a root.
  // Errors: as ParseArchiveUrl(), S3Store::Open().
  static absl::StatusOr<std::unique_ptr<RootArchive>> Open(Env& env, Settings settings);
  ~RootArchive() override;

  // A part of this archive with an owner of its own, `settings.part`; `url`, rate and limits are
  // those of this one, with which it shares pace, places of readers, and silence. It changes
  // nothing before SetGuard(). May outlive this. Reads no credentials, but has those of this one,
  // so that a cell can be opened whatever became of their file. Errors: as ParseArchiveUrl(), and
  // kFailedPrecondition where `settings.owner` is none.
  absl::StatusOr<std::unique_ptr<RootArchive>> OpenPart(Settings settings) const;
  // A part of which each call fails with `failure`; the standing tells of it. So a root is served
  // without its archive rather than not at all. Errors: as OpenPart().
  absl::StatusOr<std::unique_ptr<RootArchive>> OpenFailingPart(Settings settings,
                                                               absl::Status failure) const;
  // Asked before each put and delete. OK: the root is still this server's, and what its index said
  // before is durable. May wait.
  using Guard = std::function<absl::Status()>;
  void SetGuard(Guard guard) ABSL_LOCKS_EXCLUDED(mutex_);
  // The calls of this part end within some 1 s, and further ones fail: its root is given away. Or
  // it is not, after all.
  void SetBrokenOff(bool is_broken_off) { line_->SetBrokenOff(&stopped_, is_broken_off); }

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

  // Breaks off what is under way, within some 1 s, and lets all further calls fail, of all parts. A
  // call that the kernel holds in a directory goes on.
  void Stop() { line_->StopAll(); }
  // As ArchiveLine::Standing() and IsAway().
  ArchiveStanding Standing() { return line_->Standing(); }
  bool IsAway() { return line_->IsAway(); }
  // As ArchiveLine::IsRefused().
  bool IsRefused() { return line_->IsRefused(); }
  // Of the archive of a cluster: whether a root that is no cell owns all of it. That is a fault,
  // until it is not so.
  void NoteTopOwner(bool is_there);
  // Makes this the archive of a cluster, whose parts are its cells'. From then on nothing is put or
  // deleted in any part before the archive is known to be that cluster's. Before the first part is
  // opened. What `settings` refers to must outlive all calls.
  void SetCluster(ClusterMark::Settings settings);
  // Looks whose it is, where nothing is to be put. That it is another cluster's is a fault, until
  // it is not so.
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

  // OK: a call may begin. Asks a silent archive whether it answers again, where it is time to.
  absl::Status MayCall() ABSL_LOCKS_EXCLUDED(mutex_);
  // Does `work` with what is known to be the root's archive, and notes how that went.
  absl::Status Run(Kind kind, absl::Duration timeout, Work work) ABSL_LOCKS_EXCLUDED(mutex_);
  // What the status of a call does not tell.
  struct Look {
    bool is_anothers = false;        // it answers, and is not the root's
    bool is_other_clusters = false;  // it answers, and is not the cluster's
    bool is_memorys = false;         // not the archive failed, but the cluster's memory of it
    ClusterMark::Waits waits = nullptr;
  };
  absl::StatusOr<std::shared_ptr<store::ObjectStore>> OpenNow(absl::Duration timeout, Look* look);
  absl::StatusOr<std::shared_ptr<store::ObjectStore>> OpenDirectory();
  absl::StatusOr<std::unique_ptr<EnvTree>> OpenTree();
  // What is wrong with one part says nothing of the others.
  bool IsFault(bool is_anothers, const absl::Status& status);
  absl::Status MayChange() ABSL_LOCKS_EXCLUDED(mutex_);
  // OK: it is no archive of a cluster, or of the one that it should be.
  absl::Status CheckCluster(ClusterMark::Asker asker, absl::Duration timeout, Look* look);
  // Whether `top` has the part of a root that this server has.
  bool HasOwnPart(store::ObjectStore& top, absl::Duration timeout);
  // Tells the others of the part that this one has.
  void NoteOwn() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckOwner(store::ObjectStore& opened, absl::Duration timeout, Look* look)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Claim(store::ObjectStore& opened, const std::string& owner, absl::Duration timeout,
                     Look* look) ABSL_LOCKS_EXCLUDED(mutex_);
  // A cluster has the archive already.
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
  // Of S3. A directory is opened for each call: it may have been mounted anew.
  std::shared_ptr<S3Store> service_;  // set by Open() and OpenPart() alone
  std::shared_ptr<S3Store> top_;      // of a part: the whole archive, likewise
  std::atomic<bool> stopped_{false};  // set by `line_`
  std::atomic<bool> has_fault_{false};
  // When the service's owner was last seen, by the steady clock: it may get another one. Long ago:
  // never.
  std::atomic<int64_t> checked_ns_{INT64_MIN / 2};
  mutable absl::Mutex mutex_;
  std::string owner_ ABSL_GUARDED_BY(mutex_);  // as Settings::owner
  Guard guard_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_;  // of a failing part; set by OpenFailingPart() alone
};

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_ROOT_ARCHIVE_H_
