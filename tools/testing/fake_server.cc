#include "tools/testing/fake_server.h"

#include <xxhash.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "base/crc32c.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/strings.h"
#include "grpcpp/server_builder.h"
#include "tools/text.h"

namespace h5mirror::tools {
namespace {

using State = FakeServer::State;
using grpc::StatusCode;

constexpr size_t kPieceBytes = 64 << 10;

grpc::Status NoFile(const std::string& name) {
  return {StatusCode::NOT_FOUND, StrCat("no file ", name)};
}

v1::Version Append(State& state, FakeFile& file, const std::string& content,
                   const std::string& comment, const v1::Writer& writer)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  v1::Version version;
  version.set_version(static_cast<int64_t>(file.versions.size()) + 1);
  version.set_cut(++state.last_cut);
  *version.mutable_server_time() =
      ToProto(state.time == absl::InfinitePast() ? absl::Now() : state.time);
  *version.mutable_writer() = writer;
  version.set_comment(comment);
  version.set_size_bytes(static_cast<int64_t>(content.size()));
  version.set_changed_bytes(static_cast<int64_t>(content.size()));
  version.set_generation(file.generation);
  file.versions.push_back(version);
  file.contents.push_back(content);
  return version;
}

v1::FileStatus StatusOf(const std::string& name, const FakeFile& file) {
  v1::FileStatus status;
  const v1::Version& newest = file.versions.back();
  status.set_name(name);
  status.set_file_id(file.file_id);
  status.set_size_bytes(newest.size_bytes());
  status.set_page_size_bytes(4096);
  status.set_generation(file.generation);
  status.set_last_cut(newest.cut());
  status.set_durable_cut(newest.cut());
  status.set_applied_cut(newest.cut());
  *status.mutable_newest_version() = newest;
  status.set_version_count(static_cast<int64_t>(file.versions.size()));
  *status.mutable_origin() = file.origin;
  if (file.leased) *status.mutable_lease()->mutable_writer() = file.lease;
  return status;
}

class FakeFiles final : public v1::Files::Service {
 public:
  explicit FakeFiles(State& state) : state_(state) {}

  // Page tokens are names: a page starts after its token.
  grpc::Status ListFiles(grpc::ServerContext*, const v1::ListFilesRequest* request,
                         v1::ListFilesResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    const std::string prefix =
        request->directory().empty() ? "" : StrCat(request->directory(), "/");
    for (auto it = state_.files.upper_bound(request->page_token()); it != state_.files.end();
         ++it) {
      if (it->first.rfind(prefix, 0) != 0) continue;
      if (response->files_size() == std::max(request->page_size(), 1)) {
        response->set_next_page_token(response->files().rbegin()->name());
        return grpc::Status::OK;
      }
      v1::FileSummary& file = *response->add_files();
      file.set_name(it->first);
      file.set_size_bytes(it->second.versions.back().size_bytes());
      *file.mutable_modify_time() = it->second.versions.back().server_time();
    }
    return grpc::Status::OK;
  }

  grpc::Status GetFile(grpc::ServerContext*, const v1::GetFileRequest* request,
                       v1::GetFileResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    const auto found = state_.files.find(request->name());
    if (found == state_.files.end()) return NoFile(request->name());
    *response->mutable_file() = StatusOf(found->first, found->second);
    return grpc::Status::OK;
  }

  grpc::Status DigestFile(grpc::ServerContext*, const v1::DigestFileRequest* request,
                          grpc::ServerWriter<v1::DigestFileResponse>* writer) override {
    absl::MutexLock lock(&state_.mutex);
    const auto found = state_.files.find(request->name());
    if (found == state_.files.end()) return NoFile(request->name());
    v1::DigestFileResponse response;
    *response.mutable_version() = found->second.versions.back();
    const std::string& content = found->second.contents.back();
    for (size_t offset = 0; offset < content.size(); offset += request->block_size_bytes()) {
      const size_t size = std::min<size_t>(request->block_size_bytes(), content.size() - offset);
      XXH128_canonical_t digest;
      XXH128_canonicalFromHash(&digest, XXH3_128bits(content.data() + offset, size));
      response.mutable_digests()->append(reinterpret_cast<const char*>(digest.digest),
                                         sizeof(digest));
    }
    writer->Write(response);
    return grpc::Status::OK;
  }

