// A server on a real socket that holds its files in memory: enough of h5mirrord's behaviour to
// run every verb against it.
#ifndef H5MIRROR_CLI_TESTING_FAKE_SERVER_H_
#define H5MIRROR_CLI_TESTING_FAKE_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/server.h"
#include "h5mirror/v1/files.grpc.pb.h"
#include "h5mirror/v1/mirror.grpc.pb.h"
#include "h5mirror/v1/server.grpc.pb.h"
#include "h5mirror/v1/versions.grpc.pb.h"

namespace h5mirror::tools {

struct FakeFile {
  std::string file_id;  // 16 bytes
  v1::Origin origin;
  int64_t generation = 1;
  std::vector<v1::Version> versions;  // oldest first
  std::vector<std::string> contents;  // of each
  v1::Writer lease;                   // no program: nobody holds it
  bool leased = false;
  std::string history_notice;
  v1::MirrorCheck check;  // the last one recorded
  v1::MirrorState mirror_state = v1::MIRROR_STATE_UNSPECIFIED;
  v1::SourceVersion forked_from = {};  // no version: it is no fork
};

// Thread-safe. Destroyed: it stops.
class FakeServer {
 public:
  FakeServer();
  ~FakeServer();

  // "127.0.0.1:PORT".
  const std::string& address() const { return address_; }

  // Adds a version to a file, which is made when it is new.
  v1::Version AddVersion(const std::string& name, const std::string& content,
                         const std::string& comment = "");
  void SetLease(const std::string& name, const std::string& program);
  // Gives the file's bytes at the next cuts of the lease's holder; called for each cut.
  void SetNextCut(std::function<std::string()> next_cut);
  void SetOrigin(const std::string& name, const v1::Origin& origin);
  void SetHistoryNotice(const std::string& name, const std::string& notice);
  // The state of the mirror that the server reports for the file.
  void SetMirrorState(const std::string& name, v1::MirrorState mirror_state);
  // To the file `name`; empty: to all others.
  void SetRights(const std::vector<std::string>& rights, const std::string& name = "");
  // The next cut's number.
  void SetCutNumber(int64_t cut);
  // Versions are of this time from now on.
  void SetTime(absl::Time time);
  // The server's threads run `hook` before they answer a call of that name. An error of the hook is
  // the answer. Of MirrorFile: "Barrier", for each one.
  void On(const std::string& call, std::function<grpc::Status()> hook);
  // The next reads send one damaged piece.
  void DamageReads();
  FakeFile file(const std::string& name) const;
  // Of the last prune, and of the last verification.
  v1::RetentionPolicy last_policy() const;
  std::pair<int64_t, int64_t> last_subset() const;
  bool has(const std::string& name) const;

  // The state that the services share. The services are in the .cc.
  struct State {
    mutable absl::Mutex mutex;
    std::map<std::string, FakeFile> files ABSL_GUARDED_BY(mutex);
    int64_t last_cut ABSL_GUARDED_BY(mutex) = 0;
    absl::Time time ABSL_GUARDED_BY(mutex) = absl::InfinitePast();  // InfinitePast: now
    std::function<std::string()> next_cut ABSL_GUARDED_BY(mutex);
    std::map<std::string, std::function<grpc::Status()>> hooks ABSL_GUARDED_BY(mutex);
    std::vector<std::string> rights ABSL_GUARDED_BY(mutex) = {"read", "write", "restore", "delete",
                                                              "operate"};
    std::map<std::string, std::vector<std::string>> rights_to ABSL_GUARDED_BY(mutex);  // by file
    bool damage_reads ABSL_GUARDED_BY(mutex) = false;
    v1::RetentionPolicy policy ABSL_GUARDED_BY(mutex);          // of the last prune
    std::pair<int64_t, int64_t> subset ABSL_GUARDED_BY(mutex);  // of the last verification
  };

 private:
  State state_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

// Runs the hook that the test has set for calls of that name.
grpc::Status RunHook(FakeServer::State& state, const std::string& call);

// Adds a version to `file`, of `state`, and returns it.
v1::Version AppendVersion(FakeServer::State& state, FakeFile& file, const std::string& content,
                          const std::string& comment, const v1::Writer& writer)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_TESTING_FAKE_SERVER_H_
