#include "h5perf_serial/shape.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::perf {

uint64_t Shape::buffer_count() const {
  uint64_t count = 1;
  for (size_t d = 0; d < rank(); ++d) count *= dataset[d] / buffer[d];
  return count;
}

absl::Status CheckShape(const Shape& shape) {
  uint64_t bytes = 1;
  for (size_t d = 0; d < shape.rank(); ++d) {
    if (shape.dataset[d] == 0 || shape.buffer[d] == 0) {
      return absl::InvalidArgumentError(StrCat("dimension ", d + 1, " of the ",
                                               shape.buffer[d] == 0 ? "transfer buffer" : "dataset",
                                               " is 0; it must be at least 1"));
    }
    if (shape.dataset[d] % shape.buffer[d] != 0) {
      return absl::InvalidArgumentError(
          StrCat("dimension ", d + 1, " of the dataset (", shape.dataset[d],
                 ") must be a multiple of the transfer buffer's (", shape.buffer[d], ")"));
    }
    if (shape.dataset[d] > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / bytes) {
      return absl::InvalidArgumentError("the dataset has 2^63 bytes or more");
    }
    bytes *= shape.dataset[d];
  }
  std::vector<size_t> sorted = shape.order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t d = 0; d < shape.rank(); ++d) {
    if (sorted[d] != d) {
      return absl::InvalidArgumentError(
          StrCat("the order must name each dimension from 1 to ", shape.rank(), " once"));
    }
  }
  return absl::OkStatus();
}

Walk::Walk(const Shape& shape, bool random) : shape_(shape), count_(shape.buffer_count()) {
  for (size_t d = 0; d < shape.rank(); ++d) steps_.push_back(shape.dataset[d] / shape.buffer[d]);
  if (!random) return;
  shuffle_.resize(count_);
  std::iota(shuffle_.begin(), shuffle_.end(), 0);
  std::mt19937_64 generator(20020806);
  for (uint64_t left = count_; left > 1; --left) {
    std::swap(shuffle_[left - 1], shuffle_[generator() % left]);
  }
}

void Walk::OffsetOf(uint64_t number, Sizes& offset) const {
  uint64_t rest = shuffle_.empty() ? number : shuffle_[number];
  for (const size_t d : shape_.order) {
    offset[d] = rest % steps_[d] * shape_.buffer[d];
    rest /= steps_[d];
  }
}

bool Extent::Cover(const Sizes& offset) {
  bool grew = false;
  for (size_t d = 0; d < size_.size(); ++d) {
    if (size_[d] > offset[d]) continue;
    size_[d] = offset[d] + shape_.buffer[d];
    grew = true;
  }
  return grew;
}

Runs::Runs(const Shape& shape) : shape_(shape), strides_(shape.rank(), 1) {
  for (size_t d = shape.rank() - 1; d > 0; --d) strides_[d - 1] = strides_[d] * shape.dataset[d];
  inner_ = shape.rank() - 1;
  while (inner_ > 0 && shape.buffer[inner_] == shape.dataset[inner_]) --inner_;
  run_bytes_ = shape.buffer[inner_] * strides_[inner_];
  for (size_t d = 0; d < inner_; ++d) count_ *= shape.buffer[d];
}

absl::Status Runs::Visit(
    const Sizes& offset,
    absl::FunctionRef<absl::Status(uint64_t file_offset, uint64_t buffer_offset)> visit) const {
  uint64_t file_offset = 0;
  for (size_t d = 0; d < shape_.rank(); ++d) file_offset += offset[d] * strides_[d];
  Sizes at(inner_, 0);  // within the buffer, of the dimensions outside of a run
  for (uint64_t number = 0; number < count_; ++number) {
    H5M_RETURN_IF_ERROR(visit(file_offset, number * run_bytes_));
    for (size_t d = inner_; d-- > 0;) {
      file_offset += strides_[d];
      if (++at[d] < shape_.buffer[d]) break;
      file_offset -= at[d] * strides_[d];
      at[d] = 0;
    }
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::perf
