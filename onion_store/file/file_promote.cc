// Makes a fork's version the newest version of the file that was forked: docs/design/044-forks.md.
//
// The file must be as the fork last knew it: at the version that was forked, or at the version last
// promoted from the fork. A newer version with the same bytes, as after a rollback, is as good: the
// bytes are compared. Then only the pages that the fork has changed since can differ. They are
// staged as one cut, as in a rollback within a generation. One transaction makes the version, with
// the row that names the fork. A crash leaves the whole version or nothing.
#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/file/file_changes.h"
#include "onion_store/file/file_impl.h"
#include "onion_store/file/made_version.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kCopyBytes = 1 << 20;
constexpr VersionNumber kForkVersion = 1;  // a fork begins with it
constexpr int kPromotionsMax = 16;         // compared with the newest version, at most

bool IsGone(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsOutOfRange(status);
}

absl::Status NoForkOf(const File& fork, const std::string& name,
                      const std::optional<SourceVersion>& forked) {
  if (!forked) {
    return absl::FailedPreconditionError(
        StrCat(fork.name(), " is no fork: h5mirror fork makes one"));
  }
  return absl::FailedPreconditionError(StrCat(fork.name(), " is a fork of another file than ", name,
                                              ": of the one that was ", forked->name, " then"));
}

absl::Status CheckWanted(const IsCancelled& is_cancelled) {
  const bool has_gone = is_cancelled != nullptr && is_cancelled();
  return has_gone ? absl::CancelledError("the caller has gone") : absl::OkStatus();
}

absl::StatusOr<uint64_t> BytesIn(ChangeReader& changes, const IsCancelled& is_cancelled) {
  uint64_t bytes = 0;
  std::vector<Extent> ranges;
  for (bool more = true; more;) {
    H5M_RETURN_IF_ERROR(CheckWanted(is_cancelled));
    H5M_ASSIGN_OR_RETURN(more, changes.Next(&ranges));
    for (const Extent& range : ranges) bytes += range.length;
  }
  return bytes;
}

}  // namespace

absl::StatusOr<Promotion> FileImpl::Promote(File& fork, const PromoteRequest& request) {
  H5M_ASSIGN_OR_RETURN(const auto index, Index());
  if (index == nullptr) {
    return absl::FailedPreconditionError(StrCat(files_.name(), " has no version yet"));
  }
  H5M_ASSIGN_OR_RETURN(const auto made, FindPromotion(*index, request));
  if (made) return *made;
  H5M_ASSIGN_OR_RETURN(const KeptForPromotion kept, KeepForPromotion(fork));
  WorkTurn turn(&work_lock_);
  H5M_ASSIGN_OR_RETURN(const auto done, FindPromotion(*index, request));
  if (done) return *done;
  if (request.mode == PromoteMode::kMake) H5M_RETURN_IF_ERROR(MakeAllDurableLocked());
  Promotion promotion;
  H5M_ASSIGN_OR_RETURN(const PromotionBasis basis, FindBasis(fork, *index, request.is_cancelled));
  H5M_ASSIGN_OR_RETURN(const VersionInfo target, fork.GetVersion(request.version));
  promotion.promoted = target.version;
  promotion.version = basis.newest;
  promotion.unchanged = target.version == basis.own;
  if (promotion.unchanged) return promotion;
  H5M_ASSIGN_OR_RETURN(const auto changes, DifferencesFrom(basis, fork, target.version));
  if (request.mode == PromoteMode::kTry) {
    H5M_ASSIGN_OR_RETURN(promotion.differing_bytes, BytesIn(*changes, request.is_cancelled));
    return promotion;
  }
  H5M_ASSIGN_OR_RETURN(const auto reader, fork.OpenVersion(target.version));
  const CutRequest cut =
      CutOfCall(target.size_bytes, request.provenance,
                StrCat("promotion of ", fork.name(), "@", target.version), request.request_id);
  H5M_RETURN_IF_ERROR(BeginRollback(row().generation));
  const absl::Status staged =
      StageFrom(*reader, *changes, request.is_cancelled, &promotion.differing_bytes);
  H5M_ASSIGN_OR_RETURN(
      promotion.version,
      FinishMade(staged, cut, SourceIn(fork, target, SourceKind::kPromotion, request.provenance)));
  return promotion;
}

