// HDF5's headers for a plugin that must work with every libhdf5 >= 1.14 and link none.
//
// H5F_ACC_* and the like expand to H5check_version()/H5open() calls; both are made empty here:
// the plugin is asked for its class while the library is still being initialized, and an
// undefined H5 symbol would make `import h5py` fail (its libhdf5 is loaded RTLD_LOCAL).
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_HOST_HDF5_HEADERS_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_HOST_HDF5_HEADERS_H_

#include <hdf5.h>
// After hdf5.h.
#include <H5FDdevelop.h>
#include <H5PLextern.h>

#undef H5CHECK
#define H5CHECK
#undef H5OPEN
#define H5OPEN

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_HOST_HDF5_HEADERS_H_
