#include "tests/crash/store_faults.h"

#include <atomic>
#include <string_view>
#include <vector>

#include "onion_store/index/version_index.h"
#include "onion_store/pages/direct_sums.h"

namespace h5mirror::store {
namespace {

std::atomic<StoreFault> planted{StoreFault::kNone};

}  // namespace

void PlantStoreFault(StoreFault fault) { planted = fault; }
bool IsPlanted(StoreFault fault) { return planted == fault; }

// For each function: the store's own, and the one that is called instead, by their linker names.
uint32_t RealCrc32cExtend(uint32_t crc, std::string_view data) __asm__(
    "__real__ZN8h5mirror12Crc32cExtendEjSt17basic_string_viewIcSt11char_traitsIcEE");
uint32_t FaultyCrc32cExtend(uint32_t crc, std::string_view data) __asm__(
    "__wrap__ZN8h5mirror12Crc32cExtendEjSt17basic_string_viewIcSt11char_traitsIcEE");
std::vector<const PageRun*>
RealOwnersOf(absl::Span<const PageRun> runs, uint64_t first, uint64_t count) __asm__(
    "__real__ZN8h5mirror5store8OwnersOfEN4absl7debian34SpanIKNS0_"
    "7PageRunEEEmm");
std::vector<const PageRun*>
FaultyOwnersOf(absl::Span<const PageRun> runs, uint64_t first, uint64_t count) __asm__(
    "__wrap__ZN8h5mirror5store8OwnersOfEN4absl7debian34SpanIKNS0_"
    "7PageRunEEEmm");
void RealForget(DirectSums* sums,
                Extent bytes) __asm__("__real__ZN8h5mirror5store10DirectSums6ForgetENS_6ExtentE");
void FaultyForget(DirectSums* sums,
                  Extent bytes) __asm__("__wrap__ZN8h5mirror5store10DirectSums6ForgetENS_6ExtentE");

uint32_t FaultyCrc32cExtend(uint32_t crc, std::string_view data) {
  return IsPlanted(StoreFault::kChecksumsNotCompared) ? 0 : RealCrc32cExtend(crc, data);
}

void FaultyForget(DirectSums* sums, Extent bytes) {
  if (!IsPlanted(StoreFault::kDirectSumsKept)) RealForget(sums, bytes);
}

std::vector<const PageRun*> FaultyOwnersOf(absl::Span<const PageRun> runs, uint64_t first,
                                           uint64_t count) {
  std::vector<const PageRun*> owners = RealOwnersOf(runs, first, count);
  if (!IsPlanted(StoreFault::kNewerPreImageWins)) return owners;
  for (const PageRun& run : runs) {
    for (uint64_t i = 0; i < count; ++i) {
      if (first + i < run.page || first + i >= run.page_end()) continue;
      if (owners[i] == nullptr || run.version > owners[i]->version) owners[i] = &run;
    }
  }
  return owners;
}

}  // namespace h5mirror::store
