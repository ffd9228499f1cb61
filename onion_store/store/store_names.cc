// Moving, removing and undeleting: docs/design/033-moving-and-removing.md has the order of the
// steps.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/index/version_index.h"
#include "onion_store/shared/file_owner.h"
#include "onion_store/shared/head_access.h"
#include "onion_store/shared/new_name.h"
#include "onion_store/store/removed_files.h"
#include "onion_store/store/reservation.h"
#include "onion_store/store/store_impl.h"

namespace h5mirror::store {
namespace {

std::string HistoryOf(std::string_view name) { return StrCat(name, ".h5m"); }

bool Concerns(const Relocation& relocation, std::string_view name) {
  return std::any_of(
      relocation.renames.begin(), relocation.renames.end(),
      [&](const Renaming& renaming) { return renaming.from == name || renaming.to == name; });
}

}  // namespace

absl::StatusOr<uint64_t> StoreImpl::Vacate(const std::string& name, Damaged damaged,
                                           std::string_view why) {
  std::shared_ptr<FileImpl> file;
  {
    absl::MutexLock lock(&mutex_);
    file = slots_[name].file.lock();
  }
  if (file != nullptr && !file->dead().ok()) {
    file->WaitUntilStill();
    file = nullptr;
  }
  if (file != nullptr && file->IsNothing()) {
    return absl::NotFoundError(StrCat("no file ", name, "; see h5mirror ls"));
  }
  if (file == nullptr) {
    auto loaded = FileImpl::Load(context_, name, FileImpl::IfMissing::kFail, 0);
    if (damaged == Damaged::kAccept && absl::IsDataLoss(loaded.status())) return 0;
    H5M_RETURN_IF_ERROR(loaded.status());
    file = *std::move(loaded);
  }
  const uint64_t tags = file->CountTags().value_or(0);
  H5M_RETURN_IF_ERROR(file->Leave(absl::UnavailableError(ToAbsl(why))));
  file->WaitUntilStill();
  return tags;
}

// A session without a cut may have ended, and still hold the object of a name that no file has.
absl::Status StoreImpl::DropNothing(const std::string& name) {
  std::shared_ptr<FileImpl> file;
  {
    absl::MutexLock lock(&mutex_);
    const auto slot = slots_.find(name);
    if (slot != slots_.end()) file = slot->second.file.lock();
  }
  if (file == nullptr) return absl::OkStatus();
  if (file->dead().ok()) {
    if (!file->IsNothing()) {
      return absl::AlreadyExistsError(StrCat(name, " is being made: choose another name"));
    }
    H5M_RETURN_IF_ERROR(
        file->Leave(absl::UnavailableError(StrCat(name, " has become another file's name"))));
  }
  file->WaitUntilStill();
  return absl::OkStatus();
}

absl::Status StoreImpl::PrepareTarget(const std::string& name, NameDirectories::Use& use) {
  EnvTree& tree = *context_->tree;
  for (const std::string& taken : {name, HistoryOf(name)}) {
    const auto there = tree.Stat(taken);
    if (there.ok()) return absl::AlreadyExistsError(StrCat(taken, " exists: choose another name"));
    if (!absl::IsNotFound(there.status())) return there.status();
  }
  H5M_RETURN_IF_ERROR(DropNothing(name));
  // A move that has begun may be finished much later, and needs the directories then.
  use.Keep();
  H5M_RETURN_IF_ERROR(use.Make(DirectoryMode(context_->options)));
  for (size_t slash = name.find('/'); slash != std::string::npos;
       slash = name.find('/', slash + 1)) {
    H5M_RETURN_IF_ERROR(context_->durable_names.Sync(tree, name.substr(0, slash)));
  }
  return absl::OkStatus();
}

absl::Status StoreImpl::Relocate(Relocation relocation) {
  EnvTree& tree = *context_->tree;
  absl::Status begun = BeginRelocation(tree, relocation);
  if (begun.ok()) begun = FinishRelocation(tree, relocation);
  if (begun.ok()) return begun;
  // The journal may be durable although its sync failed: the move counts as begun.
  absl::Status status(begun.code(),
                      ToAbsl(StrCat("moving ", relocation.renames.back().from, " to ",
                                    relocation.renames.back().to, ": ", ToStd(begun.message()))));
  absl::MutexLock lock(&mutex_);
  pending_.push_back(std::move(relocation));
  return status;
}

absl::Status StoreImpl::FinishPending(absl::Span<const std::string> names) {
  std::vector<std::string> changed;
  const absl::Cleanup tell = [&] { TellOfOwners(changed); };
  absl::MutexLock lock(&mutex_);
  for (auto at = pending_.begin(); at != pending_.end();) {
    const Relocation& relocation = *at;
    const bool concerned = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return Concerns(relocation, name);
    });
    if (!concerned) {
      ++at;
      continue;
    }
    for (const Renaming& renaming : relocation.renames) {
      changed.push_back(renaming.from);
      changed.push_back(renaming.to);
    }
    const absl::Cleanup forget = [&] { ForgetOwners(changed); };
    if (absl::Status finished = FinishRelocation(*context_->tree, relocation); !finished.ok()) {
      return absl::UnavailableError(
          StrCat("a move of ", relocation.renames.back().from, " to ", relocation.renames.back().to,
                 " was cut short and cannot be finished: ", ToStd(finished.message())));
    }
    at = pending_.erase(at);
  }
  return absl::OkStatus();
}

