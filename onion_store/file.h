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

// The arguments of Cut().
struct CutRequest {
  BarrierKind kind = BarrierKind::kTick;
  uint64_t size_bytes = 0;  // the end of the file; bytes beyond it are cut off
  BarrierId barrier;
  Provenance provenance;  // for kCommit; `comment` too
  LocalStat local;        // set only at a clean close
  // With kCommit: a repeat of a request under this id gets the version of the first one.
  std::optional<std::array<uint8_t, 16>> request_id;
  // With kSync: at this time, or when the store closes, the newest durable cut becomes a version,
  // unless a newer version was made before. Does not survive a crash.
  absl::Time version_at = absl::InfiniteFuture();
  // With kCommit: the cut becomes a version even if it changed nothing, unless the newest version
  // is of the same cut of the group.
  std::optional<GroupCut> group;
};

// The result of MakeVersion().
struct MadeVersion {
  VersionInfo version;
  bool unchanged = false;  // the version existed before, and nothing has changed since
};

// The result of Cut(), once the cut is durable.
struct DurableCut {
  CutNumber cut = 0;
  BarrierId barrier;
  VersionNumber version = 0;  // the newest version, when the cut is a commit
  bool unchanged = false;     // the commit changed no bytes and made no version
  bool stopped = false;       // the commit made no version, as Store::StopHistory() was called
};

// A long call asks it now and then: true ends the call with kCancelled. Null: it is not asked.
using IsCancelled = std::function<bool()>;

// Whether Promote() makes the version, or only says what it would do.
enum class PromoteMode : uint8_t { kMake, kTry };

// The arguments of Promote().
struct PromoteRequest {
  VersionNumber version = 0;  // of the fork; 0: its newest
  Provenance provenance;      // comment empty: "promotion of NAME@VERSION"
  std::array<uint8_t, 16> request_id{};
  PromoteMode mode = PromoteMode::kMake;
  IsCancelled is_cancelled = nullptr;
};

// The result of Promote().
struct Promotion {
  VersionInfo version;  // the new version; if none was made, the newest
  // The file has these bytes already: nothing was made.
  bool unchanged = false;
  VersionNumber promoted = 0;    // the version of the fork
  uint64_t differing_bytes = 0;  // upper bound; 0 also for a repeated request
};

// How a session ended.
enum class SessionEnd : uint8_t {
  // In order. The last cut stays; a tick becomes durable, but no version.
  kClean,
  // The writer vanished. Its last cut becomes a version, "writer lost", unless it is one.
  kLost,
};

// How a session starts; see INTENT_* in mirror.proto.
enum class SessionStart : uint8_t {
  // Goes on from the newest cut.
  kContinue,
  // A new generation. It is written to a hidden file, which becomes the head with the first durable
  // cut. The old head stays in the history.
  kNewGeneration,
};

// Reads the bytes of one version. Thread-compatible. Any number of readers may be open beside a
// writer.
class VersionReader {
 public:
  virtual ~VersionReader() = default;
  virtual const VersionInfo& info() const = 0;
  virtual uint32_t page_size_bytes() const = 0;

  // Fills `out` with the bytes [offset, offset + out.size()); beyond the end: zeros. Compares each
  // page with its checksum.
  // Errors: kDataLoss    a checksum differs, or the page is lost; the message names file, version
  //                      and page.
  //         kOutOfRange  the version was dropped meanwhile.
  virtual absl::Status Read(uint64_t offset, absl::Span<char> out) = 0;

  // Fills `out` with the bytes of `ranges`, one after the other. The ranges rise and are apart, and
  // have as many bytes as `out`. Cheaper than a Read() of each if the ranges are many, close to
  // each other and no longer in the head. Errors as Read().
  virtual absl::Status ReadRanges(absl::Span<const Extent> ranges, absl::Span<char> out) = 0;
  // Lets the disk begin to read the head's part of `extent`, for later reads. Promises nothing, and
  // waits for no disk.
  virtual void StartReading(Extent) {}

  // The next range at or after `offset` that may hold bytes other than zero; holes of the head are
  // skipped. Length 0: none.
  virtual absl::StatusOr<Extent> NextData(uint64_t offset) = 0;