  grpc::Status AdoptFile(grpc::ServerContext*, const v1::AdoptFileRequest* request,
                         v1::AdoptFileResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    const auto found = state_.files.find(request->name());
    if (found == state_.files.end()) return NoFile(request->name());
    if (found->second.versions.back().version() != request->version()) {
      return {StatusCode::ABORTED, "not the newest any more"};
    }
    found->second.origin = request->origin();
    *response->mutable_file() = StatusOf(found->first, found->second);
    return grpc::Status::OK;
  }

 private:
  State& state_;
};

class FakeVersions final : public v1::Versions::Service {
 public:
  explicit FakeVersions(State& state) : state_(state) {}

  // Page tokens are the number of versions given so far.
  grpc::Status ListVersions(grpc::ServerContext*, const v1::ListVersionsRequest* request,
                            v1::ListVersionsResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    const auto found = state_.files.find(request->name());
    if (found == state_.files.end()) return NoFile(request->name());
    const std::vector<v1::Version>& versions = found->second.versions;
    size_t given = 0;
    if (!request->page_token().empty() && !absl::SimpleAtoi(request->page_token(), &given)) {
      return {StatusCode::INVALID_ARGUMENT, "bad page token"};
    }
    const absl::Time since = FromProto(request->since_time());
    for (; given < versions.size() && response->versions_size() < request->page_size(); ++given) {
      const v1::Version& version = versions[versions.size() - 1 - given];
      const absl::Time time = FromProto(version.server_time());
      if (time < since) return grpc::Status::OK;
      if (request->has_until_time() && time > FromProto(request->until_time())) continue;
      *response->add_versions() = version;
    }
    if (given < versions.size()) response->set_next_page_token(StrCat(given));
    return grpc::Status::OK;
  }

  grpc::Status GetVersion(grpc::ServerContext*, const v1::GetVersionRequest* request,
                          v1::GetVersionResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    const auto found = state_.files.find(request->name());
    if (found == state_.files.end()) return NoFile(request->name());
    size_t index = 0;
    if (!Find(found->second, request->version(), &index)) return NoVersion(request->version());
    *response->mutable_version() = found->second.versions[index];
    return grpc::Status::OK;
  }

  grpc::Status FindVersion(grpc::ServerContext*, const v1::FindVersionRequest* request,
                           v1::FindVersionResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    const auto found = state_.files.find(request->name());
    if (found == state_.files.end()) return NoFile(request->name());
    const std::vector<v1::Version>& versions = found->second.versions;
    auto is_wanted = [&](const v1::Version& version) {
      if (request->has_tag()) {
        return std::count(version.tags().begin(), version.tags().end(), request->tag()) > 0;
      }
      if (request->has_at_time()) {
        return FromProto(version.server_time()) <= FromProto(request->at_time());
      }
      return static_cast<int64_t>(versions.size()) - version.version() == request->back();
    };
    const auto wanted = std::find_if(versions.rbegin(), versions.rend(), is_wanted);
    if (wanted == versions.rend()) return {StatusCode::NOT_FOUND, "no such version"};
    *response->mutable_version() = *wanted;
    return grpc::Status::OK;
  }

  grpc::Status TagVersion(grpc::ServerContext*, const v1::TagVersionRequest* request,
                          v1::TagVersionResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    const auto found = state_.files.find(request->name());
    if (found == state_.files.end()) return NoFile(request->name());
    size_t index = 0;
    if (!Find(found->second, request->version(), &index)) return NoVersion(request->version());
    v1::Version* const previous = Tagged(found->second, request->tag());
    if (previous != nullptr && !request->move()) {
      return {StatusCode::ALREADY_EXISTS, StrCat("version ", previous->version(), " has it")};
    }
    if (previous != nullptr) {
      response->set_previous_version(previous->version());
      previous->clear_tags();
    }
    found->second.versions[index].add_tags(request->tag());
    *response->mutable_version() = found->second.versions[index];
    return grpc::Status::OK;
  }

