// Versions, and how an old one becomes the newest again.
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/coding.h"
#include "onion_store/file_impl.h"
#include "onion_store/version_reader.h"

namespace h5mirror::store {
namespace {
constexpr uint64_t kCopyBytes = 1 << 20;
}

absl::StatusOr<std::vector<VersionInfo>> FileImpl::ListVersions(VersionNumber before,
                                                                size_t limit) {
  H5M_ASSIGN_OR_RETURN(auto index, Index());
  if (index == nullptr) return std::vector<VersionInfo>();
  return index->List(before, limit);
}

absl::StatusOr<VersionInfo> FileImpl::GetVersion(VersionNumber version) {
  std::shared_ptr<VersionIndex> index;
  {
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(dead_);
    if (version == 0 && newest_.version != 0) return newest_;
    index = index_;
  }
  if (index != nullptr && version > 0) {
    auto found = index->GetVersion(version);
    if (found.ok()) return found->info;
    if (!absl::IsNotFound(found.status())) return found.status();
  }
  absl::MutexLock lock(&mutex_);
  if (newest_.version == 0) {
    return absl::NotFoundError(StrCat(name_, " has no version yet"));
  }
  if (version > 0 && version < newest_.version) {
    return absl::OutOfRangeError(StrCat(name_, "@", version, " was pruned"));
  }
  return absl::NotFoundError(
      StrCat(name_, " has no version ", version, "; the newest is ", newest_.version));
}

absl::StatusOr<std::unique_ptr<VersionReader>> FileImpl::OpenVersion(VersionNumber version) {
  H5M_ASSIGN_OR_RETURN(VersionInfo info, GetVersion(version));
  absl::MutexLock lock(&mutex_);
  GenerationPtr generation;
  if (info.generation == row_.generation) {
    generation = base_ != nullptr && base_->number == info.generation ? base_ : nullptr;
    // A newer generation may be visible and not durable: the old one is in its layers or aside.
    for (const LayerPtr& layer : layers_) {
      if (layer->generation->number == info.generation) generation = layer->generation;
    }
  }
  if (generation == nullptr) {
    GenerationPtr& kept = old_generations_[info.generation];
    if (kept == nullptr) {
      std::string head_name =
          info.generation == row_.generation ? name_ : OldHeadName(info.generation);
      H5M_ASSIGN_OR_RETURN(kept, OpenGeneration(info.generation, head_name, OpenKind::kRead));
    }
    generation = kept;
  }
  std::vector<LayerPtr> layers;
  for (const LayerPtr& layer : layers_) {
    if (!layer->durable || layer->cut > info.cut || layer->generation != generation) continue;
    layers.push_back(layer);
    for (const auto& segment : layer->segments) ++segment->reader_count;
  }
  if (pages_ == nullptr) {
    pages_ = std::make_shared<PageSegments>(*context_->tree, directory_, file_id_, page_size_bytes_,
                                            row_.pages_segment, row_.pages_end_bytes);
  }
  return std::make_unique<VersionReaderImpl>(shared_from_this(), std::move(info),
                                             std::move(generation), std::move(layers), index_,
                                             pages_);
}

absl::StatusOr<VersionInfo> FileImpl::Rollback(VersionNumber version, const Provenance& provenance,
                                               const std::array<uint8_t, 16>& request_id) {
  absl::MutexLock work(&work_mutex_);
  H5M_ASSIGN_OR_RETURN(auto index, Index());
  if (index != nullptr) {
    auto done = index->FindRequest(request_id);
    if (done.ok()) return done->info;
    if (!absl::IsNotFound(done.status())) return done.status();
  }
  H5M_ASSIGN_OR_RETURN(VersionInfo target, GetVersion(version));
  H5M_RETURN_IF_ERROR(FlushLocked());
  H5M_ASSIGN_OR_RETURN(auto reader, OpenVersion(target.version));
  CutRequest request;
  request.kind = BarrierKind::kCommit;
  request.size_bytes = target.size_bytes;
  request.provenance = provenance;
  if (request.provenance.comment.empty()) {
    request.provenance.comment = StrCat("rollback to version ", target.version);
  }
  H5M_RETURN_IF_ERROR(BeginRollback(target.generation));
  absl::Status copied = CopyBack(*reader, target);
  CutNumber cut = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (copied.ok()) {
      open_->always_version = true;
      open_->request_id = request_id;
      LayerPtr layer = open_;
      auto made = CutLocked(std::move(request), CutWaiter());
      copied = made.status();
      if (made.ok()) {
        cut = *made;
        layer->due = absl::InfinitePast();
      }
    }
    absl::Status dropped = DropOpen();
    if (!dropped.ok()) DieLocked(dropped);
    if (session_.token == 0) session_ = Session();
  }
  H5M_RETURN_IF_ERROR(copied);
  absl::Status durable = MakeDurable(absl::Now());
  if (!durable.ok()) {
    Die(durable);
    return durable;
  }
  Post(absl::InfinitePast());
  H5M_ASSIGN_OR_RETURN(VersionRow made, index->FindCut(cut));
  return made.info;
}

