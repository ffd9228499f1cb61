// User, host and path of this process, for the versions that a store in a program makes.
// Thread-safe.
#ifndef H5MIRROR_ONION_STORE_ORIGIN_HERE_H_
#define H5MIRROR_ONION_STORE_ORIGIN_HERE_H_

#include <string>

#include "onion_store/types.h"

namespace h5mirror::store {

Origin OriginHere(const std::string& path);
// The provenance of a version made at this moment.
Provenance ProvenanceNow(const std::string& program, const std::string& comment);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_ORIGIN_HERE_H_