void StoreImpl::NoteMovedHead(const std::string& name) {
  auto index = VersionIndex::Open(context_->vfs, *context_->tree, HistoryOf(name));
  if (!index.ok()) return;
  auto row = (*index)->ReadFileRow();
  const auto now = context_->tree->Stat(name);
  if (!row.ok() || !now.ok()) return;
  FileStat renamed = row->head;
  renamed.ctime_ns = now->ctime_ns;
  if (row->head.inode == 0 || renamed != *now) return;
  row->head = renamed;
  (*index)->WriteFileRow(*row).IgnoreError();  // An error only costs time at the next open.
}

// Forgets both, even if the call has failed: the names may be moved later, or be moved already.
void StoreImpl::ForgetOwners(absl::Span<const std::string> names) {
  for (const std::string& name : names) {
    context_->owners.Forget(name);
    context_->glances.Forget(name);
  }
}

void StoreImpl::TellOfOwners(absl::Span<const std::string> names) {
  for (const std::string& name : names) context_->TellOfOwner(name);
}

absl::StatusOr<FileOwner> StoreImpl::OwnerOf(std::string_view name) {
  if (!CheckName(name).ok()) return FileOwner();  // No file has it.
  const uint64_t moment = context_->owners.Now();
  std::shared_ptr<FileImpl> file;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return absl::UnavailableError("the store is closed");
    const auto slot = slots_.find(ToAbsl(name));
    if (slot != slots_.end()) file = slot->second.file.lock();
  }
  if (file != nullptr && file->dead().ok()) return file->Owner();
  if (std::optional<std::string> owner = context_->owners.Find(name)) {
    return FileOwner{true, *std::move(owner)};
  }
  H5M_ASSIGN_OR_RETURN(FileOwner found, ReadOwner(*context_->tree, name));
  if (found.is_there) context_->owners.Put(name, found.owner, moment);
  return found;
}

absl::Status StoreImpl::Move(std::string_view name, std::string_view new_name) {
  H5M_RETURN_IF_ERROR(CheckName(name));
  H5M_RETURN_IF_ERROR(CheckNewName(new_name));
  const std::string from(name), to(new_name);
  if (from == to) return absl::AlreadyExistsError(StrCat(name, " has that name already"));
  const std::vector<std::string> names{from, to};
  H5M_RETURN_IF_ERROR(FinishPending(names));
  const absl::Cleanup tell = [&] { TellOfOwners(names); };  // once they are no longer reserved
  H5M_ASSIGN_OR_RETURN(const auto reservation, Reservation::Take(*this, names));
  H5M_RETURN_IF_ERROR(Vacate(from, Damaged::kRefuse, StrCat(from, " was moved to ", to)).status());
  NameDirectories::Use use(context_->name_directories, to);
  H5M_RETURN_IF_ERROR(PrepareTarget(to, use));
  const absl::Cleanup forget = [&] { ForgetOwners(names); };
  H5M_RETURN_IF_ERROR(Relocate(
      {NewRemovalId(context_->env.Now()), {{HistoryOf(from), HistoryOf(to)}, {from, to}}}));
  NoteMovedHead(to);
  return absl::OkStatus();
}