  // The places of the version's pages from `page` on, as consecutive runs: at least one, and as
  // many as fit into a bounded amount of memory; none at the end. Reads no bytes of pages.
  //
  // The answer is true at this moment; later a page may be saved elsewhere. A caller that reads the
  // head itself must read it before this call. If the answer then places the page in the head, and
  // the bytes match the checksum in the answer, they are the version's.
  virtual absl::StatusOr<std::vector<PlacedRun>> Locate(uint64_t page, PageSums sums) = 0;
};

// Reads the bytes of one pinned cut, while the file goes on. Thread-safe. The cut stays pinned as
// long as there is a Snapshot of it, or until it costs too much (StoreOptions::snapshot_max_bytes).
class Snapshot {
 public:
  virtual ~Snapshot() = default;
  virtual const CutInfo& info() const = 0;
  virtual uint32_t page_size_bytes() const = 0;

  // As VersionReader::Read().
  // Errors: kDataLoss     a checksum differs, or the head was damaged.
  //         kOutOfRange   "snapshot expired": the cut is no longer pinned.
  //         kUnavailable  the file was moved, removed or has failed.
  virtual absl::Status Read(uint64_t offset, absl::Span<char> out) const = 0;
  // As VersionReader::ReadRanges(): cheaper than a Read() of each where the ranges are close to
  // each other. Damage between the ranges is no error. Errors as Read().
  virtual absl::Status ReadRanges(absl::Span<const Extent> ranges, absl::Span<char> out) const = 0;
  // As VersionReader::StartReading().
  virtual void StartReading(Extent) const {}
  // As VersionReader::NextData().
  virtual absl::StatusOr<Extent> NextData(uint64_t offset) const = 0;
  // Ends the pin, for all Snapshots of the cut.
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

  // Replaces `ranges` by the next ranges. They are in order of offset, disjoint, and whole pages
  // except at the end of either version. A call that took long may return none. False: these are
  // the last.
  // Errors: kDataLoss    the versions had to be read, and a checksum differs.
  //         kOutOfRange  one of the versions was dropped meanwhile.
  virtual absl::StatusOr<bool> Next(std::vector<Extent>* ranges) = 0;
};

// How far a prune has come.
struct PruneProgress {
  int64_t versions_dropped = 0;  // their rows moved to older versions, or were deleted
  int64_t versions_to_drop = 0;
  uint64_t freed_bytes = 0;  // of the disk, freed so far
  bool done = false;
  // Why some space could not be freed yet; empty: all of it was.
  std::string left;
};

// One prune; the caller drives it. Not thread-safe; keeps its file alive. If it is destroyed early,
// or a crash ends it, the history stays whole, and the next prune goes on from there.
class PruneJob {
 public:
  virtual ~PruneJob() = default;
  // Does some milliseconds of work.
  // Errors: kUnavailable        the file must be opened again.
  //         kResourceExhausted  the disk is full; this step changed nothing.
  virtual absl::StatusOr<PruneProgress> Step() = 0;
};

// Whether an archive job first seals the newest segment of saved pages, so that this segment goes
// too.
enum class SealSegment : uint8_t { kNo, kYes };

// Whether an archive has a copy of the file too: its head and its index, by which the file can be
// rebuilt without the disk (restore_root.h).
enum class ArchiveCopy : uint8_t {
  kNone,  // an existing copy is deleted
  kKeep,  // made again if the file has changed; seals the newest segment for it
};

// The arguments of StartArchive().
struct ArchiveRequest {
  SealSegment seal = SealSegment::kNo;
  // How many bytes of archived segments, the newest ones, also stay on the disk.
  uint64_t disk_bytes_max = 0;
  ArchiveCopy copy = ArchiveCopy::kNone;
};

// How far an archive job has come.
struct ArchiveProgress {
  int64_t segments_archived = 0;
  int64_t segments_to_archive = 0;  // some of them may be pruned meanwhile
  uint64_t archived_bytes = 0;
  uint64_t freed_bytes = 0;          // of the disk
  int64_t objects_deleted = 0;       // of segments
  uint64_t copied_bytes = 0;         // put for a copy of the file
  VersionNumber copied_version = 0;  // the version in this job's copy; 0: none was made
  bool done = false;
  // The work that could not be done yet, and why; empty: all was done.
  std::string left;
};

