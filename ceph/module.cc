// libh5mirror_ceph.so: the only part of h5mirror that links libcephfs.
#include <utility>

#include "base/version.h"
#include "ceph/ceph_env.h"
#include "ceph/module_api.h"

extern "C" __attribute__((visibility("default"))) const h5mirror::ceph::ModuleApi*
h5mirror_ceph_api() {
  static const h5mirror::ceph::ModuleApi api = {
      sizeof(h5mirror::ceph::ModuleApi), h5mirror::kVersion.data(), &h5mirror::ceph::CephEnv::Open};
  return &api;
}
