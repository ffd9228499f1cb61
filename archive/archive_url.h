// The address of an archive: dir:/PATH, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME&
// credentials=FILE&ca=FILE. It has no keys.
#ifndef H5MIRROR_ARCHIVE_ARCHIVE_URL_H_
#define H5MIRROR_ARCHIVE_ARCHIVE_URL_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "archive/s3_store.h"
#include "base/env.h"
#include "onion_store/object_store.h"

namespace h5mirror::archive {

struct ArchiveUrl {
  std::string directory;  // absolute; empty: it is `s3`
  S3Settings s3;
};

// kInvalidArgument: the message says which form is wanted.
absl::StatusOr<ArchiveUrl> ParseArchiveUrl(std::string_view text);

// Opens the archive that `text` names. Makes no call over the network.
// Errors: as ParseArchiveUrl(), DirectoryStore::Open(), S3Store::Open().
absl::StatusOr<std::unique_ptr<store::ObjectStore>> OpenArchive(Env& env, std::string_view text);

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_ARCHIVE_URL_H_
