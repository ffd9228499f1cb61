// Who and where this process is, for the versions that it makes.
#ifndef H5MIRROR_CLIENT_VFD_EMBEDDED_IDENTITY_H_
#define H5MIRROR_CLIENT_VFD_EMBEDDED_IDENTITY_H_

#include <string>

#include "onion_store/types.h"

namespace h5mirror::vfd {

store::Origin OriginOf(const std::string& path);
// With the time of now.
store::Provenance ProvenanceOf(const std::string& program, const std::string& comment);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_EMBEDDED_IDENTITY_H_
