// One cut of a file, as it goes to all followers.
#ifndef H5MIRROR_SERVER_LIVE_PUBLICATION_H_
#define H5MIRROR_SERVER_LIVE_PUBLICATION_H_

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/extent.h"
#include "grpcpp/support/byte_buffer.h"
#include "h5mirror/v1/snapshots.pb.h"
#include "onion_store/file.h"

namespace h5mirror::server {

// The messages that bring a follower from one cut to another. A message is made when it is needed.
// Messages of small changes are made once, and shared by all followers that have the same cut.
// Thread-safe.
class CutMessages {
 public:
  // The size of one message.
  static constexpr uint64_t kPartBytes = 256 << 10;
  // Messages of smaller changes stay in memory while the cut is the newest one.
  static constexpr uint64_t kKeptBytesMax = 4 << 20;

  enum class Keep : uint8_t { kNone, kSmall };

  // `first`: all fields but the metadata and `last`. `metadata`: the ranges to send, in order.
  CutMessages(std::shared_ptr<store::Snapshot> snapshot, v1::FollowFileResponse first,
              const std::vector<Extent>& metadata, Keep keep);

  // Message `index`, from 0 on; unset behind the last one. Errors: those of Snapshot::Read().
  absl::StatusOr<std::optional<grpc::ByteBuffer>> Get(size_t index);
  // From now on no message stays in memory. A follower that still uses these costs one message in
  // flight.
  void KeepNoMore();
  // The bytes of the messages in memory.
  uint64_t kept_bytes();

 private:
  struct Kept {
    std::optional<grpc::ByteBuffer> message = std::nullopt;
    bool is_being_made = false;
  };

  absl::StatusOr<grpc::ByteBuffer> Make(size_t index) const;

  const std::shared_ptr<store::Snapshot> snapshot_;
  const v1::FollowFileResponse first_;
  const std::vector<std::vector<Extent>> parts_;  // the metadata of each message, at least one
  absl::Mutex mutex_;
  std::vector<Kept> kept_ ABSL_GUARDED_BY(mutex_);  // empty: no message stays in memory
};

// Thread-safe.
class Publication {
 public:
  // For how many different former cuts of followers messages are shared.
  static constexpr size_t kChangesMax = 8;

  Publication(std::shared_ptr<store::File> file, std::shared_ptr<store::Snapshot> snapshot,
              store::FileId file_id, absl::Time time, bool has_writer);

  store::CutNumber cut() const { return snapshot_->info().cut; }
  const std::shared_ptr<store::Snapshot>& snapshot() const { return snapshot_; }
  store::File& file() const { return *file_; }
  // 16 bytes.
  std::string file_id() const { return std::string(file_id_.begin(), file_id_.end()); }

  // The messages for a follower that has the cut `from` of the file `file_id` (0, or another file's
  // id: it has none), with at most that many bytes of metadata.
  std::shared_ptr<CutMessages> MessagesFrom(store::CutNumber from, std::string_view file_id,
                                            uint64_t metadata_bytes_max);

  // A newer cut has come. A follower that stops reading keeps its old publication. So this one
  // keeps no messages any more, and makes them for each follower alone.
  void EndSharing();
  // The bytes of all messages in memory.
  uint64_t kept_bytes();

 private:
  using Key = std::pair<store::CutNumber, uint64_t>;

  std::shared_ptr<CutMessages> MakeMessages(store::CutNumber from, uint64_t metadata_bytes_max,
                                            CutMessages::Keep keep);

  const std::shared_ptr<store::File> file_;
  const std::shared_ptr<store::Snapshot> snapshot_;
  const store::FileId file_id_;
  const absl::Time time_;
  const bool has_writer_;
  absl::Mutex mutex_;
  bool is_shared_ ABSL_GUARDED_BY(mutex_) = true;
  std::map<Key, std::shared_ptr<CutMessages>> messages_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_LIVE_PUBLICATION_H_
