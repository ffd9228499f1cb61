// A segment of pre-images, and the row of the index that names a record in it. The first byte says
// whether the checksum of the record's header is corrected.
#include "base/crc32c.h"
#include "base/testing/fault_env.h"
#include "onion_store/disk/coding.h"
#include "onion_store/pages/page_segments.h"
#include "tests/fuzz/fuzz_input.h"

namespace h5mirror::store {
namespace {

constexpr uint32_t kPageBytes = 512;
constexpr int64_t kGeneration = 1;

void Read(FuzzInput& input) {
  const bool mends = input.Take<uint8_t>() % 2 == 1;
  PageRun run;
  run.level = input.Take<uint8_t>() % (kPageLevelMax + 1);
  run.page = input.Take<uint32_t>() << run.level;
  run.version = 1;
  run.segment = 1;
  run.offset = input.Take<uint16_t>();
  const uint64_t first = input.Take<uint8_t>() % run.page_count();
  run.packed_bytes = input.Take<uint16_t>();
  std::string segment(input.rest());
  const uint64_t header_bytes = 64 + run.page_count() * sizeof(uint32_t);
  if (mends && run.offset + header_bytes <= segment.size()) {
    const std::string_view header = std::string_view(segment).substr(run.offset, header_bytes);
    PutIntAt(&segment, run.offset + 4, Crc32c(header.substr(8)));
  }
  FaultEnv env;
  auto tree = *env.OpenTree("/");
  FuzzCheck(tree->MakeDirectory("d", 0700).ok());
  auto file = *tree->Open("d/pages-000001", OpenKind::kCreateFresh, 0600);
  FuzzCheck(WriteAt(*file, 0, segment).ok());
  PageSegments pages(*tree, "d", FileId{1}, kPageBytes, 1, segment.size());
  std::string bytes((run.page_count() - first) * kPageBytes, '\0');
  pages.Read(run, kGeneration, run.page + first, absl::MakeSpan(bytes)).IgnoreError();
  pages.Check(run, kGeneration).IgnoreError();
  pages.ReadAt(pages.LocationOf(run, run.page + first), absl::MakeSpan(bytes)).IgnoreError();
}

}  // namespace
}  // namespace h5mirror::store

int h5mirror::LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  store::Read(input);
  return 0;
}
