#include "server/restore_cells.h"

#include <utility>

#include "archive/archive_url.h"
#include "archive/directory_store.h"
#include "archive/s3_store.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/open_archive.h"

namespace h5mirror::server {

absl::StatusOr<std::unique_ptr<store::ObjectStore>> OpenArchivePart(const std::string& url_text,
                                                                    const std::string& part) {
  H5M_ASSIGN_OR_RETURN(archive::ArchiveUrl url, archive::ParseArchiveUrl(url_text));
  if (url.directory.empty()) {
    url.s3.prefix += StrCat(url.s3.prefix.empty() ? "" : "/", part);
    return archive::S3Store::Open(std::move(url.s3));
  }
  H5M_ASSIGN_OR_RETURN(auto tree, Env::Posix().OpenTree(url.directory));
  return std::make_unique<archive::DirectoryStore>(std::move(tree), part,
                                                   StrCat(url.directory, "/", part));
}

absl::StatusOr<std::set<std::string>> ListCells(store::ObjectStore& archive) {
  std::set<std::string> cells;
  std::string next;
  do {
    H5M_ASSIGN_OR_RETURN(
        const store::ObjectPage page,
        archive.List(kCellParts, next, store::kObjectListMax, kRestoreCallTimeout));
    for (const store::ObjectInfo& object : page.objects) {
      const auto cell = CellOfObject(object.name);
      if (cell) cells.insert(*cell);
    }
    next = page.next;
  } while (!next.empty());
  return cells;
}

absl::Status CheckCellsApart(const std::set<std::string>& cells) {
  const auto refuse = [](const std::string& outer, const std::string& inner) {
    return absl::FailedPreconditionError(StrCat("the archive has the cells \"", outer, "\" and \"",
                                                inner,
                                                "\", which lie in each other: restore each with "
                                                "--cell"));
  };
  for (const std::string& cell : cells) {
    if (!cell.empty() && cells.contains("")) return refuse("", cell);
    for (size_t at = cell.find('/'); at != cell.npos; at = cell.find('/', at + 1)) {
      if (cells.contains(cell.substr(0, at))) return refuse(cell.substr(0, at), cell);
    }
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::server
