#include "archive/directory_store.h"

#include <algorithm>

#include "archive/cluster_mark.h"
#include "archive/root_archive.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::archive {
namespace {

constexpr size_t kPieceBytes = 1 << 20;
constexpr std::string_view kNew = ".new";

std::string_view ParentOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string Join(std::string_view directory, std::string_view name) {
  return StrCat(directory, directory.empty() || name.empty() ? "" : "/", name);
}

// Other servers may look for the owner at any moment, and must always find the name.
bool KeepsName(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name == RootArchive::kOwnerObject || name == ClusterMark::kObject;
}

absl::Status IgnoreNotFound(absl::Status status) {
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::Status Copy(store::ObjectSource& source, EnvFile& to) {
  std::string piece;
  for (uint64_t at = 0; at < source.size_bytes(); at += piece.size()) {
    piece.resize(std::min<uint64_t>(kPieceBytes, source.size_bytes() - at));
    H5M_RETURN_IF_ERROR(source.Read(at, absl::MakeSpan(piece)));
    H5M_RETURN_IF_ERROR(WriteAt(to, at, piece));
    to.StartWriteback({at, piece.size()});
  }
  return absl::OkStatus();
}

}  // namespace

// One part of a list, while it is made. Names are in byte order.
struct DirectoryStore::Listing {
  std::string prefix;
  std::string after;  // the last name of the part before
  size_t limit = 0;
  store::ObjectPage page;
  bool is_full = false;

