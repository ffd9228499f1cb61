// This server in the registry: it joins, beats, and learns that it is over
// (docs/design/049-cells.md, steps 1 and 2).
#ifndef H5MIRROR_CLUSTER_MEMBER_H_
#define H5MIRROR_CLUSTER_MEMBER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "cluster/ack_guard.h"
#include "cluster/records.h"
#include "cluster/registry.h"
#include "cluster/watcher.h"

namespace h5mirror::cluster {

struct ServerIdentity {
  std::string id;      // of the configuration: the same at each start
  std::string listen;  // "host:port", for clients
  // A name of this life of the server, never given twice: the uuid of its session in CephFS.
  std::string session;
  std::vector<std::string> addresses;  // as ServerRecord
  std::string version = {};            // as ServerRecord
  std::string http = {};               // as ServerRecord
};

// Errors of the calls below:
//   kUnavailable  unknown, or too early: repeat it.
//   kInternal     this server is over: another one may have given it up. From then on each call
//   ends
//                 so, and the guard is closed.
//
// Thread-safe. Beat() is for one thread, Join() and SetState() for one thread. Locks are not held
// over calls of the registry.
class Member {
 public:
  // All must outlive this.
  Member(Registry& registry, Clock& clock, AckGuard& guard, ServerIdentity identity);
  Member(const Member&) = delete;

  // Makes the first record of this life, if `view` shows that the life before is over.
  // Errors: as above; kAlreadyExists  an earlier life of this ID is alive, or not fenced yet.
  absl::Status Join(const ClusterView& view);

  // Opens the guard for a while, if the registry takes the beat.
  absl::Status Beat();

  // Adds a further client of this server in Ceph to its record, so that others fence it too. To be
  // called before that client writes anything. OK: the registry has it. By any thread.
  absl::Status AddMount(const std::string& session, const std::vector<std::string>& addresses);

  // Takes a client out of the record again. Call it after the final unmount: no write of the client
  // is in flight, and none follows. After an error, the next change of mounts takes the client out.
  // By any thread.
  absl::Status DropMount(const std::string& session, const std::vector<std::string>& addresses);

  // Sets the own record to draining or gone; OK where it is so, or further, already.
  absl::Status SetState(ServerState state);

  // Sets the own record from draining back to up; OK where it is up.
  absl::Status Resume();

  // Whether the registry says that this server is up or draining, of this epoch.
  absl::Status Confirm();

  // Pass each look at the registry after Join(). kInternal: this server is over.
  absl::Status Look(const ClusterView& view);

  const ServerIdentity& identity() const { return identity_; }
  // 0: has not joined.
  uint64_t epoch() const;
  OwnBeats own_beats() const;
  // The own record, as others' changes may expect it.
  Expectation OwnExpectation() const;
  // OK while it is not over; else kInternal with the reason.
  absl::Status over() const;
  // Ends it for a reason of the server's own.
  absl::Status EndFor(const absl::Status& why);

 private:
  using Mounts = std::map<std::string, std::vector<std::string>>;

  // Takes the own record as the registry has it or had it; ends this server if others changed it.
  absl::Status TakeOwnText(const std::optional<std::string>& text);
  // Sets the own record to `after` where it is `before`. kAborted: it is another one, and read.
  absl::Status Change(const ServerRecord& before, ServerRecord after);
  // Adds a mount, where `session` is not empty, and takes out those that were dropped.
  absl::Status ChangeMounts(const std::string& session, const std::vector<std::string>& addresses);
  Mounts Dropped() const ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(const Mounts& dropped) ABSL_LOCKS_EXCLUDED(mutex_);
  // The own record. kUnavailable: it has not joined. kInternal: it is over.
  absl::StatusOr<ServerRecord> OwnRecord() const;
  // `is_done`: by the record as it is after a change that was not taken.
  absl::Status ChangeState(ServerState state, bool (*is_done)(ServerState now, ServerState wanted));
  // Reads record and beat, after an answer that was lost.
  absl::Status Learn();
  // Turns a result of the registry into that for callers.
  absl::Status Translate(const absl::Status& result);
  void CountFailure();

  Registry& registry_;
  Clock& clock_;
  AckGuard& guard_;
  const ServerIdentity identity_;
  const std::string server_name_;
  const std::string beat_name_;

  // Of the beat's thread, after Join().
  std::optional<std::string> beat_text_;  // unset: to be learned
  uint64_t beat_number_ = 0;

  mutable absl::Mutex mutex_;
  ServerRecord record_ ABSL_GUARDED_BY(mutex_);  // epoch 0: has not joined
  OwnBeats own_ ABSL_GUARDED_BY(mutex_);
  absl::Status over_ ABSL_GUARDED_BY(mutex_);
  // The addresses of mounts that are gone, and may be in the record still. By session.
  Mounts dropped_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_MEMBER_H_
