// A client of Mirror.MirrorFile for tests: sends any message, right or wrong, and prints the
// answers, one JSON object a line.
//
//   e2e_wire_client HOST:PORT
//
// Lines of standard input, in order:
//   open JSON                 {"name", "intent", "session" (hex), "path", "machine", ...}
//   write OFFSET HEX          one extent
//   fill OFFSET LENGTH BYTE   one extent of equal bytes
//   writes JSON               {"extents": [[offset, length]...], "data_bytes", "crc"}
//   truncate SIZE
//   barrier KIND SEQ SIZE
//   raw HEX                   these bytes as one message; "-" is none
//   done                      half-close
// The last line printed is {"end": {"code", "message"}}.
#include <google/protobuf/util/json_util.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "h5mirror/v1/mirror.pb.h"

namespace h5mirror {
namespace {

using nlohmann::json;

constexpr std::array<const char*, 17> kCodeNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

std::string FromHex(const std::string& text) {
  return text == "-" ? "" : absl::HexStringToBytes(text);
}

// Names in tests spell NUL and newline as \0 and \n.
std::string Unescape(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\\0", std::string(1, '\0')}, {"\\n", "\n"}});
}

v1::MirrorFileRequest OpenRequest(const json& fields) {
  v1::MirrorFileRequest request;
  v1::OpenSession& open = *request.mutable_open();
  open.mutable_protocol()->set_oldest(fields.value("protocol_oldest", 1));
  open.mutable_protocol()->set_newest(fields.value("protocol_newest", 1));
  open.set_name(Unescape(fields.at("name")));
  open.set_session_id(FromHex(fields.at("session")));
  open.set_stream(fields.value("stream", uint64_t{1}));
  open.set_file_id(FromHex(fields.value("file_id", "-")));
  v1::Intent intent = v1::INTENT_UNSPECIFIED;
  v1::Intent_Parse(fields.at("intent").get<std::string>(), &intent);
  open.set_intent(intent);
  open.mutable_origin()->set_machine_id(fields.at("machine"));
  open.mutable_origin()->set_host("wire");
  open.mutable_origin()->set_path(fields.at("path"));
  open.mutable_writer()->set_claimed_user("tester");
  open.mutable_writer()->set_host("wire");
  open.mutable_writer()->set_program("wire_client");
  open.set_base_cut(fields.value("base_cut", int64_t{0}));
  open.set_size_bytes(fields.value("size_bytes", int64_t{0}));
  open.set_mode_bits(0640);
  open.set_page_size_bytes(fields.value("page_size_bytes", 0U));
  return request;
}

v1::MirrorFileRequest WritesRequest(const json& fields) {
  v1::MirrorFileRequest request;
  v1::Writes& writes = *request.mutable_writes();
  for (const json& extent : fields.at("extents")) {
    writes.add_offset(extent[0].get<uint64_t>());
    writes.add_length(extent[1].get<uint32_t>());
  }
  writes.set_data(std::string(fields.at("data_bytes").get<size_t>(), 'x'));
  if (!fields.at("crc").is_null()) writes.set_data_crc32c(fields.at("crc").get<uint32_t>());
  return request;
}

v1::MirrorFileRequest OneWrite(uint64_t offset, std::string data) {
  v1::MirrorFileRequest request;
  request.mutable_writes()->add_offset(offset);
  request.mutable_writes()->add_length(static_cast<uint32_t>(data.size()));
  request.mutable_writes()->set_data(std::move(data));
  return request;
}

v1::MirrorFileRequest BarrierRequest(const std::string& kind_name, uint64_t seq,
                                     uint64_t size_bytes) {
  v1::MirrorFileRequest request;
  v1::BarrierKind kind = v1::BARRIER_KIND_UNSPECIFIED;
  v1::BarrierKind_Parse(kind_name, &kind);
  request.mutable_barrier()->set_kind(kind);
  request.mutable_barrier()->set_seq(seq);
  request.mutable_barrier()->set_size_bytes(size_bytes);
  return request;
}

// The bytes of the message that a line asks for.
std::string Message(const std::string& line) {
  std::istringstream words(line);
  std::string verb, text;
  uint64_t offset = 0, length = 0, seq = 0;
  words >> verb;
  v1::MirrorFileRequest request;
  if (verb == "open") {
    request = OpenRequest(json::parse(line.substr(verb.size() + 1)));
  } else if (verb == "writes") {
    request = WritesRequest(json::parse(line.substr(verb.size() + 1)));
  } else if (verb == "write") {
    words >> offset >> text;
    request = OneWrite(offset, FromHex(text));
  } else if (verb == "fill") {
    int byte = 0;
    words >> offset >> length >> byte;
    request = OneWrite(offset, std::string(length, static_cast<char>(byte)));
  } else if (verb == "truncate") {
    words >> offset;
    request.mutable_truncate()->set_size_bytes(offset);
  } else if (verb == "barrier") {
    words >> text >> seq >> length;
    request = BarrierRequest(text, seq, length);
  } else {
    words >> text;
    return FromHex(text);
  }
  return request.SerializeAsString();
}

void Print(const std::string& line) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::cout << line << std::endl;
}

void PrintAnswer(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes, text;
  (void)buffer.Dump(&slices);
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  v1::MirrorFileResponse response;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  if (!response.ParseFromString(bytes) ||
      !google::protobuf::util::MessageToJsonString(response, &text, options).ok()) {
    text = R"({"unreadable": true})";
  }
  Print(text);
}

// One stream over a generic stub; reads on a thread of its own, each side waits on its own queue.
class Stream {
 public:
  explicit Stream(const std::string& address)
      : stub_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())),
        call_(stub_.PrepareCall(&context_, "/h5mirror.v1.Mirror/MirrorFile", &queue_)) {
    call_->StartCall(kStart);
    (void)Next();
  }

  // Runs until the server has ended the stream.
  void Run() {
    grpc::ByteBuffer received;
    std::thread sender([this] { SendLines(); });
    call_->Read(&received, kRead);
    bool reading = true;
    while (reading) {
      const auto [tag, ok] = Next();
      if (tag == kRead) {
        reading = ok;
        if (ok) {
          PrintAnswer(received);
          call_->Read(&received, kRead);
        }
      } else {
        Complete(ok);
      }
    }
    End();
    sender.detach();  // It may wait in a read of standard input; the process ends now.
  }

 private:
  static inline void* const kStart = reinterpret_cast<void*>(1);
  static inline void* const kRead = reinterpret_cast<void*>(2);
  static inline void* const kWrite = reinterpret_cast<void*>(3);
  static inline void* const kFinish = reinterpret_cast<void*>(4);

  std::pair<void*, bool> Next() {
    void* tag = nullptr;
    bool ok = false;
    if (!queue_.Next(&tag, &ok)) std::abort();
    return {tag, ok};
  }

  void Complete(bool ok) {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    broken_ = broken_ || !ok;
    changed_.notify_all();
  }

  // One operation at a time, as gRPC wants. False once the stream is broken.
  template <typename Start>
  bool Write(Start start) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !writing_; });
    if (broken_) return false;
    writing_ = true;
    start();
    return true;
  }

  void SendLines() {
    std::string line;
    while (std::getline(std::cin, line) && line != "done") {
      const grpc::Slice slice(Message(line));
      const grpc::ByteBuffer message(&slice, 1);
      if (!Write([&] { call_->Write(message, kWrite); })) return;
    }
    (void)Write([this] { call_->WritesDone(kWrite); });
  }

  void End() {
    grpc::Status status;
    {
      std::unique_lock lock(mutex_);
      broken_ = true;
    }
    call_->Finish(&status, kFinish);
    while (Next().first != kFinish) {
    }
    Print(json({{"end",
                 {{"code", kCodeNames.at(status.error_code())},
                  {"message", status.error_message()}}}})
              .dump());
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool writing_ = false;
  bool broken_ = false;
};

}  // namespace
}  // namespace h5mirror

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: e2e_wire_client HOST:PORT\n";
    return 2;
  }
  h5mirror::Stream stream(argv[1]);
  stream.Run();
  std::cout.flush();
  std::_Exit(0);  // A thread may still wait for standard input.
}
