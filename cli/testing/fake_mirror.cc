#include "cli/testing/fake_mirror.h"

#include <string>

#include "base/crc32c.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/strings.h"

namespace h5mirror::tools {
namespace {

using State = FakeServer::State;
using grpc::StatusCode;

class FakeMirror final : public v1::Mirror::Service {
 public:
  explicit FakeMirror(State& state) : state_(state) {}

  using Stream = grpc::ServerReaderWriter<v1::MirrorFileResponse, v1::MirrorFileRequest>;

  grpc::Status MirrorFile(grpc::ServerContext*, Stream* stream) override {
    v1::MirrorFileRequest request;
    if (!stream->Read(&request) || !request.has_open()) {
      return {StatusCode::INVALID_ARGUMENT, "no open"};
    }
    const v1::OpenSession open = request.open();
    v1::MirrorFileResponse response;
    *response.mutable_opened() = Decide(open);
    stream->Write(response);
    const v1::Relation relation = response.opened().relation();
    if (relation != v1::RELATION_NEW && relation != v1::RELATION_MATCH) {
      return {StatusCode::FAILED_PRECONDITION, "neither new nor the same"};
    }
    std::string content;
    if (relation == v1::RELATION_MATCH) {
      absl::MutexLock lock(&state_.mutex);
      content = state_.files[open.name()].contents.back();
    }
    while (stream->Read(&request)) {
      if (request.has_writes()) {
        const grpc::Status status = TakeWrites(request.writes(), content);
        if (!status.ok()) return status;
      } else if (request.has_truncate()) {
        content.resize(request.truncate().size_bytes());
      } else if (request.has_barrier()) {
        if (grpc::Status status = RunHook(state_, "Barrier"); !status.ok()) return status;
        content.resize(request.barrier().size_bytes());
        Answer(*stream, request.barrier(),
               Commit(open, response.opened(), content, request.barrier().comment()));
      }
    }
    return grpc::Status::OK;
  }

 private:
  v1::SessionOpened Decide(const v1::OpenSession& open) {
    absl::MutexLock lock(&state_.mutex);
    v1::SessionOpened opened;
    opened.set_max_frame_bytes(1 << 20);
    opened.set_relation(v1::RELATION_NEW);
    opened.set_file_id(ToByteString(RandomBytes16()));
    const auto found = state_.files.find(open.name());
    if (found == state_.files.end()) return opened;
    opened.set_file_id(found->second.file_id);
    const v1::Version& newest = found->second.versions.back();
    if (open.intent() == v1::INTENT_RESYNC && open.base_cut() == newest.cut()) {
      opened.set_relation(v1::RELATION_MATCH);
      opened.set_durable_cut(newest.cut());
    } else if (open.intent() != v1::INTENT_REPLACE) {
      opened.set_relation(v1::RELATION_DIVERGED);
    }
    if (found->second.leased) opened.set_relation(v1::RELATION_BUSY);
    opened.set_state(StrCat("head is version ", found->second.versions.size()));
    return opened;
  }

  static grpc::Status TakeWrites(const v1::Writes& writes, std::string& content) {
    if (!writes.has_data_crc32c() || writes.data_crc32c() != Crc32c(writes.data())) {
      return {StatusCode::DATA_LOSS, "checksum"};
    }
    size_t used = 0;
    for (int i = 0; i < writes.offset_size(); ++i) {
      const uint64_t end = writes.offset(i) + writes.length(i);
      if (content.size() < end) content.resize(end);
      content.replace(writes.offset(i), writes.length(i), writes.data(), used, writes.length(i));
      used += writes.length(i);
    }
    return grpc::Status::OK;
  }

  v1::Version Commit(const v1::OpenSession& open, const v1::SessionOpened& opened,
                     const std::string& content, const std::string& comment) {
    absl::MutexLock lock(&state_.mutex);
    FakeFile& file = state_.files[open.name()];
    if (!file.versions.empty() && open.intent() != v1::INTENT_RESYNC) ++file.generation;
    file.file_id = opened.file_id();
    file.origin = open.origin();
    if (open.intent() == v1::INTENT_RESYNC && file.contents.back() == content) {
      return file.versions.back();  // It changed nothing.
    }
    return AppendVersion(state_, file, content, comment, open.writer());
  }

  static void Answer(Stream& stream, const v1::Barrier& barrier, const v1::Version& version) {
    v1::MirrorFileResponse response;
    response.mutable_cut_visible()->set_seq(barrier.seq());
    response.mutable_cut_visible()->set_cut(version.cut());
    stream.Write(response);
    response.mutable_cut_durable()->set_seq(barrier.seq());
    response.mutable_cut_durable()->set_cut(version.cut());
    response.mutable_cut_durable()->set_version(version.version());
    stream.Write(response);
  }

  State& state_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewFakeMirror(State& state) {
  return std::make_unique<FakeMirror>(state);
}

}  // namespace h5mirror::tools
