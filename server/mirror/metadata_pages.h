// The pages that a barrier names as metadata: Barrier.metadata_page of mirror.proto.
#ifndef H5MIRROR_SERVER_MIRROR_METADATA_PAGES_H_
#define H5MIRROR_SERVER_MIRROR_METADATA_PAGES_H_

#include "absl/status/status.h"
#include "h5mirror/v1/mirror.pb.h"
#include "onion_store/metadata_map.h"

namespace h5mirror::server {

// kInvalidArgument: too many, or not as many counts as pages.
absl::Status CheckMetadataPages(const v1::Barrier& barrier);

// Pages beyond 2^62 bytes are left out.
void NoteMetadataPages(const v1::Barrier& barrier, store::MetadataMap& map);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_MIRROR_METADATA_PAGES_H_
