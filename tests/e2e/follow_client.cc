// A client of Snapshots.FollowFile for tests: follows as badly as it is told to.
//
//   e2e_follow_client HOST:PORT NAME
//
// Lines of standard input, each answered by one JSON object:
//   take CUT FILE_ID METADATA_MAX   follows after that cut (0 -: none) until one cut came whole:
//                                   {"cut", "file_id", "whole", "size", "changed", "data_bytes"}
//   stall COUNT METADATA_MAX HOLDS  so many calls, each on a connection of its own and in the
//   middle
//                                   of its first message, that read nothing; HOLDS 1: cuts are held
//                                   for each: {"stalled": calls so far}
// An error is {"error": {"code", "message"}}. The calls end with the process.
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "h5mirror/v1/snapshots.grpc.pb.h"

namespace h5mirror {
namespace {

using nlohmann::json;

std::string RandomId() {
  static std::random_device random;
  std::string id(16, '\0');
  for (char& byte : id) byte = static_cast<char>(random());
  return id;
}

std::unique_ptr<v1::Snapshots::Stub> Connect(const std::string& address) {
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  own.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // Unread bytes stay with the server.
  return v1::Snapshots::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), own));
}

json Error(const grpc::Status& status) {
  return {{"error", {{"code", status.error_code()}, {"message", status.error_message()}}}};
}

// A call that reads only the headers.
class Stalled {
 public:
  Stalled(const std::string& address, const v1::FollowFileRequest& request)
      : stub_(Connect(address)),
        reader_(stub_->PrepareAsyncFollowFile(&context_, request, &queue_)) {
    reader_->StartCall(this);
    Await();
    reader_->ReadInitialMetadata(this);  // They come with the first message.
    Await();
  }

 private:
  void Await() {
    void* tag = nullptr;
    bool ok = false;
    if (!queue_.Next(&tag, &ok) || !ok) std::abort();
  }

  std::unique_ptr<v1::Snapshots::Stub> stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReader<v1::FollowFileResponse>> reader_;
};

class Client {
 public:
  Client(std::string address, std::string name)
      : address_(std::move(address)), name_(std::move(name)), stub_(Connect(address_)) {}

  json Do(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    if (verb == "take") {
      std::string file_id;
      v1::FollowFileRequest request;
      int64_t cut = 0;
      uint64_t metadata_max = 0;
      words >> cut >> file_id >> metadata_max;
      request.set_name(name_);
      request.set_after_cut(cut);
      if (file_id != "-") request.set_file_id(absl::HexStringToBytes(file_id));
      request.set_metadata_bytes_max(metadata_max);
      return Take(request);
    }
    int count = 0, holds = 0;
    uint64_t metadata_max = 0;
    words >> count >> metadata_max >> holds;
    for (int i = 0; i < count; ++i) {
      v1::FollowFileRequest request;
      request.set_name(name_);
      request.set_metadata_bytes_max(metadata_max);
      if (holds != 0) request.set_reader_id(RandomId());
      stalled_.push_back(std::make_unique<Stalled>(address_, request));
    }
    return {{"stalled", stalled_.size()}};
  }

 private:
  json Take(const v1::FollowFileRequest& request) {
    grpc::ClientContext context;
    const auto reader = stub_->FollowFile(&context, request);
    v1::FollowFileResponse message;
    json cut;
    while (reader->Read(&message)) {
      if (message.has_snapshot()) {
        cut = {{"cut", message.snapshot().cut()},
               {"file_id", absl::BytesToHexString(message.file_id())},
               {"whole", message.whole()},
               {"size", message.snapshot().size_bytes()},
               {"changed", json::array()},
               {"data_bytes", 0}};
        for (int i = 0; i < message.changed_offset_size(); ++i) {
          cut["changed"].push_back({message.changed_offset(i), message.changed_length(i)});
        }
      }
      cut["data_bytes"] = cut["data_bytes"].get<uint64_t>() + message.data().size();
      if (!message.last()) continue;
      context.TryCancel();
      while (reader->Read(&message)) {
      }
      static_cast<void>(reader->Finish());
      return cut;
    }
    return Error(reader->Finish());
  }

  const std::string address_, name_;
  const std::unique_ptr<v1::Snapshots::Stub> stub_;
  std::vector<std::unique_ptr<Stalled>> stalled_;
};

}  // namespace
}  // namespace h5mirror

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: e2e_follow_client HOST:PORT NAME\n";
    return 2;
  }
  h5mirror::Client client(argv[1], argv[2]);
  std::string line;
  while (std::getline(std::cin, line)) std::cout << client.Do(line).dump() << std::endl;
  std::_Exit(0);  // Its calls do not end in order.
}
