// One file of the store: its stage, its cuts, its versions and its head.
#ifndef H5MIRROR_ONION_STORE_FILE_H_
#define H5MIRROR_ONION_STORE_FILE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "onion_store/metadata_map.h"
#include "onion_store/types.h"
#include "onion_store/verify.h"

namespace h5mirror::store {

// What Cut() needs to know.
struct CutRequest {
  BarrierKind kind = BarrierKind::kTick;
  uint64_t size_bytes = 0;  // the file ends here; what was written beyond is cut off
  BarrierId barrier;
  Provenance provenance;  // for kCommit; `comment` too
  LocalStat local;        // set at a clean close
  // With kCommit: who repeats a request under this id gets the version of the first.
  std::optional<std::array<uint8_t, 16>> request_id;
  // With kSync: the newest durable cut of then becomes a version at this time, or as the store
  // closes, unless a newer version was made before. Does not survive a crash.
  absl::Time version_at = absl::InfiniteFuture();
};

// What Keep() came to.
struct MadeVersion {
  VersionInfo version;
  bool unchanged = false;  // it existed before, and nothing has changed since
};

// What became of a durable cut.
struct DurableCut {
  CutNumber cut = 0;
  BarrierId barrier;
  VersionNumber version = 0;  // the newest version, when the cut is a commit
  bool unchanged = false;     // the commit changed no bytes and made no version
  bool stopped = false;       // it made no version: the history is stopped (Store::StopHistory)
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

  // Fills `out` with the bytes of `ranges`, one after the other: rising and apart, and as many
  // bytes as `out` has. Cheaper than a Read() of each where they are many, close to each other and
  // not in the head any more. Errors as Read().
  virtual absl::Status ReadRanges(absl::Span<const Extent> ranges, absl::Span<char> out) = 0;

  // The next range at or after `offset` that may hold bytes other than zero (from holes
  // of the head and of pre-images); length 0 at the end.
  virtual absl::StatusOr<Extent> NextData(uint64_t offset) = 0;

  // Where the version's pages from `page` on lie: runs that follow each other, as many as fit
  // into a bounded amount of memory, at least one; none at the end. Reads no bytes of pages.
  // True at this moment: a page may be saved elsewhere in the next. But bytes that were read from
  // the head before this call, of a page that it places there, are the version's if they match the
  // checksum that it gives.
  virtual absl::StatusOr<std::vector<PlacedRun>> Locate(uint64_t page, PageSums sums) = 0;
};

// Bytes of one cut, whatever becomes of the file meanwhile. Thread-safe. The cut is held as long as
// anybody has a Snapshot of it, or until it costs too much (StoreOptions::snapshot_max_bytes).
class Snapshot {
 public:
  virtual ~Snapshot() = default;
  virtual const CutInfo& info() const = 0;
  virtual uint32_t page_size_bytes() const = 0;

  // As VersionReader::Read(). Errors: kDataLoss    a checksum fails, or the head was damaged.
  //                                   kOutOfRange  "snapshot expired": the cut is not held any
  //                                   more; kUnavailable the file was moved, removed or has failed.
  virtual absl::Status Read(uint64_t offset, absl::Span<char> out) const = 0;
  // As VersionReader::ReadRanges(): cheaper than a Read() of each where they are close to each
  // other. Damage of what lies between them is none of theirs. Errors as Read().
  virtual absl::Status ReadRanges(absl::Span<const Extent> ranges, absl::Span<char> out) const = 0;
  // As VersionReader::NextData().
  virtual absl::StatusOr<Extent> NextData(uint64_t offset) const = 0;
  // Lets go of the cut for all who hold it.
  virtual void Expire() = 0;
  virtual bool expired() const = 0;
};

// The ranges of bytes in which two versions may differ. Thread-compatible; any number at once
// beside a writer.
class ChangeReader {
 public:
  virtual ~ChangeReader() = default;
  virtual const VersionInfo& from() const = 0;
  virtual const VersionInfo& to() const = 0;
  virtual uint32_t page_size_bytes() const = 0;

