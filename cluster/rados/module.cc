// libh5mirror_cluster.so: registry and fencing by librados and libcephfs.
#include "base/version.h"
#include "cluster/rados/rados_cluster.h"
#include "cluster/rados_api.h"

extern "C" __attribute__((visibility("default"))) const h5mirror::cluster::RadosApi*
h5mirror_cluster_api() {
  static const h5mirror::cluster::RadosApi api = {sizeof(h5mirror::cluster::RadosApi),
                                                  h5mirror::kVersion.data(),
                                                  &h5mirror::cluster::OpenRadosCluster};
  return &api;
}
