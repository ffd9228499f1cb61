// The objects that an archive lists for the copies of one file. Tells by them whether a copy is
// whole. Docs: docs/design/050-archive.md, "Copies of files".
#ifndef H5MIRROR_ONION_STORE_PAGES_LISTED_COPIES_H_
#define H5MIRROR_ONION_STORE_PAGES_LISTED_COPIES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "onion_store/object_store.h"
#include "onion_store/pages/archived_copy.h"
#include "onion_store/types.h"

namespace h5mirror::store {

// Not thread-safe. Takes 16 bytes for each part, of at most 8 MiB.
class ListedCopies {
 public:
  // Takes in an object of the file. Ignores objects that are not of copies.
  void Note(const FileId& file_id, const ObjectInfo& object);

  // The prefixes of copies that have a list, by number.
  const std::map<uint64_t, std::string>& lists() const { return lists_; }
  // The name of an object that the copy needs, and that is not listed with its length; empty: all
  // are there. Says nothing about their bytes.
  std::string LostPart(const FileCopy& copy) const;
  // As above, for heads only.
  std::string LostPart(absl::Span<const CopyHead> heads) const;

 private:
  std::string LostPart(const CopyLayer& layer) const;

  std::map<uint64_t, std::string> lists_;
  // Numbers of parts with the lengths of their objects, in order; by prefix.
  std::map<std::string, std::vector<std::pair<uint64_t, uint64_t>>> parts_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_PAGES_LISTED_COPIES_H_
