// Lists, finds, names and opens versions.
#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/hex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/file/file_impl.h"
#include "onion_store/file/versions/version_reader.h"
#include "onion_store/history_names.h"
#include "onion_store/shared/file_owner.h"
#include "onion_store/store.h"

namespace h5mirror::store {

absl::StatusOr<std::vector<VersionInfo>> FileImpl::ListVersions(const VersionRange& range,
                                                                size_t limit) {
  H5M_ASSIGN_OR_RETURN(auto index, Index());
  if (index == nullptr) return std::vector<VersionInfo>();
  return index->List(range, limit);
}

absl::StatusOr<VersionInfo> FileImpl::GetVersion(VersionNumber version) {
  std::shared_ptr<VersionIndex> index;
  VersionNumber wanted = version;
  {
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(health_.dead());
    if (version == 0) wanted = newest_.version;
    index = index_;
  }
  if (index != nullptr && wanted > 0) {
    auto found = index->GetVersion(wanted);
    if (found.ok()) return found->info;
    if (!absl::IsNotFound(found.status())) return found.status();
  }
  absl::MutexLock lock(&mutex_);
  if (newest_.version == 0) {
    return absl::NotFoundError(StrCat(files_.name(), " has no version yet"));
  }
  if (version > 0 && version < newest_.version) {
    return dropped_versions_.Pruned(version);
  }
  return absl::NotFoundError(
      StrCat(files_.name(), " has no version ", version, "; the newest is ", newest_.version));
}

absl::StatusOr<VersionInfo> FileImpl::Found(absl::StatusOr<VersionNumber> number,
                                            absl::FunctionRef<std::string()> missing) {
  H5M_RETURN_IF_ERROR(number.status());
  if (*number == 0) return absl::NotFoundError(ToAbsl(missing()));
  return GetVersion(*number);
}

absl::StatusOr<VersionInfo> FileImpl::FindVersionBack(int64_t back) {
  if (back < 0) return absl::InvalidArgumentError(StrCat("back ", back, " is negative"));
  H5M_ASSIGN_OR_RETURN(auto index, Index());
  if (index == nullptr || back == 0) return GetVersion(0);
  return Found(index->FindBack(back), [&] {
    return StrCat(files_.name(), "@latest-", back, ": the file has only ",
                  index->CountUpTo(INT64_MAX).value_or(0), " versions; see h5mirror log");
  });
}

absl::StatusOr<VersionInfo> FileImpl::FindVersionAt(absl::Time time) {
  H5M_ASSIGN_OR_RETURN(auto index, Index());
  if (index == nullptr) return GetVersion(0);
  return Found(index->FindTime(time), [&] {
    return StrCat(files_.name(), " has no version from ",
                  absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone()),
                  " or before; see h5mirror log");
  });
}

absl::StatusOr<VersionInfo> FileImpl::FindVersionTagged(std::string_view tag) {
  H5M_RETURN_IF_ERROR(CheckTag(tag));
  H5M_ASSIGN_OR_RETURN(auto index, Index());
  if (index == nullptr) return GetVersion(0);
  return Found(index->FindTag(tag),
               [&] { return StrCat(files_.name(), " has no tag '", tag, "'; see h5mirror log"); });
}

absl::StatusOr<VersionInfo> FileImpl::FindVersionOfGroup(const GroupCut& cut) {
  H5M_ASSIGN_OR_RETURN(auto index, Index());
  if (index == nullptr) return GetVersion(0);
  return Found(index->FindGroupCut(cut), [&] {
    return StrCat(files_.name(), " has no version of cut ", cut.number, " of group ", HexOf(cut.id),
                  "; see h5mirror log");
  });
}

absl::StatusOr<VersionNumber> FileImpl::Tag(VersionNumber version, std::string_view tag,
                                            TagMode mode) {
  H5M_RETURN_IF_ERROR(CheckTag(tag));
  absl::MutexLock tagging(&tag_mutex_);
  H5M_ASSIGN_OR_RETURN(const VersionInfo info, GetVersion(version));
  H5M_ASSIGN_OR_RETURN(auto index, Index());
  auto previous = index->SetTag(info.version, tag, mode);
  if (!previous.ok()) return TagFailed(previous.status());
  return previous;
}

absl::StatusOr<VersionNumber> FileImpl::Untag(std::string_view tag) {
  H5M_RETURN_IF_ERROR(CheckTag(tag));
  absl::MutexLock tagging(&tag_mutex_);
  H5M_ASSIGN_OR_RETURN(auto index, Index());
  absl::StatusOr<VersionNumber> previous = 0;
  if (index != nullptr) previous = index->RemoveTag(tag);
  if (!previous.ok()) return TagFailed(previous.status());
  if (*previous == 0) {
    return absl::NotFoundError(StrCat(files_.name(), " has no tag '", tag, "'; see h5mirror log"));
  }
  return previous;
}

