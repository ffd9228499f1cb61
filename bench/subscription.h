// One subscriber of a file: it hears of cuts, and has a part of the newest one.
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

// The bytes to read of each cut. Metadata comes with the cut itself.
enum class Reads : uint8_t {
  kAll,       // raw data too, if it has changed
  kMetadata,  // raw data at the end
};

// The counts of one subscriber, from its first whole cut on.
struct SubscriptionCounts {
  int64_t cuts = 0;         // that it had: all bytes, or with kMetadata all metadata
  int64_t passed_over = 0;  // cuts of the file that it did not have
  // Cuts whose pins expired while they were read: the missing bytes were read of a later cut.
  int64_t expired = 0;
  // Calls that a busy server refused, or answered too late; each was repeated a little later.
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
  // there will be none, because no writer has the file open any more. kNotFound: no such file yet.
  absl::StatusOr<bool> Next();
  // Call it after Next() returned false: reads the missing bytes of the last cut.
  absl::Status Complete();

  int64_t cut() const { return cut_; }
  // All bytes of the last cut, after Complete().
  const std::string& image() const { return image_; }
  const SubscriptionCounts& counts() const { return counts_; }

 private:
  // Messages of the call that have come, and that no thread has taken yet.
  struct Inbox {
    bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return is_over || !cuts.empty(); }

    absl::Mutex mutex;
    std::vector<std::vector<v1::FollowFileResponse>> cuts ABSL_GUARDED_BY(mutex);
    bool is_over ABSL_GUARDED_BY(mutex) = false;
  };

  Subscription(std::unique_ptr<rpc::Client> client, std::string name, Reads reads);

  void Start();
  static void Receive(rpc::FollowStream& stream, Inbox& inbox);

  // Takes a cut, message by message. The first message tells what will come.
  absl::Status TakeCut(const std::vector<v1::FollowFileResponse>& messages);
  void Begin(const v1::FollowFileResponse& first);
  absl::Status Take(const v1::FollowFileResponse& message);
  // Reads the wanted bytes of the last cut, and ends the pins of earlier cuts.
  absl::Status ReadCut();
  // kOutOfRange: the server no longer pins the cut, and some bytes are still missing.
  absl::Status ReadMissing();
  absl::Status ReadRange(Extent range);
  absl::Status Close(int64_t cut);
  // Repeats `call` while the server is too busy for it, within a bound.
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
  int64_t held_cut_ = 0;         // the last cut that counts as had
  std::string image_;            // `cut_`, but for
  ExtentSet missing_;            // these, which are of older cuts
  std::vector<int64_t> passed_;  // cuts before it that the server pins for this reader
  std::string file_id_;
  SubscriptionCounts counts_;
};

}  // namespace h5mirror::bench

#endif  // H5MIRROR_BENCH_SUBSCRIPTION_H_
