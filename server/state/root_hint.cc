#include "server/state/root_hint.h"

#include <algorithm>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

constexpr char kOwnDirectory[] = ".h5mirror";

}  // namespace

absl::StatusOr<std::string> ReadRootHint(Env& env, const std::filesystem::path& root,
                                         std::string_view name, size_t bytes_max) {
  H5M_ASSIGN_OR_RETURN(const auto tree, env.OpenTree(root));
  H5M_ASSIGN_OR_RETURN(const auto file, tree->Open(name, OpenKind::kRead, 0));
  H5M_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  std::string bytes(std::min<uint64_t>(size, bytes_max), '\0');
  H5M_ASSIGN_OR_RETURN(const size_t got, file->ReadAt(0, absl::MakeSpan(bytes)));
  bytes.resize(got);
  return bytes;
}

absl::Status ReplaceRootHint(Env& env, const std::filesystem::path& root, std::string_view name,
                             std::string_view bytes) {
  const std::string fresh = StrCat(name, ".new");
  H5M_ASSIGN_OR_RETURN(const auto tree, env.OpenTree(root));
  H5M_ASSIGN_OR_RETURN(const auto file, tree->Open(fresh, OpenKind::kCreateFresh, 0600));
  absl::Status kept = WriteAt(*file, 0, bytes);
  if (kept.ok()) kept = tree->Rename(fresh, name);
  if (!kept.ok()) tree->Remove(fresh).IgnoreError();
  return kept;
}

absl::Status KeepRootFile(Env& env, const std::filesystem::path& root, std::string_view name,
                          std::string_view bytes) {
  const std::string fresh = StrCat(name, ".new");
  H5M_ASSIGN_OR_RETURN(const auto tree, env.OpenTree(root));
  {
    H5M_ASSIGN_OR_RETURN(const auto file, tree->Open(fresh, OpenKind::kCreateFresh, 0600));
    H5M_RETURN_IF_ERROR(WriteAt(*file, 0, bytes));
    H5M_RETURN_IF_ERROR(file->Sync());
  }
  H5M_RETURN_IF_ERROR(tree->Rename(fresh, name));
  return tree->SyncDirectory(kOwnDirectory);
}

absl::Status ForgetRootFile(Env& env, const std::filesystem::path& root, std::string_view name) {
  H5M_ASSIGN_OR_RETURN(const auto tree, env.OpenTree(root));
  const absl::Status removed = tree->Remove(name);
  if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  return tree->SyncDirectory(kOwnDirectory);
}

}  // namespace h5mirror::server
