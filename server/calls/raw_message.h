// Messages of calls that gRPC hands over as bytes.
#ifndef H5MIRROR_SERVER_CALLS_RAW_MESSAGE_H_
#define H5MIRROR_SERVER_CALLS_RAW_MESSAGE_H_

#include "absl/status/statusor.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/byte_buffer.h"

namespace h5mirror::server {

// kInvalidArgument: the bytes are no `Message`.
template <typename Message>
absl::StatusOr<Message> ParseMessage(const grpc::ByteBuffer& bytes) {
  Message message;
  grpc::ByteBuffer copy(bytes);  // of the handle: it is emptied
  if (grpc::SerializationTraits<Message>::Deserialize(&copy, &message).ok()) return message;
  return absl::InvalidArgumentError("the request does not parse");
}

// Serializes a message of at most kMaxMessageBytes.
template <typename Message>
grpc::ByteBuffer EncodeMessage(const Message& message) {
  grpc::ByteBuffer bytes;
  bool owns = false;
  static_cast<void>(grpc::SerializationTraits<Message>::Serialize(message, &bytes, &owns));
  return bytes;
}

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_RAW_MESSAGE_H_
