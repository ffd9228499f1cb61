// grpc.reflection.v1alpha.ServerReflection: tells tools such as grpcurl which services and messages
// there are. gRPC's own reflection is not used: it asks for no token, and each of its calls holds a
// thread.
#ifndef H5MIRROR_SERVER_SERVICES_REFLECTION_SERVICE_H_
#define H5MIRROR_SERVER_SERVICES_REFLECTION_SERVICE_H_

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "server/door/auth.h"

namespace h5mirror::server {

// Thread-safe. No call holds a thread. The server must have ended before this does.
class ReflectionService final
    : public grpc::reflection::v1alpha::ServerReflection::CallbackService {
 public:
  static constexpr int kCallsMax = 16;

  // `services`: their full names. `authenticator` must outlive it.
  ReflectionService(std::vector<std::string> services, const Authenticator& authenticator)
      : services_(std::move(services)), authenticator_(authenticator) {}

  // UNAUTHENTICATED: no valid token. RESOURCE_EXHAUSTED: kCallsMax are open already.
  grpc::ServerBidiReactor<grpc::reflection::v1alpha::ServerReflectionRequest,
                          grpc::reflection::v1alpha::ServerReflectionResponse>*
  ServerReflectionInfo(grpc::CallbackServerContext* context) override;

 private:
  class Call;

  grpc::reflection::v1alpha::ServerReflectionResponse Answer(
      const grpc::reflection::v1alpha::ServerReflectionRequest& request) const;
  absl::Status Enter(const grpc::CallbackServerContext& context);
  void Leave();

  const std::vector<std::string> services_;
  const Authenticator& authenticator_;
  absl::Mutex mutex_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SERVICES_REFLECTION_SERVICE_H_
