// Leads from a file to the files that HDF5 opens for its external links and virtual datasets. HDF5
// makes the access property list of such an open from the parent (H5F_get_access_plist): its
// driver, and the driver information that the driver's `fapl_get` gives for the parent. The
// configuration string in the list is the program's default one, not the parent's. So the driver
// information carries everything. A list that a program itself takes from an open file
// (H5Fget_access_plist) is the same, and has the same effect.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_LINKED_OPEN_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_LINKED_OPEN_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"

namespace h5mirror::vfd {

// A root: a file that a program opened by its name in mode=reader. All files that it leads to, also
// through several links, share this. Thread-safe. Of a file that several ranks have open
// (under=mpio), only the configuration counts.
struct ReaderRoot {
  std::string config_text;
  std::string real_path;
  std::string name;    // under the server's root
  std::string server;  // the one that answered, for targets too; "": as the configuration says
  int64_t at_ns = 0;   // the server time at which targets are opened; 0: their newest version
  bool live = false;   // targets are opened at their newest cut of that time, not at a version
  // True: opened for writing with mode=remote. Targets are opened as if the program named them.
  bool is_writer = false;
  std::array<uint8_t, 16> id{};  // with `live`: the root's id, under which cuts are pinned

  // The version or cut at which a target was first opened. Later opens of it get the same.
  struct Opened {
    int64_t version = 0;  // 0: not opened yet, or a cut that is no version
    int64_t cut = 0;
  };
  Opened Pinned(const std::string& target) const;
  void Pin(const std::string& target, const Opened& opened) const;

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::string, Opened> pinned_;
};

using RootPtr = std::shared_ptr<const ReaderRoot>;

// The root of an open; null: the program names the file itself.
RootPtr RootOfLinkedOpen(const HostLibrary& host, hid_t fapl);

// The driver information that carries `root`, for H5FD_class_t: made, copied and freed. Null: no
// root, or no memory.
void* MakeLinkInfo(const RootPtr& root);
void* CopyLinkInfo(const void* info);
void FreeLinkInfo(void* info);
extern const size_t kLinkInfoBytes;

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_LINKED_OPEN_H_
