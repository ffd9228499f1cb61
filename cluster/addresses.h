// The addresses of a client of Ceph, as its libraries tell them and its blocklist takes them.
#ifndef H5MIRROR_CLUSTER_ADDRESSES_H_
#define H5MIRROR_CLUSTER_ADDRESSES_H_

#include <string>
#include <string_view>
#include <vector>

namespace h5mirror::cluster {

// rados_getaddrs() and ceph_getaddrs() tell "v2:10.0.0.1:0/5", or several as
// "[v2:10.0.0.1:0/5,v1:10.0.0.1:0/5]". The blocklist takes one at a time.
std::vector<std::string> SplitAddresses(std::string_view text);

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_ADDRESSES_H_
