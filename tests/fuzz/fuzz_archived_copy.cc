// The objects of a copy in an archive: a list ('l' in front: its text), a part ('p': the numbers of
// its header, and the stored bytes), or any bytes. The checksums of lists and parts are corrected.
#include <string>
#include <string_view>

#include "base/crc32c.h"
#include "base/extent.h"
#include "onion_store/disk/coding.h"
#include "onion_store/pages/archived_copy.h"
#include "tests/fuzz/fuzz_input.h"

namespace h5mirror::store {
namespace {

constexpr FileId kFile = {1, 2, 3};

std::string Prefix() {
  return CopyPrefix(kFile) + "00000000000000000005-00112233445566778899aabbccddeeff";
}

void TakeList(std::string_view object) {
  const auto copy = DecodeCopyList(Prefix(), object);
  if (!copy.ok()) return FuzzCheck(absl::IsDataLoss(copy.status()));
  FuzzCheck(!copy->heads.empty() && copy->file_id == kFile);
  const auto again = DecodeCopyList(Prefix(), EncodeCopyList(*copy));
  FuzzCheck(again.ok() && *again == *copy);
}

void TakePart(std::string_view object) {
  const auto part = DecodePart(kFile, object);
  if (!part.ok()) return;
  uint64_t bytes = 0;
  for (const Extent& extent : part->extents) bytes += extent.length;
  FuzzCheck(bytes == part->bytes.size() && bytes <= kPartDataBytesMax);
}

std::string ListOf(std::string_view text) {
  std::string object = "H5MARCL1";
  PutInt<uint32_t>(&object, Crc32c(text));
  PutInt<uint32_t>(&object, static_cast<uint32_t>(text.size()));
  return object.append(text);
}

std::string PartOf(FuzzInput input) {
  std::string object = "H5MARCD1";
  PutInt<uint32_t>(&object, 0);
  PutInt<uint32_t>(&object, input.Take<uint32_t>());
  object.append(reinterpret_cast<const char*>(kFile.data()), kFile.size());
  PutInt<uint64_t>(&object, input.Take<uint64_t>());
  PutInt<uint64_t>(&object, input.rest().size());
  PutInt<uint32_t>(&object, Crc32c(input.rest()));
  object.resize(64, '\0');
  PutIntAt<uint32_t>(&object, 8, Crc32c(std::string_view(object).substr(12)));
  return object.append(input.rest());
}

}  // namespace
}  // namespace h5mirror::store

int h5mirror::LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  h5mirror::FuzzInput input(data, size);
  switch (input.Take<char>()) {
    case 'l':
      h5mirror::store::TakeList(h5mirror::store::ListOf(input.rest()));
      break;
    case 'p':
      h5mirror::store::TakePart(h5mirror::store::PartOf(input));
      break;
    default:
      h5mirror::store::TakeList(input.rest());
      h5mirror::store::TakePart(input.rest());
  }
  return 0;
}
