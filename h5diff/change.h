// The findings of a comparison.
#ifndef H5MIRROR_H5DIFF_CHANGE_H_
#define H5MIRROR_H5DIFF_CHANGE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace h5mirror::tools {

enum class ChangeKind : uint8_t {
  kAdded,  // an object or link
  kRemoved,
  kMoved,    // another name for the same object; `path` is the new one, `old_value` the old one
  kChanged,  // a property of an object: `what` says which one
  kUnknown,  // could not be compared: `note` says why
};

// Elements that lie together and differ: a chunk, or a run of a dataset that is not chunked.
struct ElementRange {
  std::vector<uint64_t> offset;  // of the first element, in elements; empty: not known
  std::vector<uint64_t> shape;   // of the chunk, clipped to the dataset; of a run: {its length}
  uint64_t element_count = 0;    // that differ
  std::string note;              // "added", "removed", or why it could not be read
};

struct Change {
  ChangeKind kind = ChangeKind::kChanged;
  std::string path;
  // "group", "dataset", "type", "soft link", "external link", "link".
  std::string object;
  // With kChanged: "attribute", "shape", "type", "layout", "chunks", "filters", "fill value",
  // "data", "link", "mapping", "object".
  std::string what;
  std::string name;  // of an attribute
  // Of the property; empty where there was or is none. With kAdded and kRemoved `new_value` and
  // `old_value` describe the object.
  std::string old_value, new_value;
  bool had_old = false, has_new = false;
  // With "data".
  uint64_t element_count = 0;  // that differ, in all
  uint64_t range_count = 0;    // chunks or runs, in all
  bool chunked = false;
  std::vector<ElementRange> ranges;  // the first ones
  std::string note;
};

using ChangeSink = std::function<void(Change)>;

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_CHANGE_H_
