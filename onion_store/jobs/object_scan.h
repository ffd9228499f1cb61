// Goes through the object of a segment, and compares it with the row of the index.
#ifndef H5MIRROR_ONION_STORE_JOBS_OBJECT_SCAN_H_
#define H5MIRROR_ONION_STORE_JOBS_OBJECT_SCAN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "onion_store/index/version_index.h"
#include "onion_store/shared/history_files.h"

namespace h5mirror::store {

// Not thread-safe. Each step waits for the archive: the caller holds no lock.
class ObjectScan {
 public:
  // The bytes of one step, and of the memory that it takes.
  static constexpr uint64_t kStepBytes = 4 << 20;

  // `files` must outlive this.
  ObjectScan(const HistoryFiles& files, ArchivedSegment segment)
      : files_(files), segment_(std::move(segment)) {}

  // Gets the next bytes. Calls `take` with the bytes of the segment, in order, and their offset in
  // it. False: these were the last, and all match the row. After a temporary error of the archive a
  // step can be repeated.
  // Errors: kDataLoss            the object is gone, of another length, or not what was put.
  //         kFailedPrecondition  there is no archive.
  //         those of ObjectStore::Get() and of `take`.
  absl::StatusOr<bool> Step(
      absl::FunctionRef<absl::Status(uint64_t offset, std::string_view bytes)> take);
  absl::StatusOr<bool> Step() {
    return Step([](uint64_t, std::string_view) { return absl::OkStatus(); });
  }
  uint64_t done_bytes() const { return next_; }

 private:
  // Its length and its header.
  absl::Status Begin(ObjectStore& store);

  const HistoryFiles& files_;
  const ArchivedSegment segment_;
  bool has_begun_ = false;
  uint64_t next_ = 0;  // offset in the segment
  uint32_t crc_ = 0;   // of the bytes before it
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_OBJECT_SCAN_H_
