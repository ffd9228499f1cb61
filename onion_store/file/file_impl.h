// The file of the store. Its parts are in these sources:
//
//   file_session.cc              a writer's calls: Write(), Cut(), ...
//   file_durable.cc              from visible to durable, in the background
//   file_apply.cc                from durable to the head, in the background
//   file_recovery.cc             the open of a file after a crash
//   file_history.cc              versions and tags
//   file_snapshots.cc            pinned cuts
//   file_fork.cc                 a new file with the bytes of another one's version
//   file_promote.cc              a new version with the bytes of a fork's version
//   file_archive.cc              segments in an archive
//   file_rollback.cc, file_prune.cc, file_stats.cc, file_verify.cc, file_outside.cc,
//   file_oversize.cc, file_metadata.cc
//
// Its state and its decisions are in objects of their own, each with a test:
//
//   WorkLock                 which thread makes durable, applies, prunes, rolls back, verifies
//   WriterSession            which writer has the lease, and whether it failed
//   OpenWrites               the writes that are in no cut yet
//   VisibleCuts              the cuts that are not in the head, and the newest one
//   Pins, PinnedPagesList    cuts that readers hold, and the pages that were saved for them
//   DueWork                  which cut becomes durable when, and which becomes a version
//   PlanCommit()             what one transaction of the index says
//   ApplyRound               the pages of one round of the apply
//   SavedPages               the segments of pre-images, and what holds them
//   ChangeLog                which bytes each cut changed, for followers
//   LastCheck                the last comparison with the original
//   FileHealth               whether it can go on after an error of the disk
//   HistoryFiles             names on the disk, page size
//   OpenHistory              the history's directory, and the mark of an open file
//   DroppedVersions          whether a version was dropped while it was looked up
//   SnapshotSource, VersionSource               what readers of cuts and versions get of the file
//   EstimateSource, PruneSource, ArchiveSource, VerifySource   what jobs get of it
#ifndef H5MIRROR_ONION_STORE_FILE_FILE_IMPL_H_
#define H5MIRROR_ONION_STORE_FILE_FILE_IMPL_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "onion_store/file/apply/apply_round.h"
#include "onion_store/file/cuts/change_log.h"
#include "onion_store/file/cuts/commit_plan.h"
#include "onion_store/file/cuts/due_work.h"
#include "onion_store/file/cuts/file_layers.h"
#include "onion_store/file/cuts/visible_cuts.h"
#include "onion_store/file/pins/pins.h"
#include "onion_store/file/pins/snapshot_source.h"
#include "onion_store/file/state/file_health.h"
#include "onion_store/file/state/last_check.h"
#include "onion_store/file/state/open_history.h"
#include "onion_store/file/state/saved_pages.h"
#include "onion_store/file/versions/version_source.h"
#include "onion_store/file/writer/open_writes.h"
#include "onion_store/file/writer/writer_session.h"
#include "onion_store/index/version_index.h"
#include "onion_store/jobs/job_sources.h"
#include "onion_store/pages/found_pages.h"
#include "onion_store/pages/page_segments.h"
#include "onion_store/shared/history_files.h"
#include "onion_store/shared/store_context.h"
#include "onion_store/shared/work_lock.h"

