// Tells one open file from another, for H5FD_class_t's cmp: HDF5 takes two that compare equal
// for one file, and shares its state of the first.
//
//   written, read locally    device and inode; with server=embedded the store, where both have one
//   read from a server       its version and the time of its links
//   mode=remote              the server and the name. A file that the process writes is one file
//                            to HDF5 in all of its opens; two that it reads are told apart by
//                            their cuts
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_FILE_IDENTITY_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_FILE_IDENTITY_H_

#include <sys/types.h>

#include <string>

namespace h5mirror::vfd {

struct FileIdentity {
  // Identities of different kinds are never one file. The order of the values is that of cmp.
  enum class Kind { kLocal, kReader, kRemote };
  Kind kind = Kind::kLocal;
  // Of kLocal.
  dev_t device = 0;
  ino_t inode = 0;
  const void* store = nullptr;  // of server=embedded, else null
  // Of kRemote.
  std::string remote_name;
  // Of kReader, and of kRemote where it is only read; else empty.
  std::string version;
};

// As strcmp(3). Of kRemote it is no order: a file that is written equals each cut of it.
int Compare(const FileIdentity& a, const FileIdentity& b);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_FILE_IDENTITY_H_
