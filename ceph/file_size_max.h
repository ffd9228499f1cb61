// The largest file of a CephFS, which libcephfs does not tell.
#ifndef H5MIRROR_CEPH_FILE_SIZE_MAX_H_
#define H5MIRROR_CEPH_FILE_SIZE_MAX_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "ceph/root_url.h"

namespace h5mirror::ceph {

// The max_file_size of the filesystem with this number, out of the monitors' answer to `fs dump`. A
// number below 1 means the cluster's default: libcephfs says 0 where no filesystem was named.
// Unset: it is not there.
std::optional<uint64_t> FindFileSizeMax(std::string_view fs_dump_json, int64_t fscid);

// Asks the monitors, over a connection of its own that is closed again. Unset: they do not answer
// within 10 s, or the key may not ask.
std::optional<uint64_t> AskFileSizeMax(const RootUrl& url, int64_t fscid);

}  // namespace h5mirror::ceph

#endif  // H5MIRROR_CEPH_FILE_SIZE_MAX_H_
