// Makes an old version the newest again: docs/design/030-order-of-writes.md, "Rollback".
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"
#include "onion_store/file/file_impl.h"
#include "onion_store/file/made_version.h"
#include "onion_store/file/versions/version_reader.h"
#include "onion_store/shared/head_access.h"

namespace h5mirror::store {
namespace {
constexpr uint64_t kCopyBytes = 1 << 20;
// The most rows held in memory; for more, the index is asked block by block.
constexpr size_t kRowsMax = 1 << 18;
constexpr size_t kRevertsMax = 4096;  // in one record
}  // namespace

absl::StatusOr<VersionInfo> FileImpl::Rollback(VersionNumber version, const Provenance& provenance,
                                               const std::array<uint8_t, 16>& request_id) {
  if (const auto index = Index(); index.ok() && *index != nullptr) {  // A repeat needs no pages.
    if (auto done = (*index)->FindRequest(request_id); done.ok()) return done->info;
  }
  // The rollback reads saved pages under the work lock, and must not wait for an archive meanwhile.
  std::shared_ptr<const int> kept;
  if (const auto needed = GetVersion(version); needed.ok()) {
    H5M_ASSIGN_OR_RETURN(kept, KeepOnDiskOf(needed->generation, needed->version));
  }
  WorkTurn turn(&work_lock_);
  H5M_ASSIGN_OR_RETURN(auto index, Index());
  if (index != nullptr) {
    auto done = index->FindRequest(request_id);
    if (done.ok()) return done->info;
    if (!absl::IsNotFound(done.status())) return done.status();
  }
  H5M_ASSIGN_OR_RETURN(VersionInfo target, GetVersion(version));
  H5M_RETURN_IF_ERROR(MakeAllDurableLocked());
  return RollbackLocked(target, provenance, request_id);
}

absl::StatusOr<VersionInfo> FileImpl::RollbackLocked(const VersionInfo& target,
                                                     const Provenance& provenance,
                                                     const std::array<uint8_t, 16>& request_id) {
  H5M_ASSIGN_OR_RETURN(auto opened, OpenVersion(target.version));
  auto& reader = static_cast<VersionReaderImpl&>(*opened);
  CutRequest request = CutOfCall(target.size_bytes, provenance,
                                 StrCat("rollback to version ", target.version), request_id);
  request.group = target.group;  // It has the same bytes.
  H5M_RETURN_IF_ERROR(BeginRollback(target.generation));
  bool same;
  {
    absl::MutexLock lock(&mutex_);
    same = open_.generation()->number == target.generation;
  }
  return FinishMade(same ? BringBack(reader, target) : CopyGeneration(reader, target, nullptr),
                    request, std::nullopt);
}

absl::StatusOr<VersionInfo> FileImpl::FinishMade(absl::Status brought, const CutRequest& request,
                                                 std::optional<SourceVersion> source) {
  CutNumber cut = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (brought.ok()) {
      const LayerPtr layer = open_.layer();
      layer->always_version = true;
      layer->source = std::move(source);
      auto made = CutLocked(request, CutWaiter());
      brought = made.status();
      if (made.ok()) {
        cut = *made;
        layer->due = absl::InfinitePast();
      }
    }
    absl::Status dropped = DropOpen();
    if (!dropped.ok()) DieLocked(dropped);
  }
  H5M_RETURN_IF_ERROR(brought);
  context_->TellOfCut(files_.name(), cut);
  // A new generation waits until the old head holds its newest cut. After an error the caller
  // assumes that no version was made, so no later try may make it: the next open drops the cut.
  if (const absl::Status made = MakeAllDurableLocked(); !made.ok()) {
    Die(made);
    return made;
  }
  Post(absl::InfinitePast());
  H5M_ASSIGN_OR_RETURN(auto index, Index());
  H5M_ASSIGN_OR_RETURN(const VersionRow made, index->FindCut(cut));
  return GetVersion(made.info.version);
}

