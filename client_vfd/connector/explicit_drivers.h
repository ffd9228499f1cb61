// Access lists that name a driver of their own: which of them can be mirrored, and the list that
// opens the same file through our driver.
#ifndef H5MIRROR_CLIENT_VFD_CONNECTOR_EXPLICIT_DRIVERS_H_
#define H5MIRROR_CLIENT_VFD_CONNECTOR_EXPLICIT_DRIVERS_H_

#include "client_vfd/connector/connector_host.h"

namespace h5mirror::vol {

// The replacement for a driver that a program names:
//
//   sec2, stdio                   our driver over sec2: the same bytes at the same time
//   core with a backing store     our driver over sec2: the file is written as the program goes
//   direct, log                   our driver over the same
//   family, split, multi          the same driver, its members by the rules above
//   core without, a file image    left alone: there is no file, or it is not read from the disk
//   anything else                 left alone
//
// Returns a new list, for the caller to close, or H5I_INVALID_HID: the program's own list is used.
// Never fails an open: if no list can be made, the program's own is used. HDF5's error stack is as
// before.
hid_t MirroringList(const Host& host, hid_t fapl, unsigned flags);

// Whether the list names a driver whose files have several members.
bool HasMembers(const Host& host, hid_t fapl);

// Makes `shown`, the list that HDF5 tells of a file, name the driver of the program's list.
void ShowProgramDriver(const Host& host, hid_t program_fapl, hid_t shown);

}  // namespace h5mirror::vol

#endif  // H5MIRROR_CLIENT_VFD_CONNECTOR_EXPLICIT_DRIVERS_H_