// Copies segments of saved pages to the archive; the caller drives it. Not thread-safe; keeps its
// file alive. If it is destroyed early, or a crash ends it, the history stays whole, and the next
// job goes on from there: docs/design/050-archive.md.
class ArchiveJob {
 public:
  virtual ~ArchiveJob() = default;
  // Does some milliseconds of work, or waits for one call of the archive: for minutes if it puts a
  // segment. The caller holds no lock.
  // Errors: kUnavailable        the archive does not answer: repeat the step. Or the file must be
  //                             opened again.
  //         kDataLoss           the archive has different bytes from those put, twice.
  //         kResourceExhausted  the disk or the archive is full; nothing was changed.
  //         those of ObjectStore.
  virtual absl::StatusOr<ArchiveProgress> Step() = 0;
};

// Estimates how much prunes of a file would free, from its index alone. Not thread-safe; keeps its
// file alive. Writes and prunes meanwhile only make the estimate less exact.
class EstimateJob {
 public:
  virtual ~EstimateJob() = default;
  // Looks at some thousand rows. True: it has seen all.
  virtual absl::StatusOr<bool> Step() = 0;
  // For each plan, the bytes of disk that it frees. Call it only once Step() has returned true.
  virtual const std::vector<uint64_t>& freed_bytes() const = 0;
};

// Thread-safe. Writes of one file are serialised by the file's own lock.
class File {
 public:
  virtual ~File() = default;

  virtual const std::string& name() const = 0;
  virtual const FileId& file_id() const = 0;
  virtual absl::StatusOr<FileInfo> Info() = 0;

  // ---- Writing. Every call names the token; a fenced token gets kAborted. ----

  // Grants the lease. The new token is larger than every token before, also after a crash, and
  // fences the former holder. Bytes that the fenced session wrote after its last cut are dropped,
  // and that cut becomes a version as with SessionEnd::kLost. The caller decides whether the lease
  // may be taken (server/state/lease_table.h).
  virtual absl::StatusOr<Token> Acquire() = 0;

  // Starts the session of `token`. `origin` and the mode of `local` become durable with its first
  // cut.
  virtual absl::Status Begin(Token token, SessionStart start, const Origin& origin,
                             const LocalAccess& local) = 0;

  // Writes `extents`, in order; `pieces`, one after the other, are their bytes. When it returns,
  // the bytes are in the stage or at their place in the head. If extents overlap, the later one
  // wins.
  // Errors: kInvalidArgument    offset + length beyond 2^63-1, or sizes do not add up.
  //         kAborted            the token is fenced.
  //         kResourceExhausted  the disk is full, or a limit is reached; the session can only end.
  virtual absl::Status Write(Token token, absl::Span<const Extent> extents,
                             absl::Span<const std::string_view> pieces) = 0;

  // From now on the file ends at `size_bytes`. Takes effect in order with the writes around it.
  virtual absl::Status Truncate(Token token, uint64_t size_bytes) = 0;

  // Fills `out` with the session's own view: its writes, cut or not, over the newest cut; beyond
  // the end zeros. For a writer that has no local file. Bytes of the head are not compared with
  // checksums.
  // Errors: kAborted  the token is fenced.
  //         those of reading stage and head.
  virtual absl::Status ReadNewest(Token token, uint64_t offset, absl::Span<char> out) = 0;

  // Ends a cut and returns its number. From then on the cut is visible. A thread of the store calls
  // `on_durable` once, when the cut is durable or can never be. A tick takes at most durable_every;
  // the other kinds are made durable at once. Cuts become durable in order.
  virtual absl::StatusOr<CutNumber> Cut(
      Token token, CutRequest request,
      std::function<void(absl::StatusOr<DurableCut>)> on_durable) = 0;

  // Ends the session and its token. Writes after the last cut are dropped. Returns at once; the
  // rest is background work.
  virtual absl::Status End(Token token, SessionEnd end) = 0;

  // ---- Snapshots ----

  // 0: there is no cut yet.
  virtual CutNumber NewestCut() = 0;

  // Pins the newest cut, durable or not; later writes do not change it. The pin itself costs
  // nothing: bytes are copied only when they are overwritten. kNotFound: there is no cut yet.
  virtual absl::StatusOr<std::shared_ptr<Snapshot>> PinNewestCut() = 0;

  // Where the file has HDF5 metadata: a hint. Lives as long as the file.
  virtual MetadataMap& metadata() = 0;