absl::Status FileImpl::BeginRollback(int64_t generation) {
  H5M_RETURN_IF_ERROR(ReserveNumbers());
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(health_.dead());
  if (session_.is_writing()) {
    return absl::FailedPreconditionError(
        StrCat(files_.name(), ": a session writes it; it must end first"));
  }
  // A session may have come and gone since all was made durable: its cut would be merged with this
  // one.
  if (due_work_.has_lost_cut() || (!cuts_.layers.empty() && !cuts_.layers.back()->durable)) {
    return absl::UnavailableError(StrCat(files_.name(), ": it was written meanwhile, try again"));
  }
  session_.End();
  const HeadAccess access(*context_, files_.name());
  auto give = [&, this](EnvFile& head) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return access.GiveAs(head, *cuts_.base->head, row_.mode_bits);
  };
  return BeginLocked(
      generation == row_.generation ? SessionStart::kContinue : SessionStart::kNewGeneration,
      {row_.origin, row_.mode_bits}, give);
}

absl::Status FileImpl::BringBack(VersionReaderImpl& reader, const VersionInfo& target) {
  std::vector<LayerPtr> later;  // durable, newer than the target, and not in the head
  {
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(TruncateLocked(target.size_bytes));
    for (const LayerPtr& layer : cuts_.layers) {
      if (layer->cut > target.cut) later.push_back(layer);
    }
  }
  H5M_RETURN_IF_ERROR(RevertSaved(target));
  // Pages that these layers changed have no rows yet, unless a broken-off apply got that far.
  for (const LayerPtr& layer : later) {
    for (uint64_t at = 0; at < target.size_bytes;) {
      H5M_ASSIGN_OR_RETURN(std::optional<Extent> staged, layer->data.NextStaged(at));
      if (!staged) break;
      H5M_RETURN_IF_ERROR(CopyUnsaved(reader, target, *staged));
      at = RoundUp(staged->end(), files_.page_size_bytes());
    }
    for (uint64_t at = layer->data.truncated_to(); at < target.size_bytes;) {
      H5M_ASSIGN_OR_RETURN(Extent data, reader.NextData(at));
      if (data.length == 0) break;
      H5M_RETURN_IF_ERROR(CopyUnsaved(reader, target, data));
      at = data.end();
    }
  }
  return absl::OkStatus();
}

// Every page that differs from the target in the head has a row at the target or later.
absl::Status FileImpl::RevertSaved(const VersionInfo& target) {
  H5M_ASSIGN_OR_RETURN(auto index, Index());
  MemoryCharge charge(context_->budget,
                      kRowsMax * sizeof(PageRun) + kBlockPages * files_.page_size_bytes());
  std::vector<Revert> reverts;
  H5M_ASSIGN_OR_RETURN(auto all, index->FindChanges(target.generation, target.version, kRowsMax));
  if (all) {
    for (size_t from = 0; from < all->size();) {
      const uint64_t block = (*all)[from].page / kBlockPages;
      size_t to = from + 1;
      while (to < all->size() && (*all)[to].page / kBlockPages == block) ++to;
      auto runs = absl::MakeConstSpan(*all).subspan(from, to - from);
      H5M_RETURN_IF_ERROR(RevertBlock(target, runs, &reverts));
      from = to;
    }
    return StageReverts(&reverts);
  }
  for (uint64_t page = 0;;) {
    H5M_ASSIGN_OR_RETURN(std::optional<uint64_t> next,
                         index->NextPage(target.generation, target.version, page));
    if (!next || *next >= files_.PagesIn(target.size_bytes)) return StageReverts(&reverts);
    const uint64_t first = RoundDown(*next, kBlockPages);
    page = first + kBlockPages;
    H5M_ASSIGN_OR_RETURN(auto runs,
                         index->FindPages(target.generation, target.version, first, page));
    H5M_RETURN_IF_ERROR(RevertBlock(target, runs, &reverts));
  }
}

