// Compares two objects, or describes one that has no counterpart.
#ifndef H5MIRROR_H5DIFF_OBJECT_DIFF_H_
#define H5MIRROR_H5DIFF_OBJECT_DIFF_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "h5diff/dataset_diff.h"
#include "h5diff/footprint.h"

namespace h5mirror::tools {

enum class ObjectKind : uint8_t { kGroup, kDataset, kType, kOther };

// An object of one side that is open.
struct OpenObject {
  hdf5::Handle id;
  ObjectKind kind = ObjectKind::kOther;
  uint64_t address = 0;
  unsigned link_count = 1;
};

// "group", "dataset", "type", "object".
const char* KindText(ObjectKind kind);

// `file` is any identifier in the file. kInternal: HDF5's error; if a source failed, that is why.
absl::StatusOr<OpenObject> OpenAt(hid_t file, uint64_t address, const std::string& path);
absl::StatusOr<uint64_t> AddressOf(hid_t id);

// "group", "dataset float64 (10,)", "type int32".
std::string DescribeObject(const OpenObject& object);

// Reports the differences of two objects of one kind, but for a group's links. Errors: of the
// source.
absl::Status CompareObjects(DiffContext& context, const std::string& path, const OpenObject& one,
                            const OpenObject& other);
// Takes down all that belongs to an object of one side, but for a group's links.
absl::Status ExplainObject(DiffContext& context, Side side, const OpenObject& object);

struct AttributeText {
  std::string name;
  std::string value;  // with its type, as a finding shows it
};
// By name, in byte order. Errors: HDF5's for the list; a value that cannot be read says so.
absl::StatusOr<std::vector<AttributeText>> ReadAttributeTexts(hid_t object);

// The value alone and whole: a text without quotes, a number, others as findings show them.
// kNotFound: it has none. Errors: those of HDF5.
absl::StatusOr<std::string> ReadAttributeValue(hid_t object, const std::string& name);

// Reads all that belongs to an object but for the elements of a dataset, and adds to `footprint`
// where those are. An observer of the file sees the reads. Elements that lead to others are read
// too, if they are few. Unreadable bytes make the footprint unbounded.
void TakeFootprint(const OpenObject& object, uint64_t base_offset, Footprint& footprint);

// Notes that two objects use committed types, if they do.
void NoteTypes(DiffContext& context, hid_t one, hid_t other);

// A link, as a group holds it.
struct Link {
  std::string name;
  H5L_type_t type = H5L_TYPE_HARD;
  uint64_t address = 0;  // of a hard link's object
  std::string value;     // of another link: its path, or "FILE:PATH"
};
absl::StatusOr<Link> ReadLink(hid_t group, const std::string& name);
// By name, in byte order.
absl::StatusOr<std::vector<Link>> ReadLinks(hid_t group);
const char* LinkText(H5L_type_t type);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_OBJECT_DIFF_H_