namespace h5mirror::store {

class VersionReaderImpl;

// How many cut numbers a file reserves at its open.
constexpr CutNumber kCutReserve = 65536;

// Thread-safe. Locks, in this order, and what each covers:
//
//   work_lock_        making durable, apply, prune, rollback, verification, and of a fork or a
//                     promotion the file that gets the version; over I/O and syncs.
//                     A change of row_, index_ or newest_ needs it, and mutex_ too
//   tag_mutex_        tagging; held over a sync of the index, and free during an apply
//   LastCheck's own   the last check; held over a read of the index
//   mutex_            all members with ABSL_GUARDED_BY: WriterSession, OpenWrites, VisibleCuts,
//                     Pins, ChangeLog, DueWork, SavedPages, OpenHistory, FileHealth. Held over a
//                     writer's writes into the page cache, never over a sync
//   merge_mutex_      the data of layers that are not frozen
//   the own ones of PinnedPagesList, MetadataMap, ArchivedSegments and the index
//
// HistoryFiles is constant. DroppedVersions is an atomic number.
class FileImpl final : public File,
                       public BackgroundWorker,
                       public SnapshotSource,
                       public VersionSource,
                       public EstimateSource,
                       public PruneSource,
                       public ArchiveSource,
                       public VerifySource,
                       public std::enable_shared_from_this<FileImpl> {
 public:
  enum class IfMissing : uint8_t { kFail, kCreate };
  // See Store::OpenFile and OpenOrCreateFile. `page_size_bytes` is for a new file.
  static absl::StatusOr<std::shared_ptr<FileImpl>> Load(std::shared_ptr<StoreContext> context,
                                                        std::string_view name, IfMissing if_missing,
                                                        uint32_t page_size_bytes);
  // As Load(), to read versions only: writes and recovers nothing. Other processes may do the same
  // at the same time. kFailedPrecondition: the file must be recovered first, by Load().
  static absl::StatusOr<std::shared_ptr<FileImpl>> LoadToRead(std::shared_ptr<StoreContext> context,
                                                              std::string_view name);
  FileImpl(std::shared_ptr<StoreContext> context, std::string name);
  ~FileImpl() override;

  const std::string& name() const override { return files_.name(); }
  const FileId& file_id() const override { return files_.file_id(); }
  absl::StatusOr<FileInfo> Info() override;
  // See Store::Glance().
  absl::StatusOr<FileInfo> Glance();
  absl::StatusOr<Token> Acquire() override;
  absl::Status Begin(Token token, SessionStart start, const Origin& origin,
                     const LocalAccess& local) override;
  absl::Status Write(Token token, absl::Span<const Extent> extents,
                     absl::Span<const std::string_view> pieces) override;
  absl::Status Truncate(Token token, uint64_t size_bytes) override;
  absl::StatusOr<CutNumber> Cut(
      Token token, CutRequest request,
      std::function<void(absl::StatusOr<DurableCut>)> on_durable) override;
  absl::Status End(Token token, SessionEnd end) override;
  absl::Status ReadNewest(Token token, uint64_t offset, absl::Span<char> out) override;
  CutNumber NewestCut() override;
  absl::StatusOr<std::shared_ptr<Snapshot>> PinNewestCut() override;
  MetadataMap& metadata() override { return metadata_; }
  void NoteChanges() override;
  absl::StatusOr<std::vector<Extent>> ChangesBetween(CutNumber from, CutNumber to) override;
  absl::StatusOr<std::vector<VersionInfo>> ListVersions(const VersionRange& range,
                                                        size_t limit) override;
  absl::StatusOr<VersionInfo> FindVersionBack(int64_t back) override;
  absl::StatusOr<VersionInfo> FindVersionAt(absl::Time time) override;
  absl::StatusOr<VersionInfo> FindVersionTagged(std::string_view tag) override;
  absl::StatusOr<VersionInfo> FindVersionOfGroup(const GroupCut& cut) override;
  absl::StatusOr<VersionNumber> Tag(VersionNumber version, std::string_view tag,
                                    TagMode mode) override;
  absl::StatusOr<VersionNumber> Untag(std::string_view tag) override;
  absl::StatusOr<uint64_t> CountTags() override;
  absl::StatusOr<VersionInfo> GetVersion(VersionNumber version) override;
  absl::StatusOr<std::unique_ptr<VersionReader>> OpenVersion(VersionNumber version) override;
  absl::StatusOr<std::unique_ptr<ChangeReader>> OpenChanges(VersionNumber from,
                                                            VersionNumber to) override;
  absl::StatusOr<VersionInfo> Rollback(VersionNumber version, const Provenance& provenance,
                                       const std::array<uint8_t, 16>& request_id) override;
  absl::StatusOr<std::optional<SourceVersion>> ForkedFrom() override;
  absl::StatusOr<Promotion> Promote(File& fork, const PromoteRequest& request) override
      ABSL_LOCKS_EXCLUDED(work_lock_, mutex_);
  absl::StatusOr<MadeVersion> MakeVersion(const Provenance& provenance,
                                          const std::array<uint8_t, 16>& request_id) override;
  absl::StatusOr<VersionInfo> FindRequest(const std::array<uint8_t, 16>& request_id) override;
  absl::StatusOr<std::unique_ptr<PruneJob>> StartPrune(
      std::vector<VersionNumber> versions) override;
  absl::StatusOr<std::unique_ptr<ArchiveJob>> StartArchive(const ArchiveRequest& request) override;
  absl::StatusOr<uint64_t> CountArchived() override;
  absl::StatusOr<std::shared_ptr<const void>> KeepOnDisk(VersionNumber oldest) override
      ABSL_LOCKS_EXCLUDED(work_lock_, mutex_);
  absl::StatusOr<uint64_t> SavedBytes(const VersionInfo& version) override;
  absl::StatusOr<std::unique_ptr<EstimateJob>> StartEstimate(
      const std::vector<std::vector<VersionNumber>>& plans) override;
  absl::StatusOr<VersionNumber> OldestNeeded() override;
  absl::StatusOr<std::unique_ptr<VerifyJob>> StartVerify(VerifySubset subset) override;
  absl::Status WaitApplied(absl::Duration timeout) override;
  absl::Status SetOrigin(VersionNumber version, const Origin& origin,
                         const LocalStat& local) override;
  absl::StatusOr<CheckInfo> RecordCheck(VersionNumber version, uint64_t differing_bytes) override;

  BackgroundTimes RunBackground(BackgroundPool pool) override;

  // What readers of its cuts and versions need; name() is above.
  uint32_t page_size_bytes() const override { return files_.page_size_bytes(); }
  absl::Status dead() override;
  void Unpin(const std::shared_ptr<PinnedCut>& pin) override ABSL_LOCKS_EXCLUDED(mutex_);
  void ExpirePin(const std::shared_ptr<PinnedCut>& pin) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ReadLayers(absl::FunctionRef<absl::Status()> read) override
      ABSL_LOCKS_EXCLUDED(merge_mutex_);
  SumsFile* SumsOf(const Generation& generation) override ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<PinnedPages>> PinnedPagesSince(uint64_t first,
                                                             int64_t generation) override;
  std::string HeadName(int64_t generation) override ABSL_LOCKS_EXCLUDED(mutex_);
  const DroppedVersions& dropped_versions() const override { return dropped_versions_; }

  // What jobs need of it (job_sources.h); dead() and HeadName() are above.
  const HistoryFiles& files() const override { return files_; }
  WorkLock& work_lock() override ABSL_LOCK_RETURNED(work_lock_) { return work_lock_; }
  FileRow row() override ABSL_LOCKS_EXCLUDED(mutex_);
  void SetRow(const FileRow& row) override ABSL_LOCKS_EXCLUDED(mutex_);
  DroppedVersions& dropped_versions() override { return dropped_versions_; }
  bool HasReverts() override ABSL_LOCKS_EXCLUDED(mutex_);
  void SegmentRemoved() override ABSL_LOCKS_EXCLUDED(mutex_);
  void ForgetGenerations(absl::Span<const int64_t> generations) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Die(const absl::Status& status) override ABSL_LOCKS_EXCLUDED(mutex_);
  void PruneEnded() override ABSL_LOCKS_EXCLUDED(mutex_);
  void ArchiveEnded() override ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsKeptOnDisk() override ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<const int> PinDisk() override ABSL_LOCKS_EXCLUDED(work_lock_, mutex_);
  VersionNumber NewestVersion() override ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t SavedPagesBytes() override ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasPartOfApply() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::shared_ptr<Generation>> HeadOf(int64_t number) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Store::Fork(): makes this file, which is nothing yet. kAlreadyExists: it is something.
  absl::StatusOr<VersionInfo> BecomeFork(FileImpl& source, VersionNumber version,
                                         const ForkRequest& request)
      ABSL_LOCKS_EXCLUDED(work_lock_, mutex_);
  // Removes what a first session or a fork that came to nothing has left, unless there is a cut.
  void LeaveNothing() ABSL_LOCKS_EXCLUDED(work_lock_, mutex_);
  // Whether it has neither a version nor a session, a cut or a head, and becomes no fork just now.
  bool IsNothing();
  // Whose it is: Store::OwnerOf().
  FileOwner Owner() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SetOwner(const std::string& owner) override ABSL_LOCKS_EXCLUDED(work_lock_, mutex_);
  // The version that Load() made of a change from outside; 0: there was none.
  VersionNumber outside_change() const { return outside_change_; }
  // The store is closed: from now on every call fails, and this writes nothing.
  void Retire() {
    Die(absl::UnavailableError("the store was closed"));
    WaitUntilStill();
  }
  // Of a dead object: waits until no thread works on the disk for it, and none will. Then the file
  // may be opened again, or be given another name.
  void WaitUntilStill() ABSL_LOCKS_EXCLUDED(work_lock_, tag_mutex_, mutex_);
  // Makes all cuts durable, applies them, and dies of `why`. Then the files may be renamed.
  // kFailedPrecondition: a session writes the file, and the object lives on.
  absl::Status Leave(const absl::Status& why) ABSL_LOCKS_EXCLUDED(work_lock_, mutex_);
  // Makes all waiting cuts due now, and wakes the background.
  void Hurry();
  // Makes every cut durable, in the calling thread. Applies only cuts that must be applied before.
  absl::Status MakeAllDurable();

 private:
  using LayerPtr = std::shared_ptr<CutLayer>;
  using GenerationPtr = std::shared_ptr<Generation>;

  // ---- file_session.cc ----
  // Gives a new head its access, from that of the former one or from the writer's local file.
  using GiveAccess = absl::FunctionRef<absl::Status(EnvFile& head)>;
  absl::Status BeginFor(Token token, SessionStart start, const Origin& origin,
                        const LocalAccess& local) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status BeginLocked(SessionStart start, const WriterFacts& facts, GiveAccess give)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<GenerationPtr> NewGenerationLocked(GiveAccess give)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  LayerPtr NewLayer(const GenerationPtr& written) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WriteLocked(absl::Span<const Extent> extents,
                           absl::Span<const std::string_view> pieces)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TruncateLocked(uint64_t size_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Before cuts are made: a file that was opened to be read has reserved none. Errors: the index's.
  absl::Status ReserveNumbers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  bool HasNumbers() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return index_ == nullptr || cuts_.next < row_.cut_reserved;
  }
  // Waits until a number for a cut is reserved. kAborted: another session began meanwhile.
  absl::Status AwaitFreeNumber() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<CutNumber> CutLocked(const CutRequest& request, CutWaiter waiter)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True: `upper`, the next layer, may become one with `lower`, as no commit or pin needs the cut
  // of `lower`.
  bool MayMerge(const CutLayer& lower, const CutLayer& upper) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves the fields of `upper` into `lower`. The data of `upper` stays as it is, for readers.
  absl::Status MergeInto(CutLayer& lower, CutLayer& upper) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status EndLocked(SessionEnd end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status DropOpen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of a stage of which nothing counts: what it has kept for the next cuts.
  void GiveStageBack() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeVersionOfLastCut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Post(absl::Time when);

  // ---- file_durable.cc; work_lock_ is held ----
  // What the background does next, and with what.
  struct Task {
    enum class Kind : uint8_t { kWait, kTellOfDeath, kMakeDurable, kApply };
    Kind kind = Kind::kWait;
    absl::Time until;  // kWait
    LayerPtr layer;    // kApply
  };
  Task NextTask(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Does it; in `pool` kDurable it applies nothing. Nullopt: there may be more; else when to come
  // back.
  std::optional<BackgroundTimes> RunTask(BackgroundPool pool)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // When something can become durable without an apply; InfiniteFuture: when a cut or apply comes.
  absl::Time NextDurable(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  struct Batch {
    std::vector<LayerPtr> layers;
    bool sync_directory = false;  // the history's directory has a new name
  };
  absl::Time NextDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Batch TakeBatch(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status MakeDurable(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status TryMakeDurable(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status MakeDueVersion(const DueVersion& version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status SyncBatch(const Batch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // The generation below `before` gets no more cuts, and no later sync: a lost writer's uncut bytes
  // must not come back in its head with the power.
  absl::Status SyncOldHead(int64_t before) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // `index`: null before the first durable cut.
  absl::StatusOr<CommitPlan> PlanBatch(const Batch& batch, VersionIndex* index)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // One transaction of the index, after SyncBatch(). Then tells the waiting callers.
  absl::Status CommitBatch(const Batch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  struct Answer {
    std::function<void(absl::StatusOr<DurableCut>)> on_durable;
    DurableCut durable;
  };
  // Makes the file what the index has. Returns what to tell without the lock.
  std::vector<Answer> TakeInCommit(const Batch& batch, const CommitPlan& plan)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status MakeVersionOfDurableCut(const Provenance& provenance,
                                       const std::optional<std::array<uint8_t, 16>>& request_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // As VersionIndex::Create(), of the first cut. Fills in the file's constants in `row`.
  absl::Status CreateIndex(FileRow* row, absl::Span<const VersionRow> versions,
                           const std::optional<GenerationRow>& begins,
                           absl::Span<const FileSync> named)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status FinishSwap(Generation& generation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::StatusOr<bool> Changes(const std::vector<LayerPtr>& below, const LayerPtr& layer,
                               uint64_t size_below) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // Die(), but the background tells the waiters.
  void DieLocked(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellWaiters(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes the result of an apply. Tells of a failure once.
  void NoteApplied(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // True: cuts are due to become durable, before the apply goes on. False also where they must wait
  // for the apply.
  bool IsDue(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status MakeAllDurableLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status FlushLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);

  // ---- file_snapshots.cc ----
  using Trash = std::vector<std::shared_ptr<const PinnedContent>>;  // destroyed without the lock
  // True: the newest cut has the bytes of the newest version. Cuts that changed nothing may lie
  // between the two.
  bool LastIsVersion() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return cuts_.last.number != 0 && (newest_.cut == cuts_.last.number ||
                                      (row_.durable_cut == cuts_.last.number && !row_.changed));
  }
  // The newest cut as it is to be pinned.
  std::shared_ptr<PinnedCut> NewPin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets the pin of `cut`. A reader that still holds the pin finds it expired.
  void DropPin(CutNumber cut, Trash* trash) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Merges the layers on both sides of `cut`, which is no longer pinned.
  void MergeAt(CutNumber cut) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  PagesToPin PagesToSave(const CutLayer& layer) ABSL_LOCKS_EXCLUDED(mutex_);
  void ExpireOverBudget() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the pins of all cuts before `cut`: their pages cannot be saved.
  void ExpireBefore(CutNumber cut) ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- file_metadata.cc: hints, whose loss is no error ----
  void LoadMetadata();
  void SaveMetadata();

  // Whether there is anything that a crash, or the end of a session without a cut, would leave.
  bool HasCut() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return row_.durable_cut != 0 || !cuts_.layers.empty();
  }

  // ---- file_history.cc ----
  // The version of `number`, as the index gave it; where that is 0, kNotFound with `missing`.
  absl::StatusOr<VersionInfo> Found(absl::StatusOr<VersionNumber> number,
                                    absl::FunctionRef<std::string()> missing);
  // The error of a write of tags or of a check. The file survives it, unless the state of the disk
  // is unknown.
  absl::Status TagFailed(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- file_stats.cc ----
  // True: a commit makes no version now. The first commit of a file always makes one: a file
  // without a version cannot be read.
  bool HistoryStopped() ABSL_LOCKS_EXCLUDED(mutex_);
  // Info(), as far as no index is asked; `index` is that of the same moment, nullptr: there is
  // none.
  absl::StatusOr<FileInfo> InfoInMemory(std::shared_ptr<VersionIndex>& index)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- file_apply.cc; work_lock_ is held ----
  LayerPtr OldestUnapplied() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // kUntilStopped: the store may stop it between two rounds; then it returns OK too.
  enum class Rounds : uint8_t { kAll, kUntilStopped };
  // Null: needs none. kResourceExhausted: another program has the head open; it is tried again.
  absl::StatusOr<std::unique_ptr<EnvLock>> LockHead(const Generation& generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status Apply(const LayerPtr& layer, Rounds rounds)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status FinishApply(const LayerPtr& layer, uint64_t changed_pages)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status FitHead(const CutLayer& layer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ClearAgain(const CutLayer& layer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // Sums the direct bytes, with pauses as between rounds. False: the store stopped it.
  absl::StatusOr<bool> SumDirect(const CutLayer& layer, Rounds rounds)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // What is between two rounds, or two steps. False: the store stops the apply here.
  absl::StatusOr<bool> Pause(Rounds rounds) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // What an apply of `layer` is about. From then on the newest version may have rows.
  absl::StatusOr<ApplyBasis> BeginApply(const LayerPtr& layer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // What becomes due while an apply goes on does not wait for its end.
  absl::Status MakeDurableBetweenRounds() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // Loads the round, and makes durable what it overwrites that a version needs.
  absl::Status SavePages(ApplyRound& round) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // Syncs the pre-images of `runs`, and puts their rows into the index.
  absl::Status CommitPreImages(const ApplyBasis& basis, absl::Span<const PageRun> runs)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // Says what a round has found, once that is noted on the disk: pages of `version` that are saved
  // nowhere, and pages of the head that were overwritten in part.
  void TellDamage(VersionNumber version, const FoundPages& lost, const FoundPages& bad);

  // ---- file_rollback.cc; work_lock_ is held ----
  absl::StatusOr<VersionInfo> RollbackLocked(const VersionInfo& target,
                                             const Provenance& provenance,
                                             const std::array<uint8_t, 16>& request_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // Opens the writes of a rollback or a promotion. kFailedPrecondition: a session writes the file.
  absl::Status BeginRollback(int64_t generation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // Makes a version of the open writes, if `brought` is OK, and closes them. Durable when it
  // returns. After an error there is no version, and the writes are dropped, or the file is dead.
  absl::StatusOr<VersionInfo> FinishMade(absl::Status brought, const CutRequest& request,
                                         std::optional<SourceVersion> source)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // Stages the bytes of `target` that the newest cut lacks, in the same generation.
  absl::Status BringBack(VersionReaderImpl& reader, const VersionInfo& target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status RevertSaved(const VersionInfo& target) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status RevertBlock(const VersionInfo& target, absl::Span<const PageRun> runs,
                           std::vector<Revert>* reverts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status StageReverts(std::vector<Revert>* reverts) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CopyUnsaved(VersionReaderImpl& reader, const VersionInfo& target, Extent range)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // Copies all of `target`, a version of any file, into a new generation.
  absl::Status CopyGeneration(VersionReaderImpl& reader, const VersionInfo& target,
                              const IsCancelled& is_cancelled)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);

  // ---- file_fork.cc; work_lock_ is held ----
  absl::StatusOr<VersionInfo> BecomeForkLocked(FileImpl& source, VersionNumber version,
                                               const ForkRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // kResourceExhausted: no room for the copy that a fork of the version is here.
  absl::Status CheckRoomFor(const FileImpl& source, VersionReaderImpl& reader,
                            const IsCancelled& is_cancelled) ABSL_LOCKS_EXCLUDED(mutex_);
  // Opens the writes of the first cut. `mode_bits`: of the file that this becomes a fork of.
  absl::Status BeginFork(uint32_t mode_bits, const LocalAccess& access)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  void LeaveNothingLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);

  // ---- file_promote.cc; work_lock_ is held ----
  // What a promotion starts from: two versions of equal bytes.
  struct PromotionBasis {
    VersionInfo newest;     // here
    VersionNumber own = 0;  // of the fork; 0: not known
  };
  // kAborted, kFailedPrecondition, kCancelled: as Promote().
  absl::StatusOr<PromotionBasis> FindBasis(File& fork, VersionIndex& index,
                                           const IsCancelled& is_cancelled)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // The fork's version with the bytes of `equal`, a result of FindEqual(); 0: not known.
  absl::StatusOr<VersionNumber> OwnOf(File& fork, VersionNumber equal)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // The version here that was promoted from the fork or is the one that was `forked`, and that has
  // the bytes of `newest`; 0: none.
  absl::StatusOr<VersionNumber> FindEqual(File& fork, const SourceVersion& forked,
                                          VersionNumber newest, VersionIndex& index,
                                          const IsCancelled& is_cancelled)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // Compares what was written between the two. Of different generations all is.
  absl::StatusOr<bool> HaveSameBytes(VersionNumber older, VersionNumber newer,
                                     const IsCancelled& is_cancelled)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // Where the fork's version `target` differs from the newest one here.
  absl::StatusOr<std::unique_ptr<ChangeReader>> DifferencesFrom(const PromotionBasis& basis,
                                                                File& fork, VersionNumber target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // Stages the bytes of `reader` where `changes` says. Adds the length of all to `*bytes`.
  absl::Status StageFrom(VersionReader& reader, ChangeReader& changes,
                         const IsCancelled& is_cancelled, uint64_t* bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // The same of one range; the file ended at `old_bytes`.
  absl::Status StageRange(VersionReader& reader, Extent range, uint64_t old_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);

  // What a promotion reads of both files stays on the disk while this is there.
  struct KeptForPromotion {
    std::shared_ptr<const void> of_fork;
    std::shared_ptr<const int> here;
  };
  // kFailedPrecondition: `fork` is no fork of this file. Those of KeepOnDisk(). Without work_lock_.
  absl::StatusOr<KeptForPromotion> KeepForPromotion(File& fork)
      ABSL_LOCKS_EXCLUDED(work_lock_, mutex_);
  // The version that a request made already; nullopt: none.
  absl::StatusOr<std::optional<Promotion>> FindPromotion(VersionIndex& index,
                                                         const PromoteRequest& request);

  // ---- file_archive.cc; these wait for the archive ----
  // As KeepOnDisk(), for versions of one generation; 0: of all.
  absl::StatusOr<std::shared_ptr<const int>> KeepOnDiskOf(int64_t generation, VersionNumber oldest)
      ABSL_LOCKS_EXCLUDED(work_lock_, mutex_);
  // kResourceExhausted: the disk has no room for all of them, so that none is brought back.
  absl::Status BringBackSince(VersionIndex& index, int64_t generation, VersionNumber oldest)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- file_recovery.cc ----
  enum class Numbers : uint8_t { kNow, kLater };  // reserved; kLater: unless it is closed
  absl::Status Recover(FileRow row, Numbers numbers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status TakeInPlainFile(std::string_view comment);
  absl::Status RemoveLeftovers(const FileRow* row);
  absl::Status CheckNothingDurable(const std::vector<DirectoryEntry>& entries) const;
  absl::Status ReplayStage();
  absl::Status ReplayRevert(const Revert& revert, CutLayer* layer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckHead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status CheckAtRest(const FileRow& row);
  bool IsClosed(const FileRow& row);  // at rest, and its last writer ended in good order
  absl::StatusOr<GenerationPtr> OpenGeneration(int64_t number, const std::string& head_name,
                                               OpenKind kind);

  // ---- file_oversize.cc ----
  // Drops durable cuts that are larger than a head may be here, and rolls back to the newest
  // version that fits. Called before the file has other users. kDataLoss: no version fits.
  absl::Status GoBackToFit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::StatusOr<VersionInfo> LeaveOversize(VersionIndex& index, const FileRow& row)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status ClipLayers() ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- file_outside.cc ----
  struct OutsideChange;
  // True: an attempt to take in a change from outside was broken off.
  static bool IsTakingIn(const FileRow& row) { return row.head.size_bytes == kTakingInBytes; }
  // Makes a version of a head of `size_bytes` that was changed from outside.
  absl::Status TakeInOutsideChange(uint64_t size_bytes);
  absl::Status CountChangedPages(OutsideChange& change);
  absl::Status NoteLostPages(OutsideChange& change);
  absl::Status WriteOutsideSums(const OutsideChange& change);
  absl::Status CommitOutsideChange(OutsideChange& change);
  // Cuts appended bytes off, where nothing else was changed.
  absl::Status CutOffGrowth(const OutsideChange& change);

  // ---- shared ----
  // For its maker to fill in.
  GenerationPtr EmptyGeneration() const;
  std::unique_ptr<StageLog> EmptyStage() const;
  IndexPlace IndexPlaceOf() const {
    return {context_->vfs, *context_->tree, files_.directory(), &context_->open_indexes};
  }
  absl::StatusOr<std::shared_ptr<VersionIndex>> Index();
  const std::shared_ptr<PageSegments>& Pages() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::shared_ptr<PageSegments>& pages = saved_.Segments(row_);
    pages->UseIndex(index_);
    return pages;
  }

  const std::shared_ptr<StoreContext> context_;
  HistoryFiles files_;
  // Set by Load, then constant.
  VersionNumber outside_change_ = 0;

  WorkLock work_lock_ ABSL_ACQUIRED_BEFORE(mutex_);
  absl::Mutex tag_mutex_ ABSL_ACQUIRED_AFTER(work_lock_) ABSL_ACQUIRED_BEFORE(mutex_);
  absl::Mutex mutex_;
  // A reader of a layer that is not frozen shares this, or holds mutex_. A writer holds both.
  absl::Mutex merge_mutex_ ABSL_ACQUIRED_AFTER(mutex_);

  // As in the index. A writer holds work_lock_ and mutex_, so either is enough to read it.
  FileRow row_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<VersionIndex> index_
      ABSL_GUARDED_BY(mutex_);  // null before the first durable cut
  SavedPages saved_ ABSL_GUARDED_BY(mutex_){files_};
  VersionInfo newest_ ABSL_GUARDED_BY(mutex_);
  // As row_. Without a cut and a session it means nothing.
  std::string owner_ ABSL_GUARDED_BY(mutex_);

  // What it began as a fork of, for Info(). Set by Load, or with the version that is durable then.
  std::optional<SourceVersion> forked_from_ ABSL_GUARDED_BY(mutex_);

  LastCheck last_check_;  // its lock comes after tag_mutex_

  std::unique_ptr<StageLog> stage_ ABSL_GUARDED_BY(mutex_);
  VisibleCuts cuts_ ABSL_GUARDED_BY(mutex_);
  OpenWrites open_ ABSL_GUARDED_BY(mutex_);  // a session's, or those of a rollback
  WriterSession session_ ABSL_GUARDED_BY(mutex_);
  PinnedPagesList pinned_pages_;
  Pins pins_ ABSL_GUARDED_BY(mutex_){pinned_pages_};
  ChangeLog change_log_ ABSL_GUARDED_BY(mutex_);
  MetadataMap metadata_;
  DueWork due_work_ ABSL_GUARDED_BY(mutex_);
  OpenHistory history_ ABSL_GUARDED_BY(mutex_);
  DroppedVersions dropped_versions_;
  std::atomic<uint64_t> told_bad_{0};  // the first page, from 1, of those that were told of last
  FileHealth health_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_FILE_IMPL_H_
