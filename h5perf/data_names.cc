#include "base/strings.h"
#include "h5perf/results.h"

namespace h5mirror::pperf {

std::string Environment::FileName(Api api, uint64_t number) const {
  constexpr const char* kSuffixes[kApiCount] = {".posix", ".mpio", ".h5"};
  return StrCat(base, number, kSuffixes[static_cast<size_t>(api)]);
}

}  // namespace h5mirror::pperf
