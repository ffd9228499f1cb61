// Finds the members of one family, split or multi file among the files that HDF5 opens. HDF5 does
// not tell a driver which file a member belongs to. But the opens of members differ from those of a
// program:
//
//   family        all members, also later ones, are opened with one access property list that the
//                 library made for the file, and no program has (H5FDfamily.c)
//   split, multi  the members are opened one after the other in one call (H5FDmulti.c). A file that
//                 a program opens is looked at by HDF5 before it opens another one
//
// More: docs/design/047-members.md.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_MEMBER_OPENS_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_MEMBER_OPENS_H_

#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"

namespace h5mirror::vfd {

class MirroredFile;

// Notes whether HDF5 has made any call for an open file, except for its features. The driver keeps
// one for each open file.
struct Touched {
  mutable bool is_touched = false;
};

// `file` was opened just now, with `fapl`. It joins the group of its members, if it is one.
void JoinMembers(const HostLibrary& host, hid_t fapl, MirroredFile& file, const Touched& touched);

// Before a file is closed.
void ForgetOpen();

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_MEMBER_OPENS_H_
