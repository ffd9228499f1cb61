#include "swmr_agent/service.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/crc32c.h"
#include "base/status_macros.h"
#include "rpc/agent_socket.h"
#include "rpc/status.h"
#include "rpc/timestamp.h"

namespace h5mirror::agent {
namespace {

// Bytes of one message.
constexpr size_t kPartBytes = 512 << 10;

absl::Status Gone() { return absl::CancelledError("the reader has gone"); }

absl::StatusOr<Upstream*> ServerOf(Agent& agent, const grpc::ServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(rpc::kAgentServerKey);
  return agent.FindServer(
      found == metadata.end() ? "" : std::string(found->second.data(), found->second.size()));
}

// The user of a call, and its file.
struct Reader {
  Agent& agent;
  Upstream& server;
  uid_t user;
  const std::string& name;

  // Errors: as Agent::CheckReader().
  absl::Status May() const { return agent.CheckReader(server, user, name); }
};

// Sends data in messages of a good size, for as long as the reader has the right to them.
template <typename Response>
class Sender {
 public:
  Sender(const Reader& reader, grpc::ServerWriter<Response>& writer)
      : reader_(reader), writer_(writer) {}

  absl::Status Add(uint64_t offset, std::string_view data, bool is_ahead) {
    const uint64_t end = part_.offset() + part_.data().size();
    const bool fits = !part_.data().empty() && end == offset && part_.ahead() == is_ahead &&
                      part_.data().size() + data.size() <= kPartBytes;
    if (!fits) {
      H5M_RETURN_IF_ERROR(Flush());
      part_.set_offset(offset);
      part_.set_ahead(is_ahead);
    }
    part_.mutable_data()->append(data);
    return absl::OkStatus();
  }

  absl::Status Flush() {
    if (part_.data().empty()) return absl::OkStatus();
    H5M_RETURN_IF_ERROR(reader_.May());
    part_.set_data_crc32c(Crc32c(part_.data()));
    if (!writer_.Write(part_)) return Gone();
    part_.Clear();
    return absl::OkStatus();
  }

  absl::Status Finish(uint64_t metadata_next) {
    H5M_RETURN_IF_ERROR(Flush());
    if (metadata_next == 0) return absl::OkStatus();
    part_.set_metadata_next(metadata_next);
    return writer_.Write(part_) ? absl::OkStatus() : Gone();
  }

