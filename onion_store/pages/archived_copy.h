// A copy of one file in an archive: the bytes of its heads, in layers, and its index. With the
// archived segments it is all that rebuilds the file. On disk: docs/reference/format.md, "Copies of
// files".
//
//   files/FILEID/copy-NUMBER-RANDOM-data-NNNNNN   parts: extents and their bytes
//   files/FILEID/copy-NUMBER-RANDOM-list          names all parts that the copy needs; put last
//   files/FILEID/copy-NUMBER-RANDOM-begun-NNNNNN  names parts of a copy that is not whole yet
//
// Objects that are read back may be damaged, or made by an attacker: each number is checked.
#ifndef H5MIRROR_ONION_STORE_PAGES_ARCHIVED_COPY_H_
#define H5MIRROR_ONION_STORE_PAGES_ARCHIVED_COPY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "onion_store/object_store.h"
#include "onion_store/types.h"

namespace h5mirror::store {

// The bytes of a part, and the extents that it may have, at most.
inline constexpr uint64_t kPartDataBytesMax = 8 << 20;
inline constexpr size_t kPartExtentsMax = 1 << 16;
// The whole object of a part: header, table and bytes.
inline constexpr uint64_t kPartObjectBytesMax = 64 + kPartExtentsMax * 16 + kPartDataBytesMax;
// A layer that lacks more ranges is not worth having.
inline constexpr size_t kLostExtentsMax = 1024;
inline constexpr uint64_t kCopyListBytesMax = uint64_t{64} << 20;

struct Part {
  std::vector<Extent> extents;  // none is empty
  std::string bytes;            // of the extents, one after the other
};

// The object of a part, and the part of an object.
std::string EncodePart(const FileId& file_id, const Part& part);
// kDataLoss: the message says what is wrong.
absl::StatusOr<Part> DecodePart(const FileId& file_id, std::string_view object);

// An object of a part, as a list names it.
struct PartObject {
  uint64_t length = 0;
  uint32_t crc32c = 0;  // of the whole object
  bool operator==(const PartObject&) const = default;
};

// Parts that belong together: all bytes in which one state differs from an earlier one.
struct CopyLayer {
  // The earlier state: a version and its cut; 0: none, the layer has all bytes other than zero.
  VersionNumber from = 0;
  CutNumber from_cut = 0;
  // The number of copies that it is made of: two layers of the same weight become one.
  int64_t weight = 1;
  std::string prefix;  // of the copy that put them
  uint64_t first = 0;  // the number of the first part
  std::vector<PartObject> parts;
  // The ranges that the layer lacks because the bytes were damaged and could not be read. A later
  // layer with the bytes repairs this. In order; none is empty.
  std::vector<Extent> lost = {};

  uint64_t object_bytes() const;
  std::string PartName(size_t i) const;
  bool operator==(const CopyLayer&) const = default;
};

// The head of a generation: the bytes of its newest version that was retained.
struct CopyHead {
  int64_t generation = 0;
  VersionNumber version = 0;
  CutNumber cut = 0;
  uint64_t size_bytes = 0;
  std::vector<CopyLayer> layers;  // oldest first; each lies over the ones before
  // Bytes of the layers are damaged in the head by now: they must not be read from it again.
  bool is_damaged = false;
  bool operator==(const CopyHead&) const = default;
};

// The content of a list.
struct FileCopy {
  FileId file_id{};
  std::string prefix;  // of this copy
  std::string name;    // of the file when the copy was made
  std::string owner;   // "unix:anna"; empty: nobody
  absl::Time time;     // when the copy was made
  absl::Time version_time;
  uint32_t page_size_bytes = 0;
  uint32_t mode_bits = 0;
  int64_t versions = 0;  // how many there are
  uint64_t index_bytes = 0;
  CopyLayer index;
  std::vector<CopyHead> heads;  // by generation; the last one is that of the newest version

  const CopyHead& newest() const { return heads.back(); }
  // Of all layers together.
  uint64_t lost_bytes() const;
  bool operator==(const FileCopy&) const = default;
};

// The parts of its heads that an unfinished copy has put.
struct BegunCopy {
  FileId file_id{};
  std::vector<CopyHead> heads;  // by generation; all but the last are whole
  uint64_t done_bytes = 0;      // of the last one: all before is put or zero
  bool operator==(const BegunCopy&) const = default;
};

std::string EncodeBegunCopy(const BegunCopy& begun);
// kDataLoss: the message says what is wrong.
absl::StatusOr<BegunCopy> DecodeBegunCopy(const FileId& file_id, std::string_view object);
std::string BegunCopyName(std::string_view prefix, uint64_t number);
bool IsBegunCopyName(std::string_view name);

std::string EncodeCopyList(const FileCopy& copy);
// The list of `prefix`. kDataLoss: the message says what is wrong.
absl::StatusOr<FileCopy> DecodeCopyList(std::string_view prefix, std::string_view object);

// "files/FILEID/copy-"; and such a prefix with the number `number` that no copy has had.
std::string CopyPrefix(const FileId& file_id);
std::string NewCopyPrefix(const FileId& file_id, uint64_t number);
// The number of a prefix. kDataLoss: it is not a prefix of a copy.
absl::StatusOr<uint64_t> NumberOfCopy(std::string_view prefix);
std::string CopyListName(std::string_view prefix);

// An object in memory.
class TextSource final : public ObjectSource {
 public:
  explicit TextSource(std::string_view bytes) : bytes_(bytes) {}  // `bytes` must outlive this.
  uint64_t size_bytes() const override { return bytes_.size(); }
  absl::Status Read(uint64_t offset, absl::Span<char> out) override {
    bytes_.copy(out.data(), out.size(), offset);
    return absl::OkStatus();
  }

 private:
  const std::string_view bytes_;
};

// All of an object, in pieces. kDataLoss: it has more than `bytes_max` bytes.
absl::StatusOr<std::string> GetObject(ObjectStore& store, const std::string& name,
                                      uint64_t bytes_max);
// The list of a copy. kNotFound: there is none.
absl::StatusOr<FileCopy> GetCopyList(ObjectStore& store, const std::string& prefix);
// A part, compared with its checksum.
absl::StatusOr<Part> GetPart(ObjectStore& store, const FileId& file_id, const CopyLayer& layer,
                             size_t i);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_PAGES_ARCHIVED_COPY_H_