  // Replaces `ranges` by the next ones, in order of offset and disjoint: whole pages but for the
  // end of either version. There may be none of them in a call that took long. False: that is all.
  // Errors: kDataLoss    the versions had to be read, and a checksum fails.
  //         kOutOfRange  one of them was dropped meanwhile.
  virtual absl::StatusOr<bool> Next(std::vector<Extent>* ranges) = 0;
};

// How far a prune has come.
struct PruneProgress {
  int64_t versions_dropped = 0;  // and their pages given to older versions, or deleted
  int64_t versions_to_drop = 0;
  uint64_t freed_bytes = 0;  // of the disk, given back
  bool done = false;
  // Why some space could not be given back yet; empty: all was.
  std::string left;
};

// One prune, driven by whoever wants it. Not thread-safe; keeps its file alive. Destroyed before it
// is done, or cut short by a crash, it leaves a whole history, and the next one goes on with it.
class PruneJob {
 public:
  virtual ~PruneJob() = default;
  // Does some milliseconds of work. Errors: kUnavailable the file must be opened again;
  // kResourceExhausted the disk is full, nothing has changed.
  virtual absl::StatusOr<PruneProgress> Step() = 0;
};

// Asks what prunes of a file would give back, from its index alone. Not thread-safe; keeps its file
// alive. What is written or pruned meanwhile makes the answer less true, and nothing else.
class EstimateJob {
 public:
  virtual ~EstimateJob() = default;
  // Looks at some thousand rows; true when it has seen all.
  virtual absl::StatusOr<bool> Step() = 0;
  // Of each plan, once Step() returned true: bytes of the disk.
  virtual const std::vector<uint64_t>& freed_bytes() const = 0;
};

// Thread-safe. Writes of one file are serialised by the file's own lock.
class File {
 public:
  virtual ~File() = default;

  virtual const std::string& name() const = 0;
  virtual const FileId& file_id() const = 0;
  virtual absl::StatusOr<FileInfo> Info() = 0;

  // ---- Writing. Every call names the token; a fenced one gets kAborted. ----

  // Grants the lease: the new token is larger than every one before, durably, and fences
  // the holder before. What the fenced session wrote after its last cut is dropped and
  // that cut is kept as with SessionEnd::kLost. Whether a lease may be taken is the
  // caller's decision (server/state/lease_table.h).
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

  // Fills `out` with the session's own view: its writes, cut or not, over the newest cut; beyond
  // the end zeros. For whoever has no copy of his own. The head's bytes are not compared with their
  // checksums, as a plain file's are not.
  // Errors: kAborted the token is fenced; those of reading stage and head.
  virtual absl::Status ReadNewest(Token token, uint64_t offset, absl::Span<char> out) = 0;

  // Ends a cut: it is visible when this returns its number. `on_durable` is called once,
  // from a thread of the store, when the cut is durable or can never be. For a tick that
  // is within durable_every; for the other kinds as soon as can be. Cuts become durable in order.
  virtual absl::StatusOr<CutNumber> Cut(
      Token token, CutRequest request,
      std::function<void(absl::StatusOr<DurableCut>)> on_durable) = 0;

  // Ends the session; the token is worth nothing any more. What follows the last cut is
  // dropped. Returns at once; the rest is background work.
  virtual absl::Status End(Token token, SessionEnd end) = 0;

  // ---- Snapshots ----

  // 0: there is none yet.
  virtual CutNumber NewestCut() = 0;

  // Holds the newest cut, durable or not; what is written later does not change it. Costs nothing
  // by itself; what is overwritten while it is held is kept for it. kNotFound: there is no cut yet.
  virtual absl::StatusOr<std::shared_ptr<Snapshot>> PinNewestCut() = 0;

  // What is known of where its metadata is. Lives as long as the file.
  virtual MetadataMap& metadata() = 0;

