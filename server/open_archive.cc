#include "server/open_archive.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/state/root_hint.h"

namespace h5mirror::server {
namespace {

constexpr char kOwnerFile[] = ".h5mirror/archive";
constexpr char kOwnerDirectory[] = ".h5mirror";
constexpr size_t kOwnerBytesMax = 64;

}  // namespace

// Unlike a hint it must not be lost: without it the archive would count as another root's.
absl::Status KeepArchive(Env& env, const std::filesystem::path& root, const std::string& owner) {
  const std::string fresh = StrCat(kOwnerFile, ".new");
  H5M_ASSIGN_OR_RETURN(const auto tree, env.OpenTree(root));
  H5M_ASSIGN_OR_RETURN(const auto file, tree->Open(fresh, OpenKind::kCreateFresh, 0600));
  H5M_RETURN_IF_ERROR(WriteAt(*file, 0, StrCat(owner, "\n")));
  H5M_RETURN_IF_ERROR(file->Sync());
  H5M_RETURN_IF_ERROR(tree->Rename(fresh, kOwnerFile));
  return tree->SyncDirectory(kOwnerDirectory);
}

absl::StatusOr<std::string> KeptArchive(Env& env, const std::filesystem::path& root) {
  auto kept = ReadRootHint(env, root, kOwnerFile, kOwnerBytesMax);
  if (absl::IsNotFound(kept.status())) return std::string();
  H5M_RETURN_IF_ERROR(kept.status());
  return std::string(absl::StripAsciiWhitespace(*kept));
}

absl::StatusOr<std::shared_ptr<archive::RootArchive>> OpenArchive(const Config& config,
                                                                  Env& root_env) {
  if (!config.HasArchive()) return nullptr;
  archive::RootArchive::Settings settings;
  settings.url = config.archive;
  settings.background_rate = config.archive_rate;
  H5M_ASSIGN_OR_RETURN(settings.owner, KeptArchive(root_env, config.root));
  settings.keep_owner = [&root_env, root = config.root](const std::string& owner) {
    return KeepArchive(root_env, root, owner);
  };
  settings.owner_place = (config.root / kOwnerFile).string();
  auto opened = archive::RootArchive::Open(Env::Posix(), std::move(settings));
  if (opened.ok()) return std::shared_ptr<archive::RootArchive>(*std::move(opened));
  return absl::Status(opened.status().code(), StrCat("archive = \"", config.archive,
                                                     "\": ", ToStd(opened.status().message())));
}

}  // namespace h5mirror::server
