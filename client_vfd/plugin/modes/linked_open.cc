#include "client_vfd/plugin/modes/linked_open.h"

#include <new>

#include "client_vfd/plugin/host/h5_error.h"

namespace h5mirror::vfd {
namespace {

constexpr uint64_t kMagic = 0x6b6e696c6d3568;  // "h5mlink"

// HDF5 compares two of them as bytes, so the root is behind a pointer of its own for each.
struct LinkInfo {
  uint64_t magic = kMagic;
  RootPtr root;
};

const LinkInfo* Of(const void* info) {
  const auto* link = static_cast<const LinkInfo*>(info);
  return link != nullptr && link->magic == kMagic ? link : nullptr;
}

}  // namespace

const size_t kLinkInfoBytes = sizeof(LinkInfo);

ReaderRoot::Opened ReaderRoot::Pinned(const std::string& target) const {
  const std::lock_guard lock(mutex_);
  const auto found = pinned_.find(target);
  return found == pinned_.end() ? Opened() : found->second;
}

void ReaderRoot::Pin(const std::string& target, const Opened& opened) const {
  const std::lock_guard lock(mutex_);
  pinned_.emplace(target, opened);
}

RootPtr RootOfLinkedOpen(const HostLibrary& host, hid_t fapl) {
  if (!host.api.usable) return nullptr;
  const QuietErrors quiet(host.api);
  const KeepErrors keep(host.api);
  const LinkInfo* info = Of(host.api.p_get_driver_info(fapl));
  return info != nullptr ? info->root : nullptr;
}

void* MakeLinkInfo(const RootPtr& root) {
  return root == nullptr ? nullptr : new (std::nothrow) LinkInfo{kMagic, root};
}

void* CopyLinkInfo(const void* info) {
  const LinkInfo* link = Of(info);
  return link == nullptr ? nullptr : new (std::nothrow) LinkInfo(*link);
}

void FreeLinkInfo(void* info) {
  if (Of(info) != nullptr) delete static_cast<LinkInfo*>(info);
}

}  // namespace h5mirror::vfd
