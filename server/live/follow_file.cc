// FollowFile: the newest cut of a file, and each one after it.
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/calls/raw_message.h"
#include "server/live/follow_call.h"
#include "server/live/snapshots_service.h"

namespace h5mirror::server {
namespace {

constexpr int kReaderIdBytes = 16;
constexpr int kFileIdBytes = 16;

absl::Status CheckRequest(const v1::FollowFileRequest& request) {
  H5M_RETURN_IF_ERROR(store::CheckName(request.name()));
  if (request.after_cut() < 0) {
    return absl::InvalidArgumentError(StrCat("after_cut ", request.after_cut(), " is negative"));
  }
  const size_t reader_id = request.reader_id().size(), file_id = request.file_id().size();
  if (reader_id != 0 && reader_id != kReaderIdBytes) {
    return absl::InvalidArgumentError(
        StrCat("reader_id has ", reader_id, " bytes, not ", kReaderIdBytes));
  }
  if (file_id != kFileIdBytes && (file_id != 0 || request.after_cut() != 0)) {
    return absl::InvalidArgumentError(
        StrCat("file_id has ", file_id, " bytes, not ", kFileIdBytes));
  }
  return absl::OkStatus();
}

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* SnapshotsService::FollowFile(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes) {
  auto request = ParseMessage<v1::FollowFileRequest>(*bytes);
  const absl::Status checked = request.ok() ? CheckRequest(*request) : request.status();
  const std::string name = request.ok() ? request->name() : "";
  auto* const call = new FollowCall({environment_, publisher_, table_, workers_},
                                    request.ok() ? *std::move(request) : v1::FollowFileRequest());
  LateCheck late;
  auto ticket = AdmitWithoutWait(environment_, *context, "FollowFile", {Right::kRead, name},
                                 CallUse::kFollow, &late);
  if (!ticket.ok()) {
    call->Refuse(ticket.status());
  } else if (!checked.ok()) {
    ticket->Done(checked);
    call->Refuse(checked);
  } else {
    if (late.before == nullptr) ticket->Began();
    call->Begin(*std::move(ticket), std::move(late));
  }
  return call;
}

}  // namespace h5mirror::server
