// One file of the store: its stage, its cuts, its versions and its head.
#ifndef H5MIRROR_ONION_STORE_FILE_H_
#define H5MIRROR_ONION_STORE_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "onion_store/types.h"

namespace h5mirror::store {

// What Cut() needs to know.
struct CutRequest {
  BarrierKind kind = BarrierKind::kTick;
  uint64_t size_bytes = 0;  // the file ends here; what was written beyond is cut off
  BarrierId barrier;
  Provenance provenance;  // for kCommit; `comment` too
  LocalStat local;        // set at a clean close
};

// What became of a durable cut.
struct DurableCut {
  CutNumber cut = 0;
  BarrierId barrier;
  VersionNumber version = 0;  // the newest version, when the cut is a commit
  bool unchanged = false;     // the commit changed no bytes and made no version
};

// How a session ended.
enum class SessionEnd : uint8_t {
  // In order. The last cut stays (a tick is made durable, but no version).
  kClean,
  // The writer vanished. Its last cut becomes a version "writer lost", unless it is one.
  kLost,
};

// How a session starts; see INTENT_* in mirror.proto.
enum class SessionStart : uint8_t {
  // Goes on from the newest cut.
  kContinue,
  // A new generation: written to a hidden file, swapped in at its first durable commit
  // (or sync, or when the session ends with a cut). The old head stays in the history.
  kNewGeneration,
};

// Bytes of one version or cut. Thread-compatible; any number at once beside a writer.
class VersionReader {
 public:
  virtual ~VersionReader() = default;
  virtual const VersionInfo& info() const = 0;
  virtual uint32_t page_size_bytes() const = 0;

  // Fills `out` with the bytes [offset, offset + out.size()); beyond the end: zeros.
  // Each page is checked against its checksum.
  // Errors: kDataLoss    a checksum fails; the message names file, version and page.
  //         kOutOfRange  the version was dropped meanwhile.
  virtual absl::Status Read(uint64_t offset, absl::Span<char> out) = 0;

  // The next range at or after `offset` that may hold bytes other than zero (from holes
  // of the head and of pre-images); length 0 at the end.
  virtual absl::StatusOr<Extent> NextData(uint64_t offset) = 0;

  // Where the version's pages from `page` on lie: runs that follow each other, as many as fit
  // into a bounded amount of memory, at least one; none at the end. Reads no bytes of pages.
  // True at this moment: a page may be saved elsewhere in the next.
  virtual absl::StatusOr<std::vector<PlacedRun>> Locate(uint64_t page) = 0;
};

// Thread-safe. Writes of one file are serialised by the file's own lock.
class File {
 public:
  virtual ~File() = default;

  virtual const std::string& name() const = 0;
  virtual absl::StatusOr<FileInfo> Info() = 0;

  // ---- Writing. Every call names the token; a fenced one gets kAborted. ----

  // Grants the lease: the new token is larger than every one before, durably, and fences
  // the holder before. What the fenced session wrote after its last cut is dropped and
  // that cut is kept as with SessionEnd::kLost. Whether a lease may be taken is the
  // caller's decision (server/lease_table.h).
  virtual absl::StatusOr<Token> Acquire() = 0;

  // Starts the session of `token`. `origin` and `mode_bits` (0..0777) are kept with the
  // first cut.
  virtual absl::Status Begin(Token token, SessionStart start, const Origin& origin,
                             uint32_t mode_bits) = 0;

  // Takes the bytes of `extents`, in order; `pieces` concatenated are the bytes of all
  // extents one after the other. The bytes are not kept after the call: they are in the
  // stage or at their place in the head. Later extents win where they overlap.
  // Errors: kInvalidArgument    offset + length beyond 2^63-1, or sizes do not add up.
  //         kAborted            the token is fenced.
  //         kResourceExhausted  disk full or a limit reached; the session can only end.
  virtual absl::Status Write(Token token, absl::Span<const Extent> extents,
                             absl::Span<const std::string_view> pieces) = 0;

  // The file ends at `size_bytes`. Ordered with the writes around it.
  virtual absl::Status Truncate(Token token, uint64_t size_bytes) = 0;

  // Ends a cut: it is visible when this returns its number. `on_durable` is called once,
  // from a thread of the store, when the cut is durable or can never be. For a tick that
  // is within durable_every; for the other kinds as soon as can be. Cuts become durable in order.
  virtual absl::StatusOr<CutNumber> Cut(
      Token token, CutRequest request,
      std::function<void(absl::StatusOr<DurableCut>)> on_durable) = 0;

  // Ends the session; the token is worth nothing any more. What follows the last cut is
  // dropped. Returns at once; the rest is background work.
  virtual absl::Status End(Token token, SessionEnd end) = 0;

  // ---- History ----

  // At most `limit` versions of `range`, newest first.
  virtual absl::StatusOr<std::vector<VersionInfo>> ListVersions(const VersionRange& range,
                                                                size_t limit) = 0;

  // The version that has `back` newer ones, of those that exist; the newest at or before the
  // server time `time`; the one with a tag. kNotFound says why there is none.
  virtual absl::StatusOr<VersionInfo> FindVersionBack(int64_t back) = 0;
  virtual absl::StatusOr<VersionInfo> FindVersionAt(absl::Time time) = 0;
  virtual absl::StatusOr<VersionInfo> FindVersionTagged(std::string_view tag) = 0;

  // Gives `version` (0: the newest) a tag, and returns the version that had it before (0: none);
  // durable when it returns.
  // Errors: kInvalidArgument  CheckTag; kNotFound, kOutOfRange  no such version;
  //         kAlreadyExists    another version has it, and `mode` is kKeep.
  virtual absl::StatusOr<VersionNumber> Tag(VersionNumber version, std::string_view tag,
                                            TagMode mode) = 0;
  // Takes a tag away, and returns the version that had it; durable when it returns. kNotFound.
  virtual absl::StatusOr<VersionNumber> Untag(std::string_view tag) = 0;

  // version 0: the newest. Errors: kNotFound, kOutOfRange (pruned).
  virtual absl::StatusOr<VersionInfo> GetVersion(VersionNumber version) = 0;
  virtual absl::StatusOr<std::unique_ptr<VersionReader>> OpenVersion(VersionNumber version) = 0;

  // Makes a new version with the content of `version`; durable when it returns, the head
  // follows in the background. `request_id` (16 bytes) makes a repeat harmless. The
  // caller has seen to it that nobody writes (or has fenced the writer by Acquire()).
  virtual absl::StatusOr<VersionInfo> Rollback(VersionNumber version, const Provenance& provenance,
                                               const std::array<uint8_t, 16>& request_id) = 0;

  // Waits until the head on disk holds the newest durable cut, and every cut that is due: all but
  // the ticks of a living writer. kDeadlineExceeded.
  virtual absl::Status WaitApplied(absl::Duration timeout) = 0;

  // Keeps `origin` and `local` as those of the newest version (adopt).
  // kAborted: `version` is not the newest.
  virtual absl::Status SetOrigin(VersionNumber version, const Origin& origin,
                                 const LocalStat& local) = 0;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_H_
