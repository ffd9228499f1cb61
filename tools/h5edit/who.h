// Who edits, and where, for the versions that are made of it.
#ifndef H5MIRROR_TOOLS_H5EDIT_WHO_H_
#define H5MIRROR_TOOLS_H5EDIT_WHO_H_

#include <filesystem>
#include <string>

#include "onion_store/types.h"

namespace h5mirror::edit {

store::Origin OriginHere(const std::filesystem::path& path);
store::Provenance ProvenanceNow(const std::string& program, const std::string& comment);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_TOOLS_H5EDIT_WHO_H_
