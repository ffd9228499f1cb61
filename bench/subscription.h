// One subscriber of a file: how it hears of cuts, and what of the newest one it holds.
#ifndef H5MIRROR_BENCH_SUBSCRIPTION_H_
#define H5MIRROR_BENCH_SUBSCRIPTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/extent.h"
#include "base/extent_set.h"
#include "rpc/client.h"
#include "rpc/client_options.h"

namespace h5mirror::bench {

// What is read of each cut. Metadata comes with the cut itself.
enum class Reads : uint8_t {
  kAll,       // raw data too, where it has changed
  kMetadata,  // raw data at the end
};

// Of one subscriber, from its first whole cut on.
struct SubscriptionCounts {
  int64_t cuts = 0;         // that it held: all bytes, or with kMetadata all metadata
  int64_t passed_over = 0;  // cuts of the file that it did not
  // Cuts that the server let go of while they were read: what was missing was read of a later one.
  int64_t expired = 0;
  // Calls that a busy server turned away, or answered too late; each was made again a little later.
  int64_t refused = 0;
  uint64_t received_bytes = 0;
};

// A connection of its own and one FollowFile call on it, whose messages a thread takes as they
// come: messages that waited in the connection would be old cuts, read late. Not thread-safe.
class Subscription {
 public:
  ~Subscription();

  static absl::StatusOr<std::unique_ptr<Subscription>> Open(const rpc::ClientOptions& options,
                                                            const std::string& name, Reads reads,
                                                            absl::Duration connect_timeout);

  // Waits until there is a newer cut than the last one, and reads the newest that has come. False:
  // there will be none, as nobody has the file open for writing any more. kNotFound: no such file
  // yet.
  absl::StatusOr<bool> Next();
  // After Next() returned false: reads what is missing of the last cut.
  absl::Status Complete();

  int64_t cut() const { return cut_; }
  // All bytes of the last cut, after Complete().
  const std::string& image() const { return image_; }
  const SubscriptionCounts& counts() const { return counts_; }

 private:
  // What has come of the call, and nobody has looked at yet.
  struct Inbox {
    bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return is_over || !cuts.empty(); }

    absl::Mutex mutex;
    std::vector<std::vector<v1::FollowFileResponse>> cuts ABSL_GUARDED_BY(mutex);
    bool is_over ABSL_GUARDED_BY(mutex) = false;
  };

  Subscription(std::unique_ptr<rpc::Client> client, std::string name, Reads reads);

  void Start();
  static void Receive(rpc::FollowStream& stream, Inbox& inbox);

  // A cut, message by message: first what is to come of it.
  absl::Status TakeCut(const std::vector<v1::FollowFileResponse>& messages);
  void Begin(const v1::FollowFileResponse& first);
  absl::Status Take(const v1::FollowFileResponse& message);
  // Reads what is to be read of the last cut, and lets go of those before.
  absl::Status ReadCut();
  // kOutOfRange: the server holds the cut no more, and some is still missing.
  absl::Status ReadMissing();
  absl::Status ReadRange(Extent range);
  absl::Status Close(int64_t cut);
  // Makes `call` again as long as the server is too busy for it, within a bound.
  absl::Status Insist(absl::FunctionRef<absl::Status()> call);
  void CountHeld();
  absl::Status Put(uint64_t offset, std::string_view data);

  const std::unique_ptr<rpc::Client> client_;
  const std::string name_;
  const Reads reads_;
  const std::string reader_id_;
  std::unique_ptr<rpc::FollowStream> stream_;  // null: none yet, or it has ended
  Inbox inbox_;
  std::thread receiver_;
  int64_t cut_ = 0;              // the last one; 0: none
  int64_t held_cut_ = 0;         // the last one that counts as held
  std::string image_;            // `cut_`, but for
  ExtentSet missing_;            // these, which are of older ones
  std::vector<int64_t> passed_;  // cuts before it that the server holds for this reader
  std::string file_id_;
  SubscriptionCounts counts_;
};

}  // namespace h5mirror::bench

#endif  // H5MIRROR_BENCH_SUBSCRIPTION_H_