  // From now on, as long as this object lives, notes the ranges that each cut changes. That costs a
  // pass over the ranges of each cut. A server's store does so anyway for a minute after it opens a
  // file with a history, in less memory: after a restart the followers may come back later than the
  // writer.
  virtual void NoteChanges() = 0;
  // The ranges in which the cut `to` may differ from the older cut `from`, in order. kOutOfRange:
  // the two may differ anywhere, because their changes were not noted, they are of two generations,
  // or a crash has discarded `from`.
  virtual absl::StatusOr<std::vector<Extent>> ChangesBetween(CutNumber from, CutNumber to) = 0;

  // ---- History ----

  // At most `limit` versions of `range`, newest first.
  virtual absl::StatusOr<std::vector<VersionInfo>> ListVersions(const VersionRange& range,
                                                                size_t limit) = 0;

  // The retained version that `back` newer ones follow; the newest version at or before the server
  // time `time`; the version with a tag. kNotFound: the message says why there is none.
  virtual absl::StatusOr<VersionInfo> FindVersionBack(int64_t back) = 0;
  virtual absl::StatusOr<VersionInfo> FindVersionAt(absl::Time time) = 0;
  virtual absl::StatusOr<VersionInfo> FindVersionTagged(std::string_view tag) = 0;
  // The newest version that has the `id` and the `number` of `cut`.
  virtual absl::StatusOr<VersionInfo> FindVersionOfGroup(const GroupCut& cut) = 0;

  // Gives `version` (0: the newest) a tag. Returns the version that had the tag before (0: none).
  // Durable when it returns.
  // Errors: kInvalidArgument        as CheckTag().
  //         kNotFound, kOutOfRange  no such version; it was pruned.
  //         kAlreadyExists          another version has the tag, and `mode` is kKeep.
  virtual absl::StatusOr<VersionNumber> Tag(VersionNumber version, std::string_view tag,
                                            TagMode mode) = 0;
  // Removes a tag. Returns the version that had it. Durable when it returns. kNotFound: no version
  // has it.
  virtual absl::StatusOr<VersionNumber> Untag(std::string_view tag) = 0;
  // The tags of all versions together.
  virtual absl::StatusOr<uint64_t> CountTags() = 0;

  // `version` 0: the newest. Errors: kNotFound no such version; kOutOfRange it was pruned.
  virtual absl::StatusOr<VersionInfo> GetVersion(VersionNumber version) = 0;
  virtual absl::StatusOr<std::unique_ptr<VersionReader>> OpenVersion(VersionNumber version) = 0;

  // Makes a version of the newest cut, unless nothing has changed since the newest version. Durable
  // when it returns. `request_id` makes a repeat harmless. Does not disturb a writer.
  // Errors: kFailedPrecondition  the file has no cut yet.
  //         kResourceExhausted   the history is stopped.
  virtual absl::StatusOr<MadeVersion> MakeVersion(const Provenance& provenance,
                                                  const std::array<uint8_t, 16>& request_id) = 0;

  // The version that a request of this id made. kNotFound: there is none.
  virtual absl::StatusOr<VersionInfo> FindRequest(const std::array<uint8_t, 16>& request_id) = 0;
  // Finds where two versions differ. Either may be the older one; 0 is the newest. The cost grows
  // with the bytes written between them; versions of two generations are read as a whole. Errors as
  // OpenVersion().
  virtual absl::StatusOr<std::unique_ptr<ChangeReader>> OpenChanges(VersionNumber from,
                                                                    VersionNumber to) = 0;

  // Makes a new version with the content of `version`. Durable when it returns; the head follows in
  // the background. `request_id` makes a repeat harmless. No session may write the file: the caller
  // makes sure of that, or has fenced the session by Acquire().
  // Errors: as OpenVersion(); kFailedPrecondition a session writes the file; kUnavailable it was
  // written meanwhile, try again.
  virtual absl::StatusOr<VersionInfo> Rollback(VersionNumber version, const Provenance& provenance,
                                               const std::array<uint8_t, 16>& request_id) = 0;

  // If the file is a fork: the version that it began with; nullopt: it is no fork. Read from the
  // disk, unlike that of Info().
  virtual absl::StatusOr<std::optional<SourceVersion>> ForkedFrom() { return std::nullopt; }

