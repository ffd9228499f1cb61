// Reads the bytes of one version: any range, small or large, in any order. Small reads come from
// memory. Bytes that are read in order are fetched ahead.
#ifndef H5MIRROR_RPC_VERSION_SOURCE_H_
#define H5MIRROR_RPC_VERSION_SOURCE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rpc/block_cache.h"
#include "rpc/client.h"
#include "rpc/read_ahead.h"
#include "rpc/scattered_reads.h"

namespace h5mirror::rpc {

// Takes `data` at `offset`; a failure ends the read and is returned from it.
using RangeSink = absl::FunctionRef<absl::Status(uint64_t offset, std::string_view data)>;

// The metadata to come with a range of metadata: blocks of 64 KiB, whole but for the last one, in
// which the server knows of metadata.
struct MetadataAhead {
  uint64_t from = 0;          // the first blocks at or behind this
  uint64_t length_bytes = 0;  // about so many bytes
  RangeSink sink;             // for one or more whole blocks, or pages
  uint64_t next = 0;          // filled in: the start of the next blocks; 0: there are no more
  bool pages = false;         // pages of 4 KiB will do instead of blocks
};

// Reads [offset, offset + length) of one version. Calls the sink in order of offset; bytes that the
// sink does not get are zeros. `ahead` is null for raw data, and may be ignored.
using RangeReader = std::function<absl::Status(uint64_t offset, uint64_t length, RangeSink sink,
                                               MetadataAhead* ahead)>;

// Reads a version of a file through `client`, which must outlive it. Checks each message against
// its checksum, and that the version is still `version`.
RangeReader RangesOf(Client& client, std::string name, const v1::Version& version);

// The checks that RangesOf() makes, for other readers of ReadVersion's answers.
// Errors: kDataLoss           the bytes were damaged on the way.
//         kFailedPrecondition it is another version than `version`: the file was made again.
absl::Status CheckAnswer(const v1::ReadVersionResponse& answer, const v1::Version& version);

// `opened` is the answer to an open, and `now` comes with a later read of that cut. kOutOfRange:
// `now` is of another file, which has taken the name, or of another generation.
absl::Status CheckSnapshot(const v1::Snapshot& now, const v1::Snapshot& opened);

// For range readers over ReadVersion and ReadSnapshot: the request, and how far its answers have
// come.
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

// Reads in ranges of whole 64 KiB blocks.
//
// - A read that goes on where the last fetch of its kind ended doubles the next fetch: from one
// block
//   up to 8 MiB (1 MiB of metadata), at most a quarter of the cache.
// - Any other read starts at one block again. If it is raw data of half a block or more, it fetches
//   just these bytes. Once more of the version was read like that, blocks around them come too
//   (rpc/scattered_reads.h).
// - Raw data that was read in order for a MiB or so comes in a call that stays open, if there is a
//   stream reader.
// - With each fetch of metadata comes other metadata from anywhere in the version: 256 KiB, and
// twice
//   as much each time, up to 8 MiB at once and three quarters of the cache in all. It comes by
//   blocks, or of a version larger than that by pages of 4 KiB. So a reader of a few objects gets
//   little more than these, and a reader of all objects waits for a few answers only.
//
// Thread-compatible. Between two calls only a ReadAhead may be open.
class VersionSource {
 public:
  // `identity` names the version within `cache`.
  VersionSource(const std::string& identity, uint64_t size_bytes, RangeReader reader,
                std::shared_ptr<BlockCache> cache, StreamReader stream = nullptr);
  ~VersionSource();

  uint64_t size_bytes() const { return size_bytes_; }

  // Takes the version's first bytes, one block or all of it, that the caller has already.
  void Preload(std::string bytes);