absl::Status FileImpl::BeginRollback(int64_t generation) {
  absl::MutexLock lock(&mutex_);
  if (session_.begun) {
    return absl::FailedPreconditionError(
        StrCat(name_, ": a session writes it; it must end before a rollback"));
  }
  session_ = Session();
  session_.origin = row_.origin;
  session_.mode_bits = row_.mode_bits;
  return BeginLocked(
      generation == row_.generation ? SessionStart::kContinue : SessionStart::kNewGeneration,
      row_.mode_bits == 0 ? 0644 : row_.mode_bits);
}

// In the same generation only pages that some later version touched can differ: they have rows.
absl::Status FileImpl::CopyBack(VersionReader& reader, const VersionInfo& target) {
  std::shared_ptr<VersionIndex> index;
  bool same;
  {
    absl::MutexLock lock(&mutex_);
    index = index_;
    same = generation_->number == target.generation;
    if (same) H5M_RETURN_IF_ERROR(TruncateLocked(target.size_bytes));
  }
  MemoryCharge charge(context_->budget, kCopyBytes);
  std::string bytes;
  auto copy = [&](Extent part) -> absl::Status {
    bytes.resize(part.length);
    H5M_RETURN_IF_ERROR(reader.Read(part.offset, absl::MakeSpan(bytes)));
    std::string_view piece = bytes;
    absl::MutexLock lock(&mutex_);
    return WriteLocked({&part, 1}, {&piece, 1});
  };
  for (uint64_t at = 0; at < target.size_bytes;) {
    Extent next;
    if (same) {
      H5M_ASSIGN_OR_RETURN(std::optional<uint64_t> page,
                           index->NextPage(target.generation, target.version, PageOf(at)));
      if (!page) break;
      next = {std::max(at, *page * page_size_bytes_), page_size_bytes_};
      H5M_ASSIGN_OR_RETURN(auto runs,
                           index->FindPages(target.generation, target.version, *page, *page + 1));
      for (const PageRun& run : runs) {
        next.length = std::max(next.length, run.page_end() * page_size_bytes_ - next.offset);
      }
    } else {
      H5M_ASSIGN_OR_RETURN(next, reader.NextData(at));
      if (next.length == 0) break;
    }
    if (next.offset >= target.size_bytes) break;
    next.length = std::min({next.length, kCopyBytes, target.size_bytes - next.offset});
    H5M_RETURN_IF_ERROR(copy(next));
    at = next.end();
  }
  return absl::OkStatus();
}

absl::Status FileImpl::SetOrigin(VersionNumber version, const Origin& origin,
                                 const LocalStat& local) {
  absl::MutexLock work(&work_mutex_);
  H5M_RETURN_IF_ERROR(FlushLocked());
  FileRow row;
  std::shared_ptr<VersionIndex> index;
  {
    absl::MutexLock lock(&mutex_);
    if (newest_.version != version || row_.changed) {
      return absl::AbortedError(
          StrCat(name_, "@", version, " is not the newest; that is ", newest_.version));
    }
    row = row_;
    index = index_;
  }
  row.origin = origin;
  row.local = local;
  absl::Status written = index->WriteFileRow(row);
  if (!written.ok()) {
    Die(written);
    return written;
  }
  absl::MutexLock lock(&mutex_);
  row_ = row;
  return absl::OkStatus();
}

}  // namespace h5mirror::store