  // Makes a new version with the content of a version of `fork`, a fork of this file. The newest
  // version here must be the forked one or the one last promoted from the fork, or have the bytes
  // of one of these again, as after a rollback. Only the pages that differ are staged. Durable when
  // it returns; the head follows in the background. `request_id` makes a repeat harmless. The
  // caller makes sure that no session writes the file.
  // Errors: kAborted             the file has a newer version or cut; the message names it.
  //         kFailedPrecondition  `fork` is no fork of this file; a session writes the file.
  //         kUnavailable         the file was written meanwhile: try again.
  //         kCancelled           as IsCancelled says.
  //         those of OpenVersion() for the fork's version.
  virtual absl::StatusOr<Promotion> Promote(File& /*fork*/, const PromoteRequest&) {
    return absl::UnimplementedError("this file takes no promotions");
  }

  // Starts a prune that drops `versions` and continues an unfinished earlier prune. Leaves out
  // numbers that do not exist, and versions from OldestNeeded() on. kFailedPrecondition: another
  // prune is under way.
  virtual absl::StatusOr<std::unique_ptr<PruneJob>> StartPrune(
      std::vector<VersionNumber> versions) = 0;
  // Copies sealed segments of saved pages to StoreOptions::archive, and then deletes them from the
  // disk.
  // Errors: kFailedPrecondition  the store has no archive, or another such job is under way.
  //         kNotFound            there is no version yet.
  virtual absl::StatusOr<std::unique_ptr<ArchiveJob>> StartArchive(const ArchiveRequest&) {
    return absl::UnimplementedError("this file knows no archive");
  }
  // Brings segments of saved pages back from the archive to the disk: those that the versions from
  // `oldest` on need. They stay on the disk while the result lives. Waits for the network: the
  // caller holds no lock. Errors: as reading a version.
  //   kResourceExhausted  the disk has no room; no segment was brought back.
  virtual absl::StatusOr<std::shared_ptr<const void>> KeepOnDisk(VersionNumber /*oldest*/) {
    return nullptr;
  }
  // Bytes of the segments in the archive, and of segments being put. Copies of the file, and
  // objects that no version needs any more, do not count.
  virtual absl::StatusOr<uint64_t> CountArchived() { return 0; }
  // The oldest version that cannot be dropped now: the newest one that the head holds. 0: none.
  virtual absl::StatusOr<VersionNumber> OldestNeeded() = 0;

  // Bytes on the disk of the pages that were saved for `version`. Dropping only this version frees
  // at most these. Costs a look at each of its rows.
  virtual absl::StatusOr<uint64_t> SavedBytes(const VersionInfo& version) = 0;
  // Estimates, for each plan, how much dropping its versions would free, together with the space
  // that earlier prunes left; an empty plan is that space alone. As with StartPrune(), leaves out
  // numbers that cannot be dropped.
  virtual absl::StatusOr<std::unique_ptr<EstimateJob>> StartEstimate(
      const std::vector<std::vector<VersionNumber>>& plans) = 0;

  // Checks index, stage, heads and saved pages, step by step. kInvalidArgument: a bad subset.
  virtual absl::StatusOr<std::unique_ptr<VerifyJob>> StartVerify(VerifySubset subset) = 0;

  // Waits until the head on disk holds the newest durable cut and every cut that is due: all cuts
  // but the ticks of a living writer. kDeadlineExceeded: it took longer than `timeout`.
  virtual absl::Status WaitApplied(absl::Duration timeout) = 0;

  // Makes `origin` and `local` those of the newest version (adopt). kAborted: `version` is not the
  // newest.
  virtual absl::Status SetOrigin(VersionNumber version, const Origin& origin,
                                 const LocalStat& local) = 0;
  // Makes `owner` ("": nobody) the owner, see Store. Durable when it returns. The store's
  // OwnerListener is told, even of a failure after which either owner may be on the disk.
  // Errors: kInvalidArgument     as CheckOwner().
  //         kFailedPrecondition  the file has no durable cut yet.
  virtual absl::Status SetOwner(const std::string&) {
    return absl::UnimplementedError("this file knows no owner");
  }

  // Notes that the local file was compared with `version` now. Durable when it returns. Does not
  // disturb a writer. kInvalidArgument: no such version was ever made.
  virtual absl::StatusOr<CheckInfo> RecordCheck(VersionNumber version,
                                                uint64_t differing_bytes) = 0;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_H_
