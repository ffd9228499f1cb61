// Whose a file is, as far as the server can tell: it believes the name of a token, and nothing else
// that a client says of itself. Identities, origins and paths are no proof, since who may read a
// file is told them.
#ifndef H5MIRROR_SERVER_CALLS_OWN_FILE_H_
#define H5MIRROR_SERVER_CALLS_OWN_FILE_H_

#include "absl/status/status.h"
#include "onion_store/file.h"
#include "server/door/auth.h"

namespace h5mirror::server {

// Whether `principal` may do with `file` what its writer may: an administrator may, and the one
// user whose token made both the oldest and the newest of its versions. (The newest alone would not
// do: whoever may write can make one.) A version of nobody, as from a time without tokens, proves
// nothing.
// Errors: kPermissionDenied names the token that made the version, and what is missing; those of
// the
//         store.
absl::Status CheckOwnFile(const Principal& principal, store::File& file);

// Whether `principal` may speak for the local file of version `version`, which it compared: an
// administrator may, and the user whose token made that version. Errors as above; kNotFound: there
// is no such version any more.
absl::Status CheckOwnVersion(const Principal& principal, store::File& file,
                             store::VersionNumber version);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_OWN_FILE_H_
