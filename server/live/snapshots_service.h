// The Snapshots service; see proto/h5mirror/v1/snapshots.proto.
#ifndef H5MIRROR_SERVER_LIVE_SNAPSHOTS_SERVICE_H_
#define H5MIRROR_SERVER_LIVE_SNAPSHOTS_SERVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "h5mirror/v1/snapshots.grpc.pb.h"
#include "server/calls/call.h"
#include "server/calls/fair_pool.h"
#include "server/calls/file_bytes.h"
#include "server/live/linked_files.h"
#include "server/live/publisher.h"
#include "server/live/snapshot_table.h"
#include "server/state/cut_board.h"
#include "server/state/recent_files.h"

namespace h5mirror::server {

// Thread-safe. A call holds no thread while it waits for a cut, or while its client takes a
// message.
class SnapshotsService final
    : public v1::Snapshots::WithRawCallbackMethod_FollowFile<
          v1::Snapshots::WithRawCallbackMethod_ReadSnapshot<
              v1::Snapshots::WithCallbackMethod_CloseSnapshot<
                  v1::Snapshots::WithCallbackMethod_WaitForCut<v1::Snapshots::Service>>>> {
 public:
  // A cut stays pinned for `keep` after a newer one. Followers get at most one cut in `tick`.
  SnapshotsService(const ServiceEnvironment& environment, absl::Duration keep, absl::Duration tick);
  ~SnapshotsService() override;

  void OnTimer();
  // Answers waiting calls with kUnavailable.
  void BeginStop() {
    board_.Stop();
    publisher_.Stop();
  }
  // Calls that wait for files whose names begin with `prefix` look at them again, and end where
  // those are not served any more.
  void LookAgainBelow(std::string_view prefix) {
    board_.OnCutBelow(prefix);
    publisher_.OnChangeBelow(prefix);
  }
  // Lets go of all files. To be called after the server has stopped, before the store is closed.
  void Stop();

  // For the HTTP door: the newest cut of a file, or `cut` of the file `file_id` while that is
  // pinned or the newest one. A cut that is no version stays pinned for `reader_id` (16 bytes): for
  // `keep` after the last call that named it, and at most for `keep` after a newer cut.
  // Errors: kOutOfRange  the cut is not held any more; those of Store::OpenFile();
  //         kNotFound    there is no cut yet.
  absl::StatusOr<std::unique_ptr<FileBytes>> OpenBytes(const std::string& name,
                                                       store::CutNumber cut,
                                                       std::string_view file_id,
                                                       const std::string& reader_id);

  grpc::ServerWriteReactor<grpc::ByteBuffer>* ReadSnapshot(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* CloseSnapshot(grpc::CallbackServerContext* context,
                                          const v1::CloseSnapshotRequest* request,
                                          v1::CloseSnapshotResponse* response) override;
  grpc::ServerUnaryReactor* WaitForCut(grpc::CallbackServerContext* context,
                                       const v1::WaitForCutRequest* request,
                                       v1::WaitForCutResponse* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* FollowFile(grpc::CallbackServerContext* context,
                                                         const grpc::ByteBuffer* request) override;

 private:
  class WaitCall;
  class ReadParts;
  // Reads the bytes of a cut, or of the version that it is.
  class Source;

  absl::StatusOr<std::shared_ptr<store::File>> OpenFile(const std::string& name);
  absl::StatusOr<std::unique_ptr<Source>> OpenSource(const v1::ReadSnapshotRequest& request);
  absl::StatusOr<std::unique_ptr<Source>> OpenNewest(const v1::ReadSnapshotRequest& request);
  absl::StatusOr<std::unique_ptr<Source>> OpenNewestAt(const v1::ReadSnapshotRequest& request,
                                                       absl::Time time);
  // Opens a cut that is no longer pinned, if it is still the newest one of its file. kOutOfRange:
  // it is not.
  absl::StatusOr<std::unique_ptr<Source>> OpenAgain(const v1::ReadSnapshotRequest& request);
  // The source for the newest cut.
  static absl::StatusOr<std::unique_ptr<Source>> SourceOf(store::File& file,
                                                          SnapshotTable::SnapshotPtr snapshot);
  // Fills in the newest cut; does nothing if there is none yet. kNotFound: no such file.
  absl::Status Describe(const std::string& name, v1::WaitForCutResponse& response);

  const ServiceEnvironment environment_;
  RecentFiles recent_;
  SnapshotTable table_;
  LinkedFiles linked_;
  CutBoard& board_;
  Publisher publisher_;
  WorkerPool workers_;  // opens files for waiting calls
  WorkerPool closes_;   // a close does not wait for reads
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_LIVE_SNAPSHOTS_SERVICE_H_