// All of `runs` are of one block. Their bytes are read now: a damaged version must fail here,
// before it becomes the newest.
absl::Status FileImpl::RevertBlock(const VersionInfo& target, absl::Span<const PageRun> runs,
                                   std::vector<Revert>* reverts) {
  const uint32_t page_bytes = files_.page_size_bytes();
  const uint64_t first = RoundDown(runs.front().page, kBlockPages);
  const uint64_t end_page = files_.PagesIn(target.size_bytes);
  std::shared_ptr<PageSegments> pages;
  {
    absl::MutexLock lock(&mutex_);
    pages = Pages();
  }
  std::string bytes;
  const std::vector<const PageRun*> owners = OwnersOf(runs, first, kBlockPages);
  for (uint64_t i = 0; i < kBlockPages && first + i < end_page;) {
    const PageRun* owner = owners[i];
    uint64_t end = i + 1;
    while (end < kBlockPages && first + end < end_page && owners[end] == owner) ++end;
    const uint64_t page = first + i, count = end - i;
    i = end;
    if (owner == nullptr) continue;
    if (owner->segment == PageRun::kLost) {
      return absl::DataLossError(absl::StrFormat(
          "read page %d of %s@%d: it was lost when the head was changed or damaged from outside",
          page, files_.name(), target.version));
    }
    bytes.resize(count * page_bytes);
    absl::Status read = pages->Read(*owner, target.generation, page, absl::MakeSpan(bytes));
    if (!read.ok()) {
      return absl::Status(read.code(),
                          absl::StrFormat("read page %d of %s@%d: %s", page, files_.name(),
                                          target.version, read.message()));
    }
    const uint64_t offset = page * page_bytes;
    bytes.resize(std::min<uint64_t>(bytes.size(), target.size_bytes - offset));
    if (owner->packed()) {  // Their bytes are stored only compressed.
      const Extent extent{offset, bytes.size()};
      const std::string_view piece = bytes;
      absl::MutexLock lock(&mutex_);
      H5M_RETURN_IF_ERROR(WriteLocked({&extent, 1}, {&piece, 1}));
      continue;
    }
    reverts->push_back({{offset, bytes.size()}, pages->LocationOf(*owner, page), Crc32c(bytes)});
    if (reverts->size() >= kRevertsMax) H5M_RETURN_IF_ERROR(StageReverts(reverts));
  }
  return absl::OkStatus();
}

absl::Status FileImpl::StageReverts(std::vector<Revert>* reverts) {
  if (reverts->empty()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(
      open_.StageReverts(*stage_, cuts_.last.number, *reverts, saved_.revert_pin()));
  reverts->clear();
  return absl::OkStatus();
}

absl::Status FileImpl::CopyUnsaved(VersionReaderImpl& reader, const VersionInfo& target,
                                   Extent range) {
  H5M_ASSIGN_OR_RETURN(auto index, Index());
  MemoryCharge charge(context_->budget, kCopyBytes);
  std::string bytes;
  const uint64_t end = std::min(range.end(), target.size_bytes);
  for (uint64_t at = RoundDown(range.offset, files_.page_size_bytes()); at < end;) {
    const uint64_t first = files_.PageOf(at);
    const uint64_t count = files_.PagesIn(std::min(kCopyBytes, end - at));
    H5M_ASSIGN_OR_RETURN(auto runs,
                         index->FindPages(target.generation, target.version, first, first + count));
    const std::vector<const PageRun*> owners = OwnersOf(runs, first, count);
    for (uint64_t i = 0; i < count;) {
      uint64_t to = i;
      while (to < count && owners[to] == nullptr) ++to;
      if (to > i) {
        Extent part{at + i * files_.page_size_bytes(), (to - i) * files_.page_size_bytes()};
        part.length = std::min(part.length, target.size_bytes - part.offset);
        bytes.resize(part.length);
        H5M_RETURN_IF_ERROR(reader.Read(part.offset, absl::MakeSpan(bytes)));
        std::string_view piece = bytes;
        absl::MutexLock lock(&mutex_);
        H5M_RETURN_IF_ERROR(WriteLocked({&part, 1}, {&piece, 1}));
      }
      i = std::max(to, i + 1);
    }
    at += count * files_.page_size_bytes();
  }
  return absl::OkStatus();
}

absl::Status FileImpl::CopyGeneration(VersionReaderImpl& reader, const VersionInfo& target,
                                      const IsCancelled& is_cancelled) {
  GenerationPtr fresh;
  {
    absl::MutexLock lock(&mutex_);
    fresh = open_.generation();
    open_.BeginCopy(target.size_bytes);
  }
  MemoryCharge charge(context_->budget, kCopyBytes);
  H5M_ASSIGN_OR_RETURN(uint64_t copied, reader.CopyTo(*fresh->head, is_cancelled));
  absl::MutexLock lock(&mutex_);
  open_.EndCopy(copied);
  return absl::OkStatus();
}

}  // namespace h5mirror::store
