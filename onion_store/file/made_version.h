// Versions that calls make without a writer: the common parts of rollback, fork and promotion.
#ifndef H5MIRROR_ONION_STORE_FILE_MADE_VERSION_H_
#define H5MIRROR_ONION_STORE_FILE_MADE_VERSION_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "onion_store/file.h"

namespace h5mirror::store {

// The cut of such a version. `comment` is used if the call gives none.
inline CutRequest CutOfCall(uint64_t size_bytes, const Provenance& provenance, std::string comment,
                            const std::array<uint8_t, 16>& request_id) {
  CutRequest request;
  request.kind = BarrierKind::kCommit;
  request.size_bytes = size_bytes;
  request.provenance = provenance;
  if (request.provenance.comment.empty()) request.provenance.comment = std::move(comment);
  request.request_id = request_id;
  return request;
}

// The source of such a version: `version` of `file`. Its time is that of the version to come.
inline SourceVersion SourceIn(const File& file, const VersionInfo& version, SourceKind kind,
                              const Provenance& provenance) {
  SourceVersion source;
  source.kind = kind;
  source.file_id = file.file_id();
  source.name = file.name();
  source.version = version.version;
  source.cut = version.cut;
  source.claimed_user = provenance.claimed_user;
  source.verified_user = provenance.verified_user;
  return source;
}

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_MADE_VERSION_H_
