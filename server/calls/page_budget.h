// Bounds one page of a list, or one message of a stream: clients take messages of at most
// rpc::kMaxMessageBytes, and a row may be large.
#ifndef H5MIRROR_SERVER_CALLS_PAGE_BUDGET_H_
#define H5MIRROR_SERVER_CALLS_PAGE_BUDGET_H_

#include <cstddef>

#include "google/protobuf/message_lite.h"

namespace h5mirror::server {

// The most bytes of rows in one page.
inline constexpr size_t kPageBytesMax = 768 << 10;

class PageBudget {
 public:
  // True: `row` fits, and counts from now on. The first row always fits.
  bool Takes(const google::protobuf::MessageLite& row) { return Takes(row.ByteSizeLong()); }
  bool Takes(size_t row_bytes) {
    constexpr size_t kAround = 16;  // its tag and length, also in the rows around it
    if (used_ > 0 && used_ + row_bytes + kAround > kPageBytesMax) return false;
    used_ += row_bytes + kAround;
    return true;
  }

 private:
  size_t used_ = 0;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_PAGE_BUDGET_H_
