// Texts of a request. A string of proto3 must be UTF-8: a server cannot parse a request with any
// other string, and its error could not name the field.
#ifndef H5MIRROR_RPC_TEXTS_H_
#define H5MIRROR_RPC_TEXTS_H_

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace h5mirror::rpc {

// Looks at all strings of `message`, also at those of the messages in it. To be called before it is
// sent. Thread-safe.
// kInvalidArgument: one is no UTF-8. Names its field and, escaped, its value, and the way out.
absl::Status CheckTexts(const google::protobuf::Message& message);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_TEXTS_H_