 private:
  const Reader& reader_;
  grpc::ServerWriter<Response>& writer_;
  Response part_;
};

// The messages after the first, of a cut that is here.
template <typename Response, typename Request>
absl::Status SendBytes(CutImage& image, const Request& request, const Reader& reader,
                       grpc::ServerWriter<Response>& writer) {
  Sender<Response> sender(reader, writer);
  const uint64_t begin = std::min<uint64_t>(request.offset(), image.size_bytes());
  const uint64_t most = image.size_bytes() - begin;
  const uint64_t length =
      request.length_bytes() == 0 ? most : std::min<uint64_t>(request.length_bytes(), most);
  const auto send = [&](uint64_t offset, std::string_view data) {
    return sender.Add(offset, data, /*is_ahead=*/false);
  };
  H5M_RETURN_IF_ERROR(image.Read(begin, length, send));
  const auto send_ahead = [&](uint64_t offset, std::string_view blocks) {
    return sender.Add(offset, blocks, /*is_ahead=*/true);
  };
  rpc::MetadataAhead ahead{request.metadata_from(), request.metadata_length_bytes(), send_ahead};
  // The range is there: what becomes of the metadata behind it is no failure of it.
  if (request.metadata_length_bytes() > 0 && !image.ReadAhead({begin, length}, ahead).ok()) {
    ahead.next = 0;
  }
  return sender.Finish(ahead.next);
}

absl::StatusOr<std::optional<SharedCut>> FindCut(Agent& agent, Upstream& server,
                                                 const v1::ReadSnapshotRequest& request) {
  if (request.cut() != 0) {
    const Agent::FilePtr file = agent.Find(server, request.name());
    return file == nullptr ? std::nullopt : file->Find(request.cut(), request.file_id());
  }
  if (request.has_not_after_time()) return std::nullopt;
  const Agent::FilePtr file = agent.Follow(server, request.name());
  if (file == nullptr) return std::nullopt;
  return file->OpenNewest(request.reader_id());
}

absl::Status ReadCut(Agent& agent, uid_t user, const grpc::ServerContext& context,
                     const v1::ReadSnapshotRequest& request,
                     grpc::ServerWriter<v1::ReadSnapshotResponse>& writer) {
  H5M_ASSIGN_OR_RETURN(Upstream* const server, ServerOf(agent, context));
  const Reader reader{agent, *server, user, request.name()};
  H5M_RETURN_IF_ERROR(reader.May());
  H5M_ASSIGN_OR_RETURN(const std::optional<SharedCut> cut, FindCut(agent, *server, request));
  if (cut) {
    v1::ReadSnapshotResponse first;
    *first.mutable_snapshot() = cut->snapshot;
    // Where it has become a version since, that has the number of an older cut with these bytes.
    if (request.cut() != 0) first.mutable_snapshot()->set_cut(request.cut());
    if (!writer.Write(first)) return Gone();
    return SendBytes(*cut->image, request, reader, writer);
  }
  H5M_ASSIGN_OR_RETURN(rpc::Client* const client, server->client());
  return client->ReadSnapshot(request, [&](const v1::ReadSnapshotResponse& answer) -> absl::Status {
    H5M_RETURN_IF_ERROR(reader.May());
    return writer.Write(answer) ? absl::OkStatus() : Gone();
  });
}

absl::Status ReadOneVersion(Agent& agent, uid_t user, const grpc::ServerContext& context,
                            const v1::ReadVersionRequest& request,
                            grpc::ServerWriter<v1::ReadVersionResponse>& writer) {
  H5M_ASSIGN_OR_RETURN(Upstream* const server, ServerOf(agent, context));
  const Reader reader{agent, *server, user, request.name()};
  H5M_RETURN_IF_ERROR(reader.May());
  const Agent::FilePtr file =
      request.ranges().empty() ? agent.Find(*server, request.name()) : nullptr;
  const std::optional<SharedCut> cut = file == nullptr || request.version() == 0
                                           ? std::nullopt
                                           : file->FindVersion(request.version());
  if (cut) {
    v1::ReadVersionResponse first;
    *first.mutable_version() = *cut->version;
    if (!writer.Write(first)) return Gone();
    return SendBytes(*cut->image, request, reader, writer);
  }
  H5M_ASSIGN_OR_RETURN(rpc::Client* const client, server->client());
  return client->ReadVersion(request, [&](const v1::ReadVersionResponse& answer) -> absl::Status {
    H5M_RETURN_IF_ERROR(reader.May());
    return writer.Write(answer) ? absl::OkStatus() : Gone();
  });
}

}  // namespace

grpc::Status SnapshotsFromMemory::ReadSnapshot(
    grpc::ServerContext* context, const v1::ReadSnapshotRequest* request,
    grpc::ServerWriter<v1::ReadSnapshotResponse>* writer) {
  const LastCall::Scope scope(last_call_);
  return rpc::ToGrpc(ReadCut(agent_, user_, *context, *request, *writer));
}

grpc::Status SnapshotsFromMemory::CloseSnapshot(grpc::ServerContext* context,
                                                const v1::CloseSnapshotRequest* request,
                                                v1::CloseSnapshotResponse*) {
  const LastCall::Scope scope(last_call_);
  const auto close = [&]() -> absl::Status {
    H5M_ASSIGN_OR_RETURN(Upstream* const server, ServerOf(agent_, *context));
    const Agent::FilePtr file = agent_.Find(*server, request->name());
    if (file != nullptr && file->Close(request->cut(), request->reader_id())) {
      return absl::OkStatus();
    }
    H5M_RETURN_IF_ERROR(agent_.CheckReader(*server, user_, request->name()));
    H5M_ASSIGN_OR_RETURN(rpc::Client* const client, server->client());
    return client->CloseSnapshot(*request);
  };
  return rpc::ToGrpc(close());
}

grpc::Status VersionsFromMemory::ReadVersion(grpc::ServerContext* context,
                                             const v1::ReadVersionRequest* request,
                                             grpc::ServerWriter<v1::ReadVersionResponse>* writer) {
  const LastCall::Scope scope(last_call_);
  return rpc::ToGrpc(ReadOneVersion(agent_, user_, *context, *request, *writer));
}

namespace {

// The cut that a question of `user` means, as far as it is here.
absl::StatusOr<SharedCut> FindAsked(Agent& agent, const Upstream& server,
                                    const rpc::CutMapQuestion& question) {
  const Agent::FilePtr file = agent.Find(server, question.name);
  if (file == nullptr) return absl::NotFoundError("it is not followed");
  const std::optional<SharedCut> cut = question.version != 0
                                           ? file->FindVersion(question.version)
                                           : file->Find(question.cut, question.file_id);
  if (!cut) return absl::NotFoundError("this cut is not here");
  if (question.version != 0) {
    const int64_t time_ns = absl::ToUnixNanos(rpc::FromProto(cut->version->server_time()));
    if (cut->version->cut() != question.cut || time_ns != question.version_time_ns) {
      return absl::NotFoundError("another file has the name");
    }
  }
  return *cut;
}

}  // namespace

absl::StatusOr<OpenedCut> OpenCut(Agent& agent, uid_t user, const rpc::CutMapQuestion& question) {
  H5M_ASSIGN_OR_RETURN(Upstream* const server, agent.FindServer(question.target));
  H5M_RETURN_IF_ERROR(agent.CheckReader(*server, user, question.name));
  const Agent::FilePtr file = agent.Follow(*server, question.name);
  if (file == nullptr) return absl::UnavailableError("too many files are followed");
  H5M_ASSIGN_OR_RETURN(const SharedCut cut, file->OpenNewest(question.reader_id));
  OpenedCut opened{cut.snapshot, nullptr};
  if (auto memory = cut.image->Memory(); memory.ok()) opened.memory = *std::move(memory);
  return opened;
}

absl::StatusOr<std::shared_ptr<const CutMemory>> FindMemory(Agent& agent, uid_t user,
                                                            const rpc::CutMapQuestion& question) {
  H5M_ASSIGN_OR_RETURN(Upstream* const server, agent.FindServer(question.target));
  H5M_RETURN_IF_ERROR(agent.LookAtReader(*server, user, question.name));
  H5M_ASSIGN_OR_RETURN(const SharedCut cut, FindAsked(agent, *server, question));
  return cut.image->Memory();
}

absl::StatusOr<SharedView> FindSharedBlocks(Agent& agent, uid_t user,
                                            const rpc::CutMapQuestion& question) {
  H5M_ASSIGN_OR_RETURN(Upstream* const server, agent.FindServer(question.target));
  H5M_RETURN_IF_ERROR(agent.LookAtReader(*server, user, question.name));
  H5M_ASSIGN_OR_RETURN(const SharedCut cut, FindAsked(agent, *server, question));
  H5M_ASSIGN_OR_RETURN(WindowPtr window, cut.image->OpenWindow(user));
  // A look at the cut is a use of it.
  const auto check = [&agent, server, user, question,
                      image = std::weak_ptr<CutImage>(cut.image)]() -> absl::Status {
    H5M_RETURN_IF_ERROR(agent.CheckReader(*server, user, question.name));
    H5M_ASSIGN_OR_RETURN(const SharedCut now, FindAsked(agent, *server, question));
    return now.image == image.lock() ? absl::OkStatus()
                                     : absl::NotFoundError("the file is followed anew");
  };
  return SharedView{cut.image, std::move(window), check, question.version > 0};
}

grpc::Status VersionsFromMemory::FindVersion(grpc::ServerContext* context,
                                             const v1::FindVersionRequest* request,
                                             v1::FindVersionResponse* response) {
  const LastCall::Scope scope(last_call_);
  const auto find = [&]() -> absl::Status {
    H5M_ASSIGN_OR_RETURN(Upstream* const server, ServerOf(agent_, *context));
    H5M_RETURN_IF_ERROR(agent_.CheckReader(*server, user_, request->name()));
    H5M_ASSIGN_OR_RETURN(rpc::Client* const client, server->client());
    H5M_ASSIGN_OR_RETURN(*response->mutable_version(), client->FindVersion(*request));
    return absl::OkStatus();
  };
  return rpc::ToGrpc(find());
}

}  // namespace h5mirror::agent
