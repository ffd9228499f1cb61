// The client's dirty map as a damaged disk, or a foreign program, may leave it. An accepted map is
// sane, and encodes to the same bytes.
#include <cstring>
#include <string>

#include "base/crc32c.h"
#include "base/dirty_map.h"
#include "tests/fuzz/fuzz_input.h"

namespace h5mirror {
namespace {

void Check(std::string bytes) {
  const absl::StatusOr<DirtyMap> map = DirtyMapFromBytes(bytes);
  if (!map.ok()) return;
  FuzzCheck(map->extents.extent_count() <= DirtyMap::kExtentsMax);
  FuzzCheck(map->extents.end() <= INT64_MAX);
  FuzzCheck(map->base_cut >= 0 && map->cut_newest >= 0);
  const absl::StatusOr<DirtyMap> again = DirtyMapFromBytes(DirtyMapToBytes(*map));
  FuzzCheck(again.ok() && again->extents.ToVector() == map->extents.ToVector());
}

}  // namespace
}  // namespace h5mirror

// The first byte says whether the checksum is corrected: a fuzzer does not find it.
int h5mirror::LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const bool sums = input.Take<uint8_t>() != 0;
  std::string bytes(input.rest());
  if (sums && bytes.size() >= sizeof(uint32_t)) {
    const uint32_t sum = Crc32c(std::string_view(bytes).substr(0, bytes.size() - sizeof(sum)));
    std::memcpy(bytes.data() + bytes.size() - sizeof(sum), &sum, sizeof(sum));
  }
  Check(bytes);
  return 0;
}
