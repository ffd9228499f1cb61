#include "h5perf_serial/job.h"

#include <algorithm>
#include <random>

#include "base/strings.h"

namespace h5mirror::perf {

void FillBuffer(Contents contents, Bytes& buffer) {
  if (contents == Contents::kTiled) {
    // It is part of what is timed: the period once, then twice as much with each copy.
    const size_t period = std::min(buffer.size(), size_t{128});
    for (size_t k = 0; k < period; ++k) buffer[k] = static_cast<unsigned char>(k);
    for (size_t done = period; done < buffer.size(); done *= 2) {
      std::copy_n(buffer.begin(), std::min(done, buffer.size() - done), buffer.begin() + done);
    }
    return;
  }
  std::mt19937_64 generator(20020806);
  for (unsigned char& byte : buffer) byte = static_cast<unsigned char>(generator());
}

absl::Status VerifyBuffer(const Shape& shape, const Sizes& offset, const Bytes& wanted,
                          const Bytes& read, const std::string& file) {
  const auto [at, unused] = std::mismatch(read.begin(), read.end(), wanted.begin());
  if (at == read.end()) return absl::OkStatus();
  uint64_t rest = static_cast<uint64_t>(at - read.begin());
  std::string place;
  for (size_t d = shape.rank(); d-- > 0;) {
    place = StrCat(offset[d] + rest % shape.buffer[d], place.empty() ? "" : ",", place);
    rest /= shape.buffer[d];
  }
  return absl::DataLossError(StrCat(file, ": element (", place, ") was read as ",
                                    static_cast<unsigned>(*at), ", and written as ",
                                    static_cast<unsigned>(wanted[at - read.begin()])));
}

}  // namespace h5mirror::perf
