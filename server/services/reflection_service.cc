#include "server/services/reflection_service.h"

#include <set>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "rpc/status.h"
#include "server/calls/call.h"

namespace h5mirror::server {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1alpha::FileDescriptorResponse;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

void SetError(ServerReflectionResponse& response, grpc::StatusCode code, std::string message) {
  response.mutable_error_response()->set_error_code(code);
  response.mutable_error_response()->set_error_message(std::move(message));
}

// A file, and what it imports, each once.
void AddFile(const FileDescriptor& file, std::set<std::string>& seen,
             FileDescriptorResponse& response) {
  if (!seen.insert(file.name()).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  response.add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) AddFile(*file.dependency(i), seen, response);
}

void SetFile(ServerReflectionResponse& response, const FileDescriptor* file,
             const std::string& name) {
  if (file == nullptr) {
    return SetError(response, grpc::StatusCode::NOT_FOUND, StrCat("nothing is named ", name));
  }
  std::set<std::string> seen;
  AddFile(*file, seen, *response.mutable_file_descriptor_response());
}

}  // namespace

// One call: reads a request, writes its answer, and so on. It deletes itself when gRPC is done with
// it.
class ReflectionService::Call final
    : public grpc::ServerBidiReactor<ServerReflectionRequest, ServerReflectionResponse> {
 public:
  Call(ReflectionService& service, const absl::Status& entered)
      : service_(service), is_entered_(entered.ok()) {
    if (is_entered_) {
      StartRead(&request_);
    } else {
      Finish(rpc::ToGrpc(entered));
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    response_ = service_.Answer(request_);
    StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    StartRead(&request_);
  }
  void OnDone() override {
    if (is_entered_) service_.Leave();
    delete this;
  }

 private:
  ReflectionService& service_;
  const bool is_entered_;
  ServerReflectionRequest request_;
  ServerReflectionResponse response_;
};

grpc::ServerBidiReactor<ServerReflectionRequest, ServerReflectionResponse>*
ReflectionService::ServerReflectionInfo(grpc::CallbackServerContext* context) {
  return new Call(*this, Enter(*context));
}

absl::Status ReflectionService::Enter(const grpc::CallbackServerContext& context) {
  H5M_RETURN_IF_ERROR(AuthenticateCall(context, authenticator_).status());
  absl::MutexLock lock(&mutex_);
  if (calls_ >= kCallsMax) {
    return absl::ResourceExhaustedError(
        StrCat(kCallsMax, " calls of reflection are open already; safe to retry"));
  }
  ++calls_;
  return absl::OkStatus();
}

void ReflectionService::Leave() {
  absl::MutexLock lock(&mutex_);
  --calls_;
}

ServerReflectionResponse ReflectionService::Answer(const ServerReflectionRequest& request) const {
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kListServices:
      for (const std::string& service : services_) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      break;
    case ServerReflectionRequest::kFileByFilename:
      SetFile(response, pool.FindFileByName(request.file_by_filename()),
              request.file_by_filename());
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      SetFile(response, pool.FindFileContainingSymbol(request.file_containing_symbol()),
              request.file_containing_symbol());
      break;
    default:
      SetError(response, grpc::StatusCode::UNIMPLEMENTED, "there are no extensions");
  }
  return response;
}

}  // namespace h5mirror::server
