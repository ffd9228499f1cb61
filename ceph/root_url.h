// The address of a root in CephFS: cephfs:/PATH?conf=FILE&id=NAME&fs=NAME.
#ifndef H5MIRROR_CEPH_ROOT_URL_H_
#define H5MIRROR_CEPH_ROOT_URL_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace h5mirror::ceph {

struct RootUrl {
  std::string path;        // absolute within the filesystem, without "." and ".."
  std::string conf;        // of Ceph; empty: libcephfs looks at its usual places
  std::string id;          // "h5mirror" for client.h5mirror; empty: Ceph's default, admin
  std::string filesystem;  // empty: the cluster's default one

  bool operator==(const RootUrl&) const = default;
  std::string ToString() const;
};

// Whether `root` means CephFS at all: it begins with "cephfs:".
bool IsRootUrl(std::string_view root);

// kInvalidArgument says which form is wanted.
absl::StatusOr<RootUrl> ParseRootUrl(std::string_view root);

}  // namespace h5mirror::ceph

#endif  // H5MIRROR_CEPH_ROOT_URL_H_