  // A source of bytes on this host. Fills the beginning of `out`, a range within the version, and
  // returns how many bytes; fewer than all: it lacks the next one.
  using KnownBytes = std::function<uint64_t(uint64_t offset, absl::Span<char> out)>;
  // `known` is tried first. `has_metadata`: it has all metadata, so that none is fetched ahead.
  void UseKnown(KnownBytes known, bool has_metadata);
  // Blocks that readers of this host share. As KnownBytes; the rest is fetched.
  using SharedBytes = std::function<uint64_t(uint64_t offset, absl::Span<char> out, ReadKind kind)>;
  void UseShared(SharedBytes shared) { shared_ = std::move(shared); }

  // Fills `out` with the bytes [offset, offset + out.size()); beyond the end: zeros. A failed read
  // leaves `out` undefined and may be repeated. Errors: the range reader's.
  absl::Status Read(uint64_t offset, absl::Span<char> out, ReadKind kind);

 private:
  // Copies the beginning of `out` from the block of `offset`. Returns how many bytes; 0: the cache
  // has lost it.
  uint64_t CopyFromCache(uint64_t offset, absl::Span<char> out);
  // Fills the beginning of `out` from sources on this host. Returns how many bytes.
  uint64_t ReadHere(uint64_t offset, absl::Span<char> out, ReadKind kind);
  // The end of the last fetch of a kind, and its length.
  struct Run {
    uint64_t end = UINT64_MAX;
    uint64_t window_bytes = 0;
  };

  // How many bytes from `offset` on no block has, at most `length`.
  uint64_t MissingBytes(uint64_t offset, uint64_t length);
  // Gets bytes for `out`, of which the cache has none. Returns how many at its beginning it has
  // got.
  absl::StatusOr<uint64_t> Obtain(uint64_t offset, absl::Span<char> out, ReadKind kind);
  // Takes bytes from the open call; 0: it has none of them.
  uint64_t TakeAhead(uint64_t offset, absl::Span<char> out);
  // Begins such a call, if `offset` goes on a run. False: it does not.
  bool StartAhead(uint64_t offset);
  void StopAhead();
  absl::Status Fetch(uint64_t offset, absl::Span<char> out, ReadKind kind);
  absl::Status FetchExactly(uint64_t offset, absl::Span<char> out);
  // The blocks to fetch for a scattered read: `wanted`, or more.
  BlockRange AroundOf(BlockRange wanted);
  // The bytes, with others that come ahead.
  absl::Status FetchAround(BlockRange around, BlockRange wanted, uint64_t offset,
                           absl::Span<char> out);
  // The least length of a fetch at `begin`, for bytes that are missing from `offset` on.
  uint64_t NextWindow(uint64_t offset, uint64_t begin, ReadKind kind);
  // The bound on all metadata that comes ahead.
  uint64_t AheadBudget();
  // The bytes of metadata that come with the next fetch of metadata; 0: none.
  uint64_t NextAheadBytes();
  absl::Status KeepAhead(uint64_t offset, std::string_view bytes);
  // Copies the beginning of `out` from a page that came ahead. Returns how many bytes.
  uint64_t CopyFromPage(uint64_t offset, absl::Span<char> out);

  const uint64_t size_bytes_;
  const RangeReader reader_;
  const std::shared_ptr<BlockCache> cache_;
  const uint64_t owner_;
  KnownBytes known_;           // empty: there is no such source
  SharedBytes shared_;         // the same
  const uint64_t page_owner_;  // of pages, in blocks that the cache does not have as a whole
  const StreamReader stream_;
  std::array<Run, 2> runs_;
  ScatteredReads scattered_;
  bool brings_ahead_ = false;  // BlockCache::BeginAhead() was called
  std::unique_ptr<ReadAhead> ahead_;
  uint64_t ring_bytes_ = 0;  // of `ahead_`, reserved in the cache
  int fetches_beside_ahead_ = 0;
  int vain_streams_ = 0;
  uint64_t ahead_from_ = 0;
  uint64_t ahead_window_bytes_ = 0;
  uint64_t ahead_bytes_ = 0;  // of metadata that has come ahead
  bool ahead_ended_ = false;
};

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_VERSION_SOURCE_H_