absl::StatusOr<uint64_t> FileImpl::CountTags() {
  H5M_ASSIGN_OR_RETURN(auto index, Index());
  if (index == nullptr) return 0;
  return index->CountTags();
}

absl::StatusOr<CheckInfo> FileImpl::RecordCheck(VersionNumber version, uint64_t differing_bytes) {
  absl::MutexLock tagging(&tag_mutex_);
  H5M_ASSIGN_OR_RETURN(const FileInfo info, Info());
  if (version < 1 || version > info.newest_version.version) {
    return absl::InvalidArgumentError(StrCat(files_.name(), " never had a version ", version,
                                             "; the newest is ", info.newest_version.version));
  }
  CheckInfo check;
  check.time = context_->env.Now();
  check.version = version;
  check.differing_bytes = differing_bytes;
  if (differing_bytes == 0) {
    check.equal_time = check.time;
  } else if (info.last_check) {
    check.equal_time = info.last_check->equal_time;
  }
  H5M_ASSIGN_OR_RETURN(auto index, Index());
  if (absl::Status kept = index->SetLastCheck(check); !kept.ok()) return TagFailed(kept);
  last_check_.Set(check);
  files_.SetMark(kCheckMarks);
  return check;
}

absl::Status FileImpl::TagFailed(const absl::Status& status) {
  const bool refused = absl::IsAlreadyExists(status) || absl::IsNotFound(status);
  if (!refused && !absl::IsResourceExhausted(status)) {
    absl::MutexLock lock(&mutex_);
    DieLocked(status);
  }
  return absl::Status(status.code(), ToAbsl(StrCat(files_.name(), ": ", ToStd(status.message()))));
}

std::string FileImpl::HeadName(int64_t generation) {
  absl::MutexLock lock(&mutex_);
  return generation == row_.generation ? files_.name() : files_.OldHeadName(generation);
}

absl::StatusOr<std::unique_ptr<VersionReader>> FileImpl::OpenVersion(VersionNumber version) {
  const uint64_t epoch = dropped_versions_.epoch();
  H5M_ASSIGN_OR_RETURN(VersionInfo info, GetVersion(version));
  absl::MutexLock lock(&mutex_);
  // The index has a new version a moment before its cut counts as durable here. A reader without
  // that cut's staged bytes would read the version before in its place.
  auto known = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return newest_.version >= info.version || !health_.dead().ok();
  };
  mutex_.Await(absl::Condition(&known));
  H5M_RETURN_IF_ERROR(health_.dead());
  GenerationPtr generation;
  if (info.generation == row_.generation) {
    generation =
        cuts_.base != nullptr && cuts_.base->number == info.generation ? cuts_.base : nullptr;
    // A newer generation may be visible but not durable: the old one is in its layers, or set
    // aside.
    for (const LayerPtr& layer : cuts_.layers) {
      if (layer->generation->number == info.generation) generation = layer->generation;
    }
  }
  if (generation == nullptr) {
    GenerationPtr& kept = cuts_.old_generations[info.generation];
    if (kept == nullptr) {
      // Under the lock, which a prune takes before it removes heads.
      H5M_RETURN_IF_ERROR(dropped_versions_.CheckNotDropped(*index_, info.version, epoch));
      std::string head_name =
          info.generation == row_.generation ? files_.name() : files_.OldHeadName(info.generation);
      H5M_ASSIGN_OR_RETURN(kept, OpenGeneration(info.generation, head_name, OpenKind::kRead));
    }
    generation = kept;
  }
  std::vector<LayerPtr> layers;
  for (const LayerPtr& layer : cuts_.layers) {
    if (!layer->durable || layer->cut > info.cut || layer->generation != generation) continue;
    layers.push_back(layer);
    for (const auto& segment : layer->segments) ++segment->reader_count;
  }
  return std::make_unique<VersionReaderImpl>(shared_from_this(), std::move(info),
                                             std::move(generation), std::move(layers), index_,
                                             Pages(), epoch);
}

