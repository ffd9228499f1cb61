// Decides whether a caller is the owner of a file. The server trusts the name of a token, and
// nothing else that a client says of itself. Identities, origins and paths prove nothing, because
// every reader of a file sees them.
#ifndef H5MIRROR_SERVER_CALLS_OWN_FILE_H_
#define H5MIRROR_SERVER_CALLS_OWN_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "onion_store/file.h"
#include "server/door/auth.h"

namespace h5mirror::server {

// OK: `principal`, with `rights` to `file`, may act as its writer. A caller that may delete it may,
// and the one that made both the oldest and the newest of its versions. (The newest alone is no
// proof: any writer can make one.) A version without a name, as from a time without tokens, proves
// nothing.
// Errors: kPermissionDenied  names the maker of the version, and the missing right.
//         those of the store.
absl::Status CheckOwnFile(const Principal& principal, Rights rights, store::File& file);

// OK: `principal` may speak for the local file that it compared with `version`. A caller with the
// right to restore it may, and the user whose token made that version. Errors as above; kNotFound:
// the version is gone.
absl::Status CheckOwnVersion(const Principal& principal, Rights rights, store::File& file,
                             store::VersionNumber version);

// OK: `principal` may take `tag` from the version that has it, and give it to `to` (0: to none). A
// tag can keep its version from being dropped, so a caller that may delete the file may, and the
// user whose token made the version. OK also if no version but `to` has the tag. Errors as above.
absl::Status CheckOwnTag(const Principal& principal, Rights rights, store::File& file,
                         const std::string& tag, store::VersionNumber to);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_OWN_FILE_H_
