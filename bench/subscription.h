// One subscriber of a file: how it hears of cuts, and what of the newest one it holds.
#ifndef H5MIRROR_BENCH_SUBSCRIPTION_H_
#define H5MIRROR_BENCH_SUBSCRIPTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/extent.h"
#include "base/extent_set.h"
#include "rpc/client.h"
#include "rpc/client_options.h"

namespace h5mirror::bench {

// A connection of its own and one FollowFile call on it. Holds all bytes of the cut: metadata as it
// comes, raw data read where it has changed. Not thread-safe.
class Subscription {
 public:
  static absl::StatusOr<std::unique_ptr<Subscription>> Open(const rpc::ClientOptions& options,
                                                            const std::string& name,
                                                            absl::Duration connect_timeout);

  // Waits until there is a newer cut than the one held, and holds it then. False: there will be
  // none, as nobody has the file open for writing any more. kNotFound: no such file yet.
  absl::StatusOr<bool> Next();

  int64_t cut() const { return cut_; }
  const std::string& image() const { return image_; }
  uint64_t received_bytes() const { return received_bytes_; }
  // Calls that a server turned away which had too many at once; each was made again a little later.
  int64_t refused() const { return refused_; }

 private:
  Subscription(std::unique_ptr<rpc::Client> client, std::string name);

  // What is to come of the cut whose messages arrive.
  void Begin(const v1::FollowFileResponse& first);
  absl::Status Take(const v1::FollowFileResponse& message);
  // Reads what is raw data of it.
  absl::Status Complete();
  absl::Status ReadRange(Extent range);
  absl::Status Put(uint64_t offset, std::string_view data);

  const std::unique_ptr<rpc::Client> client_;
  const std::string name_;
  const std::string reader_id_;
  std::unique_ptr<rpc::FollowStream> stream_;  // null: none yet, or it has ended
  int64_t cut_ = 0;                            // held
  int64_t coming_ = 0;                         // whose messages arrive
  ExtentSet missing_;                          // of that one
  std::string file_id_;
  std::string image_;
  uint64_t received_bytes_ = 0;
  int64_t refused_ = 0;
};

}  // namespace h5mirror::bench

#endif  // H5MIRROR_BENCH_SUBSCRIPTION_H_