absl::StatusOr<MadeVersion> FileImpl::MakeVersion(const Provenance& provenance,
                                                  const std::array<uint8_t, 16>& request_id) {
  absl::MutexLock work(&work_lock_);
  H5M_ASSIGN_OR_RETURN(auto index, Index());
  if (index != nullptr) {
    auto done = index->FindRequest(request_id);
    if (done.ok()) return MadeVersion{done->info, false};
    if (!absl::IsNotFound(done.status())) return done.status();
  }
  VersionNumber before = 0;
  std::optional<DueVersion> fold;
  {
    // The fold is a part of the coming version, and must not become a version of its own before.
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(health_.dead());
    if (cuts_.last.number == 0) {
      return absl::FailedPreconditionError(
          StrCat(files_.name(), " has no cut yet, nothing to keep"));
    }
    before = newest_.version;
    if (!due_work_.has_lost_cut()) fold = due_work_.TakeVersion(before, absl::InfiniteFuture());
    due_work_.DropFold();
  }
  // Unless the version is made.
  absl::Cleanup put_back = [&] {
    absl::MutexLock lock(&mutex_);
    if (!fold || due_work_.has_fold()) return;
    due_work_.AddFold(absl::InfinitePast(), std::move(fold->provenance));
    Post(absl::InfinitePast());
  };
  H5M_RETURN_IF_ERROR(MakeAllDurableLocked());
  if (HistoryStopped()) {
    absl::MutexLock lock(&mutex_);
    if (row_.changed && newest_.version == before) {
      return absl::ResourceExhaustedError(
          StrCat(files_.name(),
                 ": no version was made, its history is stopped; h5mirror status tells why"));
    }
  }
  if (absl::Status kept = MakeVersionOfDurableCut(provenance, request_id); !kept.ok()) {
    if (!absl::IsResourceExhausted(kept)) Die(kept);
    return kept;
  }
  std::move(put_back).Cancel();
  H5M_ASSIGN_OR_RETURN(VersionInfo newest, GetVersion(0));
  return MadeVersion{newest, newest.version == before};
}

absl::StatusOr<VersionInfo> FileImpl::FindRequest(const std::array<uint8_t, 16>& request_id) {
  H5M_ASSIGN_OR_RETURN(auto index, Index());
  if (index == nullptr) return absl::NotFoundError(StrCat(files_.name(), " has no version yet"));
  H5M_ASSIGN_OR_RETURN(VersionRow found, index->FindRequest(request_id));
  return std::move(found.info);
}

absl::Status FileImpl::Leave(const absl::Status& why) {
  absl::MutexLock work(&work_lock_);
  {
    absl::MutexLock lock(&mutex_);
    if (session_.is_writing()) {
      return absl::FailedPreconditionError(StrCat(files_.name(), ": a session writes it"));
    }
  }
  H5M_RETURN_IF_ERROR(FlushLocked());
  absl::MutexLock tag(&tag_mutex_);
  absl::MutexLock lock(&mutex_);
  const bool is_due = due_work_.has_lost_cut() || due_work_.has_fold();
  if (session_.is_writing() || !cuts_.layers.empty() || is_due) {
    return absl::FailedPreconditionError(StrCat(files_.name(), ": it was written meanwhile"));
  }
  history_.ClearMark();
  health_.Leave(why);
  return absl::OkStatus();
}

absl::Status FileImpl::SetOrigin(VersionNumber version, const Origin& origin,
                                 const LocalStat& local) {
  WorkTurn turn(&work_lock_);
  H5M_RETURN_IF_ERROR(FlushLocked());
  FileRow row;
  std::shared_ptr<VersionIndex> index;
  {
    absl::MutexLock lock(&mutex_);
    if (newest_.version != version || row_.changed) {
      return absl::AbortedError(
          StrCat(files_.name(), "@", version, " is not the newest; that is ", newest_.version));
    }
    row = row_;
    index = index_;
  }
  row.origin = origin;
  row.local = local;
  absl::Status written = index->WriteFileRow(row);
  if (!written.ok()) {
    if (!absl::IsResourceExhausted(written)) Die(written);
    return written;
  }
  absl::MutexLock lock(&mutex_);
  row_ = row;
  return absl::OkStatus();
}

absl::Status FileImpl::SetOwner(const std::string& owner) {
  if (!owner.empty()) H5M_RETURN_IF_ERROR(CheckOwner(owner));
  // Even after a failure: the disk may have the old or the new owner.
  const absl::Cleanup tell = [&] { context_->TellOfOwner(files_.name()); };
  WorkTurn turn(&work_lock_);
  {
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(health_.dead());
    if (row_.durable_cut == 0) {
      return absl::FailedPreconditionError(
          StrCat(files_.name(), " has no durable cut yet: try again"));
    }
  }
  if (absl::Status changed = ChangeOwner(*context_->tree, files_.directory(), owner);
      !changed.ok()) {
    Die(changed);  // The next open reads the owner from the disk.
    context_->owners.Forget(files_.name());
    return changed;
  }
  absl::MutexLock lock(&mutex_);
  owner_ = owner;
  return absl::OkStatus();
}

}  // namespace h5mirror::store