absl::StatusOr<RemovedFile> StoreImpl::Remove(std::string_view name, const Provenance& who,
                                              absl::Duration keep) {
  H5M_RETURN_IF_ERROR(CheckName(name));
  EnvTree& tree = *context_->tree;
  const std::string from(name);
  H5M_RETURN_IF_ERROR(FinishPending({&from, 1}));
  RemovedFile removed;
  removed.removed = context_->env.Now();
  removed.expires = removed.removed + keep;
  removed.id = NewRemovalId(removed.removed);
  removed.name = from;
  const absl::Cleanup tell = [&] { TellOfOwners({&from, 1}); };
  // The removal's place too: a purge or an undelete waits until both of its parts are there.
  H5M_ASSIGN_OR_RETURN(const auto reservation,
                       Reservation::Take(*this, {from, RemovedHead(removed.id)}));
  H5M_ASSIGN_OR_RETURN(removed.tags, Vacate(from, Damaged::kAccept, StrCat(from, " was removed")));
  removed.who = who;
  removed.disk_bytes = BytesOf(tree, from) + BytesBelow(tree, HistoryOf(from));
  if (const auto sizes = MeasureHistory(tree, from, WithHead::kYes); sizes.ok()) {
    removed.head_bytes = sizes->head;
    removed.history_bytes = sizes->history();
  }
  const auto owner = ReadOwner(tree, from);
  if (owner.ok()) removed.owner = owner->owner;
  H5M_RETURN_IF_ERROR(PutRemovedInfo(tree, removed));
  const absl::Cleanup forget = [&] { ForgetOwners({&from, 1}); };
  H5M_RETURN_IF_ERROR(
      Relocate({removed.id,
                {{HistoryOf(from), RemovedHistory(removed.id)}, {from, RemovedHead(removed.id)}}}));
  return removed;
}

absl::StatusOr<std::vector<RemovedFile>> StoreImpl::ListRemoved() {
  return ListRemovedFiles(*context_->tree);
}

absl::StatusOr<std::string> StoreImpl::Undelete(std::string_view removal_id,
                                                std::string_view new_name) {
  EnvTree& tree = *context_->tree;
  H5M_ASSIGN_OR_RETURN(const RemovedFile removed, GetRemoved(tree, removal_id));
  const std::string to = new_name.empty() ? removed.name : std::string(new_name);
  H5M_RETURN_IF_ERROR(to == removed.name ? CheckName(to) : CheckNewName(to));
  // The removal's place is reserved under a name that no file can have.
  const std::vector<std::string> names{RemovedHead(removed.id), to};
  H5M_RETURN_IF_ERROR(FinishPending(names));
  const absl::Cleanup tell = [&] { TellOfOwners({&to, 1}); };
  H5M_ASSIGN_OR_RETURN(const auto reservation, Reservation::Take(*this, names));
  H5M_RETURN_IF_ERROR(GetRemoved(tree, removal_id).status());  // Another call may have come first.
  if (removed.expires <= context_->env.Now()) {
    return absl::NotFoundError(
        StrCat(removed.name, " was removed, and its retention ended at ",
               absl::FormatTime(absl::RFC3339_sec, removed.expires, absl::UTCTimeZone())));
  }
  NameDirectories::Use use(context_->name_directories, to);
  H5M_RETURN_IF_ERROR(PrepareTarget(to, use));
  const absl::Cleanup forget = [&] { ForgetOwners({&to, 1}); };
  H5M_RETURN_IF_ERROR(
      Relocate({NewRemovalId(context_->env.Now()),
                {{RemovedHistory(removed.id), HistoryOf(to)}, {RemovedHead(removed.id), to}}}));
  DropRemovedInfo(tree, removed.id).IgnoreError();  // The next start does it.
  NoteMovedHead(to);
  return to;
}

}  // namespace h5mirror::store
