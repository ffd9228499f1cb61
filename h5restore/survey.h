// The contents of an object and of all below it: names, sizes, and the places of references.
#ifndef H5MIRROR_H5RESTORE_SURVEY_H_
#define H5MIRROR_H5RESTORE_SURVEY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "hdf5/handle.h"

namespace h5mirror::restore {

// Which object of a file it is: HDF5's token, as bytes.
std::string TokenOf(const H5O_info2_t& info);
std::string TokenOf(const H5O_token_t& token);
// kInternal: the file has no such object.
absl::StatusOr<hdf5::Handle> OpenToken(hid_t file, const std::string& token, std::string_view what);
// The same of an open object. kInternal: HDF5 does not know.
absl::StatusOr<H5O_info2_t> InfoOf(hid_t object, std::string_view what);

struct Surveyed {
  std::string path;  // below the object that the survey is of; "." is that itself
  H5O_type_t type = H5O_TYPE_UNKNOWN;
  std::string token;
  bool has_names_outside = false;  // more hard links, or uses of a type, than there are below it
  uint64_t bytes = 0;              // of a dataset's raw data, as stored
  // "lzf (32000)": the dataset's values must be unpacked, by a filter that is not here.
  std::string missing_filter;
  // Where elements have references in them, at any depth.
  bool data_has_references = false;
  std::vector<std::string> attributes_with_references;

  bool has_references() const { return data_has_references || !attributes_with_references.empty(); }
};

struct Survey {
  std::vector<Surveyed> objects;                        // each once, parents first
  absl::flat_hash_map<std::string, std::string> paths;  // by token
  std::vector<std::string>
      types;           // tokens of committed types that lie elsewhere, and are used here
  uint64_t links = 0;  // soft, external and others that are not hard
  uint64_t attributes = 0;
  uint64_t bytes = 0;  // of raw data, as stored

  bool has_names_outside() const;  // one of its objects
};

// Goes through hard links only. `what` names the object for messages. kInternal: HDF5's error.
absl::StatusOr<Survey> TakeSurvey(hid_t object, std::string_view what);

// "/a" and "b" are "/a/b"; "." is the object itself.
std::string Below(const std::string& path, std::string_view below);

}  // namespace h5mirror::restore

#endif  // H5MIRROR_H5RESTORE_SURVEY_H_