absl::StatusOr<std::optional<Promotion>> FileImpl::FindPromotion(VersionIndex& index,
                                                                 const PromoteRequest& request) {
  if (request.mode != PromoteMode::kMake) return std::nullopt;
  const auto done = index.FindRequest(request.request_id);
  if (absl::IsNotFound(done.status())) return std::nullopt;
  H5M_RETURN_IF_ERROR(done.status());
  Promotion promotion;
  H5M_ASSIGN_OR_RETURN(promotion.version, GetVersion(done->info.version));
  if (promotion.version.source) promotion.promoted = promotion.version.source->version;
  return promotion;
}

// Promote() reads both files under the work lock, and must not wait for an archive meanwhile. Only
// then is it known which versions it compares. Of this file none is older than the forked version,
// and a promotion made each of the others.
absl::StatusOr<FileImpl::KeptForPromotion> FileImpl::KeepForPromotion(File& fork) {
  H5M_ASSIGN_OR_RETURN(const std::optional<SourceVersion> forked, fork.ForkedFrom());
  if (!forked || forked->file_id != file_id()) return NoForkOf(fork, files_.name(), forked);
  KeptForPromotion kept;
  H5M_ASSIGN_OR_RETURN(kept.of_fork, fork.KeepOnDisk(kForkVersion));
  H5M_ASSIGN_OR_RETURN(kept.here, KeepOnDiskOf(0, forked->version));
  return kept;
}

absl::StatusOr<FileImpl::PromotionBasis> FileImpl::FindBasis(File& fork, VersionIndex& index,
                                                             const IsCancelled& is_cancelled) {
  H5M_ASSIGN_OR_RETURN(const std::optional<SourceVersion> forked, fork.ForkedFrom());
  if (!forked || forked->file_id != file_id()) return NoForkOf(fork, files_.name(), forked);
  VersionNumber newest = 0;
  CutNumber newest_cut = 0;
  bool is_level = false;
  {
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(health_.dead());
    if (session_.is_writing()) {
      return absl::FailedPreconditionError(
          StrCat(files_.name(), ": a session writes it; it must end first"));
    }
    newest = newest_.version;
    newest_cut = newest_.cut;
    is_level = LastIsVersion();
  }
  H5M_ASSIGN_OR_RETURN(const VersionNumber promoted, index.LastPromotedFrom(fork.file_id()));
  const VersionNumber known = promoted != 0 ? promoted : forked->version;
  const bool is_known = newest == known && (promoted != 0 || newest_cut == forked->cut);
  VersionNumber equal = is_known ? known : 0;
  if (!is_known && is_level) {
    H5M_ASSIGN_OR_RETURN(equal, FindEqual(fork, *forked, newest, index, is_cancelled));
  }
  if (equal == 0 || !is_level) {
    return absl::AbortedError(
        StrCat(files_.name(), " has changed since ", fork.name(), " was ",
               promoted != 0 ? "promoted to its version " : "forked from its version ", known,
               ": the newest is version ", newest, is_level ? "" : " and later cuts",
               "; compare: h5mirror diff ", files_.name(), "@", known, " ", files_.name(),
               "@latest; or take one object over: h5mirror restore ", fork.name(),
               "@latest:/PATH --into LOCAL --replace"));
  }
  PromotionBasis basis;
  H5M_ASSIGN_OR_RETURN(basis.newest, GetVersion(newest));
  H5M_ASSIGN_OR_RETURN(basis.own, OwnOf(fork, equal));
  return basis;
}

absl::StatusOr<VersionNumber> FileImpl::OwnOf(File& fork, VersionNumber equal) {
  H5M_ASSIGN_OR_RETURN(const VersionInfo here, GetVersion(equal));
  const std::optional<SourceVersion>& source = here.source;
  const bool is_promotion =
      source && source->kind == SourceKind::kPromotion && source->file_id == fork.file_id();
  if (!is_promotion) return kForkVersion;  // It is the forked version.
  // A fork that was rebuilt from a copy may have a different version of that number.
  const auto own = fork.GetVersion(source->version);
  return own.ok() && own->cut == source->cut ? own->version : 0;
}

absl::StatusOr<VersionNumber> FileImpl::FindEqual(File& fork, const SourceVersion& forked,
                                                  VersionNumber newest, VersionIndex& index,
                                                  const IsCancelled& is_cancelled) {
  VersionNumber promoted = INT64_MAX;
  for (int i = 0; i < kPromotionsMax; ++i) {
    H5M_ASSIGN_OR_RETURN(promoted, index.LastPromotedFrom(fork.file_id(), promoted));
    if (promoted == 0) break;
    H5M_ASSIGN_OR_RETURN(const bool same, HaveSameBytes(promoted, newest, is_cancelled));
    if (same) return promoted;
  }
  const auto base = GetVersion(forked.version);
  if (IsGone(base.status())) return 0;
  H5M_RETURN_IF_ERROR(base.status());
  if (base->cut != forked.cut) return 0;  // The history was rebuilt from a copy.
  H5M_ASSIGN_OR_RETURN(const bool same, HaveSameBytes(base->version, newest, is_cancelled));
  return same ? base->version : 0;
}

