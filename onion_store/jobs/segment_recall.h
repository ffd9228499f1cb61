// Brings a segment of saved pages back from the archive to the disk.
#ifndef H5MIRROR_ONION_STORE_JOBS_SEGMENT_RECALL_H_
#define H5MIRROR_ONION_STORE_JOBS_SEGMENT_RECALL_H_

#include <string>

#include "absl/status/status.h"
#include "onion_store/index/version_index.h"
#include "onion_store/shared/history_files.h"

namespace h5mirror::store {

// Writes the bytes of an archived segment to `name`, relative to the root; durable when it returns
// OK. Its object stays. Several threads may recall the same segment. Waits for the network: the
// caller holds no lock.
// Errors: kDataLoss          the object is gone, or does not match the index.
//         kResourceExhausted the disk is full; nothing is left on it.
//         those of ObjectStore::Get() and of files.
absl::Status RecallSegment(const HistoryFiles& files, const ArchivedSegment& segment,
                           const std::string& name);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_SEGMENT_RECALL_H_