  grpc::Status UntagVersion(grpc::ServerContext*, const v1::UntagVersionRequest* request,
                            v1::UntagVersionResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    const auto found = state_.files.find(request->name());
    if (found == state_.files.end()) return NoFile(request->name());
    v1::Version* const tagged = Tagged(found->second, request->tag());
    if (tagged == nullptr) return {StatusCode::NOT_FOUND, "no such tag"};
    tagged->clear_tags();
    response->set_version(tagged->version());
    return grpc::Status::OK;
  }

  // All of the newest version lies in the head, of the others the first page is saved.
  grpc::Status MapVersion(grpc::ServerContext*, const v1::MapVersionRequest* request,
                          grpc::ServerWriter<v1::MapVersionResponse>* writer) override {
    absl::MutexLock lock(&state_.mutex);
    const auto found = state_.files.find(request->name());
    if (found == state_.files.end()) return NoFile(request->name());
    size_t index = 0;
    if (!Find(found->second, request->version(), &index)) return NoVersion(request->version());
    v1::MapVersionResponse response;
    *response.mutable_version() = found->second.versions[index];
    response.set_page_size_bytes(4096);
    writer->Write(response);
    response.Clear();
    const bool newest = index + 1 == found->second.versions.size();
    if (!newest)
      AddRun(0, 1, v1::PAGE_PLACE_PAGES, request->name() + ".h5m/pages-000001", 68, response);
    const uint64_t first = newest ? 0 : 1;
    const uint64_t end = (found->second.contents[index].size() + 4095) / 4096;
    writer->Write(response);  // An answer may be cut anywhere.
    response.Clear();
    if (first < end) {
      AddRun(first, end - first, v1::PAGE_PLACE_HEAD, request->name(), first * 4096, response);
    }
    writer->Write(response);
    return grpc::Status::OK;
  }

  grpc::Status ReadVersion(grpc::ServerContext*, const v1::ReadVersionRequest* request,
                           grpc::ServerWriter<v1::ReadVersionResponse>* writer) override {
    absl::MutexLock lock(&state_.mutex);
    const auto found = state_.files.find(request->name());
    if (found == state_.files.end()) return NoFile(request->name());
    size_t index = 0;
    if (!Find(found->second, request->version(), &index)) return NoVersion(request->version());
    v1::ReadVersionResponse response;
    *response.mutable_version() = found->second.versions[index];
    writer->Write(response);
    response.Clear();
    const std::string& content = found->second.contents[index];
    for (size_t offset = request->offset(); offset < content.size(); offset += kPieceBytes) {
      const std::string piece = content.substr(offset, kPieceBytes);
      if (piece.find_first_not_of('\0') == std::string::npos) continue;  // A hole.
      response.set_offset(offset);
      response.set_data(piece);
      response.set_data_crc32c(Crc32c(piece) ^ (state_.damage_reads ? 1 : 0));
      writer->Write(response);
    }
    return grpc::Status::OK;
  }

  grpc::Status RollbackVersion(grpc::ServerContext*, const v1::RollbackVersionRequest* request,
                               v1::RollbackVersionResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    const auto found = state_.files.find(request->name());
    if (found == state_.files.end()) return NoFile(request->name());
    FakeFile& file = found->second;
    size_t index = 0;
    if (!Find(file, request->version(), &index)) return NoVersion(request->version());
    if (file.leased && !request->revoke_lease()) {
      return {StatusCode::FAILED_PRECONDITION, StrCat(file.lease.program(), " holds the lease")};
    }
    file.leased = false;
    *response->mutable_version() =
        Append(state_, file, file.contents[index], request->comment(), request->writer());
    return grpc::Status::OK;
  }

