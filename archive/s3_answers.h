// The XML in which S3 services answer.
#ifndef H5MIRROR_ARCHIVE_S3_ANSWERS_H_
#define H5MIRROR_ARCHIVE_S3_ANSWERS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "onion_store/object_store.h"

namespace h5mirror::archive {

// The content of <Error>. Both fields are empty if `xml` is not an <Error>.
struct S3Error {
  std::string code;     // "NoSuchKey"
  std::string message;  // the service's text for people: made printable, at most 200 bytes
};
S3Error ParseS3Error(std::string_view xml);

// Parses an answer of ListObjectsV2. The names still have `prefix`. kDataLoss: `xml` is not
// well-formed, has a document type, or lacks an element.
absl::StatusOr<store::ObjectPage> ParseS3List(std::string_view xml);

// The status of an answer with HTTP code `http`, not 2xx, whose body is `xml`. `what` begins the
// message: the archive and the object.
absl::Status StatusOfAnswer(int http, std::string_view xml, std::string_view what);

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_S3_ANSWERS_H_
