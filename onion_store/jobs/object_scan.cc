#include "onion_store/jobs/object_scan.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/pages/archived_segments.h"
#include "onion_store/pages/segment_object.h"

namespace h5mirror::store {

absl::Status ObjectScan::Begin(ObjectStore& store) {
  H5M_ASSIGN_OR_RETURN(const ObjectInfo info,
                       store.Head(segment_.object, ObjectCache::kGetTimeout));
  if (info.size_bytes != segment_.offset + segment_.length) {
    return absl::DataLossError(StrCat("it has ", info.size_bytes, " bytes, and should have ",
                                      segment_.offset + segment_.length));
  }
  std::string header(kSegmentObjectHeaderBytes, '\0');
  H5M_RETURN_IF_ERROR(
      store.Get(segment_.object, 0, absl::MakeSpan(header), ObjectCache::kGetTimeout));
  return CheckSegmentObjectHeader(header, files_.file_id(), files_.page_size_bytes(), segment_);
}

absl::StatusOr<bool> ObjectScan::Step(
    absl::FunctionRef<absl::Status(uint64_t offset, std::string_view bytes)> take) {
  ObjectStore* const store = files_.objects().store();
  const auto named = [&](const absl::Status& status) {
    const std::string name = files_.HistoryName(absl::StrFormat("pages-%06d", segment_.segment));
    return OfArchive(status, name, store, segment_.object);
  };
  if (store == nullptr) {
    return named(absl::FailedPreconditionError("this store has no archive"));
  }
  if (!has_begun_) {
    H5M_RETURN_IF_ERROR(named(Begin(*store)));
    has_begun_ = true;
  }
  std::string bytes(std::min(kStepBytes, segment_.length - next_), '\0');
  if (!bytes.empty()) {
    H5M_RETURN_IF_ERROR(named(store->Get(segment_.object, segment_.offset + next_,
                                         absl::MakeSpan(bytes), ObjectCache::kGetTimeout)));
    H5M_RETURN_IF_ERROR(take(next_, bytes));
    crc_ = Crc32cExtend(crc_, bytes);
    next_ += bytes.size();
  }
  if (next_ < segment_.length) return true;
  if (crc_ == segment_.crc32c) return false;
  return named(absl::DataLossError(absl::StrFormat(
      "its bytes have the crc32c %08x, and should have %08x", crc_, segment_.crc32c)));
}

}  // namespace h5mirror::store