 private:
  static bool Find(const FakeFile& file, int64_t version, size_t* index) {
    const auto count = static_cast<int64_t>(file.versions.size());
    if (version < 0 || version > count) return false;
    *index = static_cast<size_t>((version == 0 ? count : version) - 1);
    return true;
  }
  static v1::Version* Tagged(FakeFile& file, const std::string& tag) {
    for (v1::Version& version : file.versions) {
      if (std::count(version.tags().begin(), version.tags().end(), tag) > 0) return &version;
    }
    return nullptr;
  }
  static void AddRun(uint64_t page, uint64_t count, v1::PagePlace place, const std::string& file,
                     uint64_t offset, v1::MapVersionResponse& response) {
    v1::PageRun& run = *response.add_runs();
    run.set_page(page);
    run.set_page_count(count);
    run.set_place(place);
    run.set_file(file);
    run.set_offset(offset);
  }
  static grpc::Status NoVersion(int64_t version) {
    return {StatusCode::NOT_FOUND, StrCat("no version ", version)};
  }

  State& state_;
};

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
    if (response.opened().relation() != v1::RELATION_NEW) {
      return {StatusCode::FAILED_PRECONDITION, "not new"};
    }
    std::string content;
    while (stream->Read(&request)) {
      if (request.has_writes()) {
        const grpc::Status status = TakeWrites(request.writes(), content);
        if (!status.ok()) return status;
      } else if (request.has_barrier()) {
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
    if (open.intent() != v1::INTENT_REPLACE) opened.set_relation(v1::RELATION_DIVERGED);
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
    if (!file.versions.empty()) ++file.generation;
    file.file_id = opened.file_id();
    file.origin = open.origin();
    return Append(state_, file, content, comment, open.writer());
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

class FakeInfo final : public v1::Server::Service {
 public:
  grpc::Status GetServer(grpc::ServerContext*, const v1::GetServerRequest*,
                         v1::GetServerResponse* response) override {
    response->set_server_version("0.0-fake");
    response->mutable_protocol()->set_oldest(1);
    response->mutable_protocol()->set_newest(1);
    response->set_root("/fake");
    response->set_free_bytes(int64_t{1} << 40);
    for (const char* right : {"read", "write", "admin"}) response->add_rights(right);
    return grpc::Status::OK;
  }
};

}  // namespace

FakeServer::FakeServer() {
  services_.push_back(std::make_unique<FakeFiles>(state_));
  services_.push_back(std::make_unique<FakeVersions>(state_));
  services_.push_back(std::make_unique<FakeMirror>(state_));
  services_.push_back(std::make_unique<FakeInfo>());
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  for (const auto& service : services_) builder.RegisterService(service.get());
  server_ = builder.BuildAndStart();
  address_ = StrCat("127.0.0.1:", port);
}

FakeServer::~FakeServer() { server_->Shutdown(absl::ToChronoTime(absl::Now())); }

v1::Version FakeServer::AddVersion(const std::string& name, const std::string& content,
                                   const std::string& comment) {
  absl::MutexLock lock(&state_.mutex);
  FakeFile& file = state_.files[name];
  if (file.file_id.empty()) file.file_id = ToByteString(RandomBytes16());
  file.origin.set_host("elsewhere");
  file.origin.set_path("/data/run.h5");
  v1::Writer writer;
  writer.set_claimed_user("ada");
  writer.set_host("node7");
  writer.set_program("python3");
  return Append(state_, file, content, comment, writer);
}

void FakeServer::SetLease(const std::string& name, const std::string& program) {
  absl::MutexLock lock(&state_.mutex);
  FakeFile& file = state_.files[name];
  file.leased = !program.empty();
  file.lease.set_program(program);
  file.lease.set_host("node7");
}

void FakeServer::SetTime(absl::Time time) {
  absl::MutexLock lock(&state_.mutex);
  state_.time = time;
}

void FakeServer::DamageReads() {
  absl::MutexLock lock(&state_.mutex);
  state_.damage_reads = true;
}

FakeFile FakeServer::file(const std::string& name) const {
  absl::MutexLock lock(&state_.mutex);
  return state_.files.at(name);
}

bool FakeServer::has(const std::string& name) const {
  absl::MutexLock lock(&state_.mutex);
  return state_.files.contains(name);
}

}  // namespace h5mirror::tools
