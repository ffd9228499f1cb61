// One subscriber of a file: how it hears of cuts, and what of the newest one it holds.
#ifndef H5MIRROR_BENCH_SUBSCRIPTION_H_
#define H5MIRROR_BENCH_SUBSCRIPTION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "h5mirror/v1/snapshots.grpc.pb.h"
#include "rpc/client_options.h"

namespace h5mirror::bench {

// A connection of its own, which waits for each cut and then reads the whole file at it: WaitForCut
// and ReadSnapshot. All that a subscriber does is behind Next(), so that another way to follow
// takes no more than another class. Not thread-safe.
class Subscription {
 public:
  static absl::StatusOr<std::unique_ptr<Subscription>> Open(const rpc::ClientOptions& options,
                                                            const std::string& name,
                                                            absl::Duration connect_timeout);

  // Waits until the file has a newer cut than the one held, and holds it then. False: there will be
  // none, as nobody has the file open for writing any more. An error that names the file, also
  // where nothing came for `timeout`.
  absl::StatusOr<bool> Next(absl::Duration timeout);

  int64_t cut() const { return cut_; }
  const std::string& image() const { return image_; }
  uint64_t received_bytes() const { return received_bytes_; }
  // Calls that a server turned away which had too many at once; each was made again a little later.
  int64_t refused() const { return refused_; }

 private:
  Subscription(const rpc::ClientOptions& options, std::string name);

  absl::StatusOr<v1::WaitForCutResponse> Wait(absl::Duration timeout);
  absl::Status ReadNewest();
  absl::Status ReadOnce(int64_t& cut);
  absl::Status Close(int64_t cut);
  // The first status of `call` that is no refusal.
  absl::Status Insist(absl::FunctionRef<absl::Status()> call);

  const rpc::ClientOptions options_;
  const std::string name_;
  const std::string reader_id_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Snapshots::Stub> stub_;
  int64_t cut_ = 0;
  std::string image_;
  uint64_t received_bytes_ = 0;
  int64_t refused_ = 0;
};

}  // namespace h5mirror::bench

#endif  // H5MIRROR_BENCH_SUBSCRIPTION_H_