  // Whether a name that begins with `directory` and a '/' can be wanted.
  bool WantsBelow(std::string_view directory) const {
    const std::string below = StrCat(directory, "/");
    const size_t common = std::min(below.size(), prefix.size());
    if (below.compare(0, common, prefix, 0, common) != 0) return false;
    return after.compare(0, below.size(), below) <= 0;
  }
  bool Wants(std::string_view name) const {
    return name.starts_with(prefix) && (after.empty() || name > after);
  }
};

absl::StatusOr<std::unique_ptr<DirectoryStore>> DirectoryStore::Open(
    Env& env, const std::filesystem::path& root) {
  H5M_ASSIGN_OR_RETURN(auto tree, env.OpenTree(root));
  return std::make_unique<DirectoryStore>(std::move(tree), "", root.string());
}

std::string DirectoryStore::PathOf(std::string_view name) const { return Join(directory_, name); }

absl::Status DirectoryStore::In(const absl::Status& status, std::string_view call,
                                std::string_view name) const {
  if (status.ok()) return status;
  const std::string text =
      StrCat(call, " ", name, " in ", description_, ": ", ToStd(status.message()));
  switch (status.code()) {
    case absl::StatusCode::kInternal:         // from a sync, or from a failing disk
    case absl::StatusCode::kInvalidArgument:  // a symlink in the way
      return absl::FailedPreconditionError(text);
    default:
      return absl::Status(status.code(), text);
  }
}

absl::Status DirectoryStore::Put(std::string_view name, store::ObjectSource& source,
                                 absl::Duration /*timeout*/) {
  H5M_RETURN_IF_ERROR(store::CheckObjectName(name));
  return In(PutFile(PathOf(name), source), "put", name);
}

absl::Status DirectoryStore::PutFile(const std::string& path, store::ObjectSource& source) {
  H5M_RETURN_IF_ERROR(MakeDirectories(path));
  H5M_ASSIGN_OR_RETURN(const bool is_there, tree_->Exists(path));
  if (is_there) {
    H5M_RETURN_IF_ERROR(Settle(path, KeepsName(path)));
    return absl::AlreadyExistsError("there is one already");
  }
  const std::string fresh = StrCat(path, kNew);
  // Removes the file that an earlier call left: after a failed sync its pages may count as written.
  H5M_RETURN_IF_ERROR(IgnoreNotFound(tree_->Remove(fresh)));
  {
    auto file = tree_->Open(fresh, OpenKind::kCreateFresh, 0600);
    if (absl::IsNotFound(file.status())) {  // A user has removed a directory.
      ForgetDirectories();
      H5M_RETURN_IF_ERROR(MakeDirectories(path));
      file = tree_->Open(fresh, OpenKind::kCreateFresh, 0600);
    }
    H5M_RETURN_IF_ERROR(file.status());
    H5M_RETURN_IF_ERROR(Copy(source, **file));
    H5M_RETURN_IF_ERROR((*file)->Sync());
  }
  H5M_RETURN_IF_ERROR(tree_->Rename(fresh, path));
  return tree_->SyncDirectory(ParentOf(path));
}

// A sync of its name may have failed or never happened: so the object gets its name anew.
absl::Status DirectoryStore::Settle(const std::string& path, bool keeps_name) {
  {
    H5M_ASSIGN_OR_RETURN(const auto file, tree_->Open(path, OpenKind::kWrite, 0));
    H5M_RETURN_IF_ERROR(file->Sync());
  }
  if (keeps_name) return tree_->SyncDirectory(ParentOf(path));
  const std::string fresh = StrCat(path, kNew);
  H5M_RETURN_IF_ERROR(tree_->Rename(path, fresh));
  H5M_RETURN_IF_ERROR(tree_->Rename(fresh, path));
  return tree_->SyncDirectory(ParentOf(path));
}

absl::Status DirectoryStore::MakeDirectories(const std::string& path) {
  // From the top down.
  for (size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
    H5M_RETURN_IF_ERROR(MakeDirectory(path.substr(0, at)));
  }
  return absl::OkStatus();
}

void DirectoryStore::ForgetDirectories() {
  const absl::MutexLock lock(&mutex_);
  known_.clear();
}

absl::Status DirectoryStore::MakeDirectory(const std::string& path) {
  {
    const absl::MutexLock lock(&mutex_);
    if (known_.contains(path)) return absl::OkStatus();
  }
  const absl::Status made = tree_->MakeDirectory(path, 0700);
  if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  // Even if the directory existed: an earlier process may have ended before its sync.
  H5M_RETURN_IF_ERROR(tree_->SyncDirectory(ParentOf(path)));
  const absl::MutexLock lock(&mutex_);
  known_.insert(path);
  return absl::OkStatus();
}

absl::Status DirectoryStore::Get(std::string_view name, uint64_t offset, absl::Span<char> out,
                                 absl::Duration /*timeout*/) {
  H5M_RETURN_IF_ERROR(store::CheckObjectName(name));
  const auto file = tree_->Open(PathOf(name), OpenKind::kRead, 0);
  if (!file.ok()) return In(file.status(), "get", name);
  const absl::StatusOr<size_t> got = (*file)->ReadAt(offset, out);
  if (!got.ok()) return In(got.status(), "get", name);
  if (*got == out.size()) return absl::OkStatus();
  return In(absl::DataLossError(StrCat("it ends before offset ", offset + out.size())), "get",
            name);
}

absl::StatusOr<store::ObjectInfo> DirectoryStore::Head(std::string_view name,
                                                       absl::Duration /*timeout*/) {
  H5M_RETURN_IF_ERROR(store::CheckObjectName(name));
  const auto stat = tree_->Stat(PathOf(name));
  if (!stat.ok()) return In(stat.status(), "look at", name);
  return store::ObjectInfo{std::string(name), static_cast<uint64_t>(stat->size_bytes)};
}

absl::Status DirectoryStore::Delete(std::string_view name, absl::Duration /*timeout*/) {
  H5M_RETURN_IF_ERROR(store::CheckObjectName(name));
  const std::string path = PathOf(name);
  const auto remove = [&]() -> absl::Status {
    H5M_RETURN_IF_ERROR(IgnoreNotFound(tree_->Remove(StrCat(path, kNew))));
    H5M_RETURN_IF_ERROR(IgnoreNotFound(tree_->Remove(path)));
    // After the delete no row names the object, so a power loss must not bring it back.
    return IgnoreNotFound(tree_->SyncDirectory(ParentOf(path)));
  };
  return In(remove(), "delete", name);
}

absl::StatusOr<store::ObjectPage> DirectoryStore::List(std::string_view prefix,
                                                       std::string_view next, size_t limit,
                                                       absl::Duration /*timeout*/) {
  Listing listing{std::string(prefix),
                  std::string(next),
                  std::clamp<size_t>(limit, 1, store::kObjectListMax),
                  {}};
  const absl::Status listed = ListBelow("", &listing);
  if (!listed.ok()) return In(listed, "list", prefix);
  if (listing.is_full) listing.page.next = listing.page.objects.back().name;
  return std::move(listing.page);
}

absl::Status DirectoryStore::ListBelow(const std::string& name, Listing* listing) const {
  auto entries = tree_->List(PathOf(name));
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(entries.status());
  // The names below a directory begin with its own and a '/'.
  const auto key = [](const DirectoryEntry& entry) {
    return entry.kind == EntryKind::kDirectory ? StrCat(entry.name, "/") : entry.name;
  };
  std::sort(entries->begin(), entries->end(),
            [&](const DirectoryEntry& a, const DirectoryEntry& b) { return key(a) < key(b); });
  for (const DirectoryEntry& entry : *entries) {
    const std::string inner = Join(name, entry.name);
    if (!store::CheckObjectName(inner).ok()) continue;
    if (entry.kind == EntryKind::kDirectory) {
      if (listing->WantsBelow(inner)) H5M_RETURN_IF_ERROR(ListBelow(inner, listing));
      if (listing->is_full) return absl::OkStatus();
      continue;
    }
    if (entry.kind != EntryKind::kFile || !listing->Wants(inner)) continue;
    if (listing->page.objects.size() == listing->limit) {
      listing->is_full = true;
      return absl::OkStatus();
    }
    const auto stat = tree_->Stat(PathOf(inner));
    if (absl::IsNotFound(stat.status())) continue;  // Deleted meanwhile.
    H5M_RETURN_IF_ERROR(stat.status());
    listing->page.objects.push_back({inner, static_cast<uint64_t>(stat->size_bytes)});
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::archive