  // From now on, for as long as this object lives, what each cut changes is noted; costs a pass
  // over the ranges that it changed. In a store of many files it is noted unasked for a minute
  // after a file with a history was opened, and in brief: those who followed it before a restart
  // may come back after the writer.
  virtual void NoteChanges() = 0;
  // Where the cut `to` may differ from the older one `from`, in order. kOutOfRange: anywhere; it is
  // not known, they are of different generations, or `from` was discarded by a crash.
  virtual absl::StatusOr<std::vector<Extent>> ChangesBetween(CutNumber from, CutNumber to) = 0;

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

  // Makes a version of the newest cut, unless nothing has changed since the newest version; durable
  // when it returns. `request_id` makes a repeat harmless. Does not disturb a writer.
  // Errors: kFailedPrecondition the file has no cut yet; kResourceExhausted its history is stopped.
  virtual absl::StatusOr<MadeVersion> MakeVersion(const Provenance& provenance,
                                                  const std::array<uint8_t, 16>& request_id) = 0;

  // The version that a request of this id made. kNotFound.
  virtual absl::StatusOr<VersionInfo> FindRequest(const std::array<uint8_t, 16>& request_id) = 0;
  // Where the two differ; either may be the older one, 0 is the newest. Costs what was written
  // between them, or all of both where one is of another generation. Errors: as OpenVersion().
  virtual absl::StatusOr<std::unique_ptr<ChangeReader>> OpenChanges(VersionNumber from,
                                                                    VersionNumber to) = 0;

  // Makes a new version with the content of `version`; durable when it returns, the head
  // follows in the background. `request_id` (16 bytes) makes a repeat harmless. The
  // caller has seen to it that nobody writes (or has fenced the writer by Acquire()).
  virtual absl::StatusOr<VersionInfo> Rollback(VersionNumber version, const Provenance& provenance,
                                               const std::array<uint8_t, 16>& request_id) = 0;

  // Drops `versions`, and goes on with what an earlier prune left, step by step. Numbers that do
  // not exist, and those from OldestNeeded() on, are left out. Errors: kFailedPrecondition  another
  // one is under way.
  virtual absl::StatusOr<std::unique_ptr<PruneJob>> StartPrune(
      std::vector<VersionNumber> versions) = 0;
  // The oldest version that cannot be dropped now: the newest that the head holds. 0: there is
  // none.
  virtual absl::StatusOr<VersionNumber> OldestNeeded() = 0;

  // Bytes on the disk of the pages that were saved for `version`: what dropping it, and none else,
  // gives back at most. Costs a look at each of its rows.
  virtual absl::StatusOr<uint64_t> SavedBytes(const VersionInfo& version) = 0;
  // About how much dropping the versions of each plan would give back, with what earlier prunes
  // left: an empty plan asks for that alone. As with StartPrune(), numbers that cannot be dropped
  // are left out.
  virtual absl::StatusOr<std::unique_ptr<EstimateJob>> StartEstimate(
      const std::vector<std::vector<VersionNumber>>& plans) = 0;

  // Checks index, stage, heads and saved pages, step by step. kInvalidArgument: a bad subset.
  virtual absl::StatusOr<std::unique_ptr<VerifyJob>> StartVerify(VerifySubset subset) = 0;

  // Waits until the head on disk holds the newest durable cut, and every cut that is due: all but
  // the ticks of a living writer. kDeadlineExceeded.
  virtual absl::Status WaitApplied(absl::Duration timeout) = 0;

  // Keeps `origin` and `local` as those of the newest version (adopt).
  // kAborted: `version` is not the newest.
  virtual absl::Status SetOrigin(VersionNumber version, const Origin& origin,
                                 const LocalStat& local) = 0;

  // Keeps that the local file was compared with `version` now; durable when it returns. Does not
  // disturb a writer. Errors: kInvalidArgument a version that never was.
  virtual absl::StatusOr<CheckInfo> RecordCheck(VersionNumber version,
                                                uint64_t differing_bytes) = 0;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_H_
