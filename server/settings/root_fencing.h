// Checks that a server which takes a root over can be sure that the former one writes no more.
#ifndef H5MIRROR_SERVER_SETTINGS_ROOT_FENCING_H_
#define H5MIRROR_SERVER_SETTINGS_ROOT_FENCING_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "server/settings/config.h"

namespace h5mirror::server {

// Of statfs(2)'s f_type: the name of a filesystem that several machines mount; empty: none that we
// know. FUSE is none: many filesystems of one machine are FUSE.
std::string_view SharedFileSystemName(uint64_t f_type);

// kFailedPrecondition: the root lies on a filesystem that several machines mount, and root_fencing
// is not "none". OK where that cannot be found out.
absl::Status CheckRootFencing(const Config& config);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_ROOT_FENCING_H_
