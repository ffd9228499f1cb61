// Where the back-up of a file is, and how `h5edit --recover` puts it back.
#ifndef H5MIRROR_H5EDIT_PUT_BACK_H_
#define H5MIRROR_H5EDIT_PUT_BACK_H_

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"

namespace h5mirror::edit {

// The back-up of a file that was given as `given` and is `real`: beside either name. Empty: none.
// Errors: kFailedPrecondition  there is one beside each; or the file was edited by a link
//                              elsewhere, which has it, and the message names that link.
absl::StatusOr<std::filesystem::path> FindBackup(const std::filesystem::path& given,
                                                 const std::filesystem::path& real);

// Marks `real`: its back-up `copy` lies beside a link to it elsewhere. So a user of this name sees
// that there is a back-up. The mark is a symlink, which no program follows. Nothing is made where
// `copy` itself is there.
absl::Status MarkBackup(const std::filesystem::path& copy, const std::filesystem::path& real);
// Removes a mark that leads nowhere, which a killed run left.
void DropIdleMark(const std::filesystem::path& mark);
void UnmarkBackup(const std::filesystem::path& copy, const std::filesystem::path& real);

// Gives `to` the owner, mode, access lists and extended attributes of `from`, as far as the caller
// may. If the group cannot be set, the file's group gets only the rights that all others have.
void CopyMetadata(const std::filesystem::path& from, const std::filesystem::path& to);

// Tells whether the file has changed since h5edit left it: those changes are lost when the back-up
// is put back. The rest of a sentence about the file; empty: it has not changed.
std::string ChangedSince(const std::filesystem::path& copy, const std::filesystem::path& real);

// Moves the back-up `copy` over `real`, durably. `kept` gets the name under which the former file
// stays. After a kill, one of the two is whole under the name. The caller has the lease of `real`.
// Errors: kUnavailable         others have the file open.
//         kFailedPrecondition  it has other names, which would stay as they are.
absl::Status MoveBackupBack(const std::filesystem::path& copy, const std::filesystem::path& real,
                            std::filesystem::path* kept);

// Removes the second name that a killed MoveBackupBack() left to `real`. The caller has the lease.
void DropSecondName(const std::filesystem::path& real);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_PUT_BACK_H_
