// References in the elements of datasets and attributes, led to other objects.
//
// A reference holds an address in its file. H5Ocopy() makes those of a plain reference dataset
// null, and keeps the bytes of all others, which then lead anywhere in the other file. So each is
// made anew: the element is read from one file, each reference in it is made again by a
// ReferenceMap, and the element is written to the other.
#ifndef H5MIRROR_H5RESTORE_REFERENCES_H_
#define H5MIRROR_H5RESTORE_REFERENCES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "h5restore/survey.h"
#include "hdf5/handle.h"

namespace h5mirror::restore {

// Where a reference led.
struct Referenced {
  hid_t object = H5I_INVALID_HID;  // open; invalid: there is nothing any more
  H5I_type_t kind = H5I_BADID;
  H5O_info2_t info{};
  hid_t region = H5I_INVALID_HID;  // the selection, of a region reference
  bool region_is_lost = false;     // it is one, and its selection cannot be read
};

// And where it is to lead.
struct Lead {
  enum class To {
    kSame,     // the reference stays as it is
    kNowhere,  // it becomes null
    kObject,
  };
  To to = To::kSame;
  hdf5::Handle object;  // of kObject
};

// Decides for each reference. Not thread-safe.
class ReferenceMap {
 public:
  virtual ~ReferenceMap() = default;
  virtual absl::StatusOr<Lead> Find(const Referenced& from) = 0;
};

// Reads the elements of `from` with references, by `what`, and writes them to `to` if one changes;
// both may be the same object, with the same types. Without a valid `to` nothing is written. The
// count is that of references that lead to a kObject. kInternal: HDF5's error.
absl::StatusOr<uint64_t> RewriteReferences(hid_t from, hid_t to, const Surveyed& what,
                                           const std::string& said, ReferenceMap& map);

enum class Writes { kWhereChanged, kAlways };

// One attribute, with or without references. `to_name` is its name there, where it has the same
// type and space.
absl::StatusOr<uint64_t> CopyAttribute(hid_t from, const std::string& name, hid_t to,
                                       const std::string& to_name, const std::string& said,
                                       Writes writes, ReferenceMap& map);

// Whether the region lies within the dataset.
bool Fits(hid_t region, hid_t dataset);

}  // namespace h5mirror::restore

#endif  // H5MIRROR_H5RESTORE_REFERENCES_H_
