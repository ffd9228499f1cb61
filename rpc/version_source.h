// The bytes of one version as a reader wants them: any range, small or large, in any order. Small
// reads come from memory; what is read one after the other is fetched ahead.
#ifndef H5MIRROR_RPC_VERSION_SOURCE_H_
#define H5MIRROR_RPC_VERSION_SOURCE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rpc/block_cache.h"
#include "rpc/client.h"
#include "rpc/read_ahead.h"

namespace h5mirror::rpc {

// Takes `data` at `offset`; a failure ends the read and is returned from it.
using RangeSink = absl::FunctionRef<absl::Status(uint64_t offset, std::string_view data)>;

// What is to come with a range of metadata: blocks of 64 KiB, but for the last one whole, in which
// the server knows of metadata.
struct MetadataAhead {
  uint64_t from = 0;          // the first ones at or behind it,
  uint64_t length_bytes = 0;  // about so many bytes
  RangeSink sink;             // for one or more whole blocks, or pages
  uint64_t next = 0;          // filled in: where the next ones begin; 0: there are no more
  bool pages = false;         // pages of 4 KiB will do instead of blocks
};

// Reads [offset, offset + length) of one version. Calls the sink in order of offset; what it is
// not given are zeros. `ahead` is null for raw data, and need not be heeded.
using RangeReader = std::function<absl::Status(uint64_t offset, uint64_t length, RangeSink sink,
                                               MetadataAhead* ahead)>;

// Reads a version of a file through `client`, which must outlive it. Checks each message against
// its checksum, and that the version is still `version`.
RangeReader RangesOf(Client& client, std::string name, const v1::Version& version);

// The checks of RangesOf(), for others who read ReadVersion's answers.
// Errors: kDataLoss           the bytes are not what the server sent.
//         kFailedPrecondition it is another version than `version`: the file was made again.
absl::Status CheckAnswer(const v1::ReadVersionResponse& answer, const v1::Version& version);

// `opened` is what an open was answered with, and `now` comes with a later read of that cut.
// kOutOfRange: it is a cut of another file, which has taken the name, or of another life of it.
absl::Status CheckSnapshot(const v1::Snapshot& now, const v1::Snapshot& opened);

// For range readers over ReadVersion and ReadSnapshot: what they ask for, and what has come.
template <typename Request>
void AskAhead(const MetadataAhead* ahead, Request& request) {
  if (ahead == nullptr) return;
  request.set_is_metadata(true);
  request.set_metadata_from(ahead->from);
  request.set_metadata_length_bytes(ahead->length_bytes);
  request.set_metadata_pages(ahead->pages);
}
template <typename Response>
absl::Status TakeData(const Response& answer, RangeSink sink, MetadataAhead* ahead) {
  if (ahead != nullptr && answer.metadata_next() != 0) ahead->next = answer.metadata_next();
  if (answer.data().empty()) return absl::OkStatus();
  if (!answer.ahead()) return sink(answer.offset(), answer.data());
  if (ahead == nullptr) return absl::OkStatus();
  if (answer.pieces().empty()) return ahead->sink(answer.offset(), answer.data());
  std::string_view rest = answer.data();
  for (const v1::ByteRange& piece : answer.pieces()) {
    const absl::Status taken = ahead->sink(piece.offset(), rest.substr(0, piece.length_bytes()));
    if (!taken.ok()) return taken;
    rest.remove_prefix(std::min<uint64_t>(piece.length_bytes(), rest.size()));
  }
  return absl::OkStatus();
}

// Reads in ranges of whole 64 KiB blocks. A read that goes on where the last fetch of its kind
// ended doubles what is fetched next, from one block up to 8 MiB (1 MiB of metadata), at most a
// quarter of the cache; any other starts at one block again, and where it is raw data of half a
// block or more, fetches just these bytes. Raw data that was read in order for a MiB or so comes
// in a call that stays open, where there is a stream reader. With each fetch of metadata comes
// other metadata, wherever it lies: 256 KiB, and twice as much each time, up to 8 MiB at once
// and three quarters of the cache in all; by blocks, or of a version larger than that by pages of
// 4 KiB. So who looks at a few objects gets little more than these, and who goes through all of
// them waits for a few answers only.
//
// Thread-compatible. Keeps nothing open between two calls but for a ReadAhead.
class VersionSource {
 public:
  // `identity` names the version among all that `cache` is used for.
  VersionSource(const std::string& identity, uint64_t size_bytes, RangeReader reader,
                std::shared_ptr<BlockCache> cache, StreamReader stream = nullptr);
  ~VersionSource();

  uint64_t size_bytes() const { return size_bytes_; }

  // The version's first bytes, one block or all of it, as read by others.
  void Preload(std::string bytes);

  // Bytes that are at hand in another way: false, some of a range within the version are not.
  using KnownBytes = std::function<bool(uint64_t offset, absl::Span<char> out)>;
  // They are looked for first. `has_metadata`: all of it is among them, so that none is fetched
  // ahead.
  void UseKnown(KnownBytes known, bool has_metadata);

  // Fills `out` with the bytes [offset, offset + out.size()); beyond the end: zeros. A failed read
  // leaves `out` undefined and may be repeated. Errors: the range reader's.
  absl::Status Read(uint64_t offset, absl::Span<char> out, ReadKind kind);

 private:
  // Where the last fetch of a kind ended, and how much was fetched.
  struct Run {
    uint64_t end = UINT64_MAX;
    uint64_t window_bytes = 0;
  };

  // The bytes from `offset` that no block holds, at most `length`.
  uint64_t MissingBytes(uint64_t offset, uint64_t length);
  // `out` is missing from the cache as a whole. Returns how many bytes of its beginning are there.
  absl::StatusOr<uint64_t> Obtain(uint64_t offset, absl::Span<char> out, ReadKind kind);
  // The same from the open call; 0: it has none of them.
  uint64_t TakeAhead(uint64_t offset, absl::Span<char> out);
  // Begins such a call, where `offset` goes on a run; false: that is not done.
  bool StartAhead(uint64_t offset);
  void StopAhead();
  absl::Status Fetch(uint64_t offset, absl::Span<char> out, ReadKind kind);
  absl::Status FetchExactly(uint64_t offset, absl::Span<char> out);
  // What a fetch at `begin`, for what is missing from `offset` on, is to bring at least.
  uint64_t NextWindow(uint64_t offset, uint64_t begin, ReadKind kind);
  // Of all metadata that comes ahead.
  uint64_t AheadBudget();
  // Of the metadata that comes with the next fetch of some; 0: none.
  uint64_t NextAheadBytes();
  absl::Status KeepAhead(uint64_t offset, std::string_view bytes);
  // Copies what a page that came ahead has of the beginning of `out`; returns how much.
  uint64_t CopyFromPage(uint64_t offset, absl::Span<char> out);

  const uint64_t size_bytes_;
  const RangeReader reader_;
  const std::shared_ptr<BlockCache> cache_;
  const uint64_t owner_;
  KnownBytes known_;           // empty: there are none
  const uint64_t page_owner_;  // of pages, in blocks that are not there as a whole
  const StreamReader stream_;
  std::array<Run, 2> runs_;
  std::unique_ptr<ReadAhead> ahead_;
  uint64_t ring_bytes_ = 0;  // of `ahead_`, reserved in the cache
  int fetches_beside_ahead_ = 0;
  int vain_streams_ = 0;
  uint64_t ahead_from_ = 0;
  uint64_t ahead_window_bytes_ = 0;
  uint64_t ahead_bytes_ = 0;  // that have come
  bool ahead_ended_ = false;
};

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_VERSION_SOURCE_H_