absl::StatusOr<bool> FileImpl::HaveSameBytes(VersionNumber older, VersionNumber newer,
                                             const IsCancelled& is_cancelled) {
  const auto one = OpenVersion(older);
  if (IsGone(one.status())) return false;  // It was dropped just now.
  H5M_RETURN_IF_ERROR(one.status());
  H5M_ASSIGN_OR_RETURN(const auto other, OpenVersion(newer));
  const uint64_t size_bytes = (*one)->info().size_bytes;
  if (other->info().size_bytes != size_bytes) return false;
  H5M_ASSIGN_OR_RETURN(const auto changes, OpenChanges(older, newer));
  const MemoryCharge charge(context_->budget, 2 * kCopyBytes);
  std::vector<Extent> ranges;
  std::string before, now;
  for (bool more = true; more;) {
    H5M_ASSIGN_OR_RETURN(more, changes->Next(&ranges));
    for (const Extent& range : ranges) {
      const uint64_t end = std::min(range.end(), size_bytes);
      for (uint64_t at = range.offset; at < end; at += before.size()) {
        H5M_RETURN_IF_ERROR(CheckWanted(is_cancelled));
        before.resize(std::min(kCopyBytes, end - at));
        now.resize(before.size());
        H5M_RETURN_IF_ERROR((*one)->Read(at, absl::MakeSpan(before)));
        H5M_RETURN_IF_ERROR(other->Read(at, absl::MakeSpan(now)));
        if (before != now) return false;
      }
    }
    H5M_RETURN_IF_ERROR(CheckWanted(is_cancelled));
  }
  return true;
}

absl::StatusOr<std::unique_ptr<ChangeReader>> FileImpl::DifferencesFrom(const PromotionBasis& basis,
                                                                        File& fork,
                                                                        VersionNumber target) {
  if (basis.own != 0) {
    auto changes = fork.OpenChanges(basis.own, target);
    if (!IsGone(changes.status())) return changes;
  }
  // The version by which the fork's index could be asked was dropped.
  H5M_ASSIGN_OR_RETURN(auto here, OpenVersion(basis.newest.version));
  H5M_ASSIGN_OR_RETURN(auto there, fork.OpenVersion(target));
  return std::make_unique<ComparedChanges>(std::move(here), std::move(there), context_->budget);
}

absl::Status FileImpl::StageFrom(VersionReader& reader, ChangeReader& changes,
                                 const IsCancelled& is_cancelled, uint64_t* bytes) {
  uint64_t old_bytes = 0;
  {
    absl::MutexLock lock(&mutex_);
    old_bytes = open_.size_bytes();
    H5M_RETURN_IF_ERROR(TruncateLocked(reader.info().size_bytes));
  }
  const MemoryCharge charge(context_->budget, kCopyBytes);
  std::vector<Extent> ranges;
  for (bool more = true; more;) {
    H5M_RETURN_IF_ERROR(CheckWanted(is_cancelled));
    H5M_ASSIGN_OR_RETURN(more, changes.Next(&ranges));
    for (const Extent& range : ranges) {
      H5M_RETURN_IF_ERROR(CheckWanted(is_cancelled));
      *bytes += range.length;
      H5M_RETURN_IF_ERROR(StageRange(reader, range, old_bytes));
    }
  }
  return absl::OkStatus();
}

absl::Status FileImpl::StageRange(VersionReader& reader, Extent range, uint64_t old_bytes) {
  const uint64_t end = std::min(range.end(), reader.info().size_bytes);
  std::string bytes;
  for (uint64_t at = range.offset; at < end;) {
    uint64_t length = std::min(kCopyBytes, end - at);
    if (at >= old_bytes) {  // There are zeros already.
      H5M_ASSIGN_OR_RETURN(const Extent data, reader.NextData(at));
      if (data.length == 0 || data.offset >= end) return absl::OkStatus();
      at = std::max(at, data.offset);
      length = std::min({kCopyBytes, end - at, data.end() - at});
    }
    bytes.resize(length);
    H5M_RETURN_IF_ERROR(reader.Read(at, absl::MakeSpan(bytes)));
    const Extent part{at, length};
    const std::string_view piece = bytes;
    at += length;
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(WriteLocked({&part, 1}, {&piece, 1}));
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::store
