// Opens the archive of the configuration.
#ifndef H5MIRROR_SERVER_OPEN_ARCHIVE_H_
#define H5MIRROR_SERVER_OPEN_ARCHIVE_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "archive/root_archive.h"
#include "base/env.h"
#include "server/settings/config.h"

namespace h5mirror::server {

// nullptr: there is none. Makes no call of the archive. The root remembers which archive is its
// own, in .h5mirror/archive of `root_env`, which must outlive the archive. A directory for the
// archive is one of this machine, wherever the root is.
// Errors: kFailedPrecondition, kPermissionDenied, kInvalidArgument
//             the credentials, or what the root remembers; the message names the key.
//         those of reading the root.
absl::StatusOr<std::shared_ptr<archive::RootArchive>> OpenArchive(const Config& config,
                                                                  Env& root_env);

// The archive of a server of a cluster: of no root itself, but of the cells that it serves, each of
// which has a part of it. nullptr: there is none. Errors: as above.
absl::StatusOr<std::shared_ptr<archive::RootArchive>> OpenClusterArchive(const Config& config);
// The part of a cell, whose root is `root` in `root_env`; that must outlive it. The cell's note of
// its archive goes with it from server to server. The part changes nothing before it has a guard.
// If the note cannot be read or is malformed, the cell is served all the same; then each call of
// the part fails with kFailedPrecondition. Errors: kInvalidArgument: too long a name, see
// CheckCellNames().
absl::StatusOr<std::shared_ptr<archive::RootArchive>> OpenCellArchive(
    const archive::RootArchive& of_server, const std::string& cell, Env& root_env,
    const std::filesystem::path& root);

// Where the objects of a cell lie in the archive of its cluster: docs/reference/format.md, "Objects
// of an archive". "lab a" has "cells/lab_20a".
std::string PartOfCell(std::string_view cell);
// The inverse, of the name of any object in it; nullopt: it is in none. Whoever can write the
// archive chooses names: a cell is a relative path without "..", as cluster::CheckCellDirectory()
// wants it.
std::optional<std::string> CellOfObject(std::string_view object);
inline constexpr std::string_view kCellParts = archive::RootArchive::kParts;
// kInvalidArgument: the name of a cell is too long to be one of an archive.
absl::Status CheckCellNames(absl::Span<const std::string> cells);

// What the root `root` remembers of its archive: 32 hex digits, behind which " new" stands until
// the archive is the root's. Empty: it has none.
absl::StatusOr<std::string> KeptArchive(Env& root_env, const std::filesystem::path& root);
absl::Status KeepArchive(Env& root_env, const std::filesystem::path& root, const std::string& text);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_OPEN_ARCHIVE_H_
