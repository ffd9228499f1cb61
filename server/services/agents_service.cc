#include "server/services/agents_service.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

constexpr size_t kUserBytesMax = 256;
// The agent waits for a second.
constexpr absl::Duration kNameWait = absl::Milliseconds(700);

absl::Status CheckRequest(const v1::CheckReaderRequest& request) {
  if (request.name().empty()) return absl::InvalidArgumentError("the name of the file is missing");
  const std::string& user = request.user();
  const bool is_name =
      user.size() <= kUserBytesMax && std::all_of(user.begin(), user.end(), [](unsigned char byte) {
        return byte >= 0x20 && byte != 0x7f && byte != '/' && byte != ':';
      });
  if (is_name) return absl::OkStatus();
  return absl::InvalidArgumentError("this is no user's name: it is too long, or holds '/' or ':'");
}

}  // namespace

absl::StatusOr<bool> AgentsService::MayRead(const std::string& user, const std::string& name) {
  if (user.empty()) return false;
  absl::StatusOr<UsersByName::User> found = users_.Find(user, kNameWait);
  if (absl::IsNotFound(found.status())) return false;
  H5M_RETURN_IF_ERROR(found.status());
  // As Authenticator has the caller of a Unix socket.
  const Principal reader{.name = found->user->name,
                         .rights = Rights::All(),
                         .issuer = Principal::Issuer::kUnix,
                         .uid = found->uid,
                         .user = std::move(found->user)};
  return environment_.authenticator.RightsTo(reader, name).Has(Right::kRead);
}

grpc::Status AgentsService::CheckReader(grpc::ServerContext* context,
                                        const v1::CheckReaderRequest* request,
                                        v1::CheckReaderResponse* response) {
  // Once: a table may come meanwhile, and then the agent has not shown that it may ask.
  const bool has_tables = environment_.authenticator.has_rules();
  Needs needs = OneFile(Right::kRead, request->name());
  if (has_tables) needs.push_back({Right::kOperate, request->name()});
  const auto answer = [&](const Principal&) -> absl::Status {
    H5M_RETURN_IF_ERROR(CheckRequest(*request));
    response->set_has_tables(has_tables);
    if (!has_tables) return absl::OkStatus();
    H5M_ASSIGN_OR_RETURN(const bool may_read, MayRead(request->user(), request->name()));
    response->set_may_read(may_read);
    return absl::OkStatus();
  };
  return RunCall(environment_, *context, "CheckReader", std::move(needs), answer);
}

}  // namespace h5mirror::server
