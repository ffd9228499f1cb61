// HDF5's headers for a connector that must work with every libhdf5 >= 1.14 and link none.
#ifndef H5MIRROR_CLIENT_VFD_CONNECTOR_VOL_HEADERS_H_
#define H5MIRROR_CLIENT_VFD_CONNECTOR_VOL_HEADERS_H_

#include "client_vfd/plugin/host/hdf5_headers.h"
// After hdf5.h.
#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>
#include <H5VLnative.h>

#endif  // H5MIRROR_CLIENT_VFD_CONNECTOR_VOL_HEADERS_H_
