#include "cli/testing/fake_server.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "base/block_digest.h"
#include "base/crc32c.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/strings.h"
#include "cli/output/text.h"
#include "cli/testing/fake_details.h"
#include "cli/testing/fake_forks.h"
#include "cli/testing/fake_mirror.h"
#include "grpcpp/server_builder.h"

namespace h5mirror::tools {
namespace {

using State = FakeServer::State;
using grpc::StatusCode;

constexpr size_t kPieceBytes = 64 << 10;

grpc::Status NoFile(const std::string& name) {
  return {StatusCode::NOT_FOUND, StrCat("no file ", name)};
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
  status.set_history_notice(file.history_notice);
  status.mutable_mirror()->set_state(file.mirror_state);
  if (file.check.version() > 0) *status.mutable_last_check() = file.check;
  if (file.forked_from.version() > 0) *status.mutable_forked_from() = file.forked_from;
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
      if (request->details()) AddDetails(it->second.versions.back(), file);
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
    if (grpc::Status status = RunHook(state_, "DigestFile"); !status.ok()) return status;
    absl::MutexLock lock(&state_.mutex);
    const auto found = state_.files.find(request->name());
    if (found == state_.files.end()) return NoFile(request->name());
    const std::vector<v1::Version>& versions = found->second.versions;
    const size_t index =
        request->version() == 0 ? versions.size() - 1 : static_cast<size_t>(request->version()) - 1;
    if (index >= versions.size()) return {StatusCode::NOT_FOUND, "no such version"};
    v1::DigestFileResponse response;
    *response.mutable_version() = versions[index];
    const std::string& content = found->second.contents[index];
    if (request->ranges().empty()) {
      AddDigests(content, 0, content.size(), request->block_size_bytes(), response);
    }
    for (const v1::ByteRange& range : request->ranges()) {
      AddDigests(content, range.offset(), range.length_bytes(), request->block_size_bytes(),
                 response);
    }
    writer->Write(response);
    return grpc::Status::OK;
  }

  grpc::Status RecordCheck(grpc::ServerContext*, const v1::RecordCheckRequest* request,
                           v1::RecordCheckResponse* response) override {
    if (grpc::Status status = RunHook(state_, "RecordCheck"); !status.ok()) return status;
    absl::MutexLock lock(&state_.mutex);
    const auto found = state_.files.find(request->name());
    if (found == state_.files.end()) return NoFile(request->name());
    v1::MirrorCheck& check = found->second.check;
    check.set_version(request->version());
    check.set_differing_bytes(request->differing_bytes());
    *check.mutable_check_time() = ToProto(absl::Now());
    *response->mutable_check() = check;
    return grpc::Status::OK;
  }

  grpc::Status AdoptFile(grpc::ServerContext*, const v1::AdoptFileRequest* request,
                         v1::AdoptFileResponse* response) override {
    if (grpc::Status status = RunHook(state_, "AdoptFile"); !status.ok()) return status;
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
  static void AddDigests(std::string_view content, uint64_t begin, uint64_t length,
                         uint64_t block_size, v1::DigestFileResponse& response) {
    for (uint64_t offset = begin; offset < begin + length; offset += block_size) {
      const BlockDigest digest =
          DigestOf(content.substr(offset, std::min(block_size, begin + length - offset)));
      response.mutable_digests()->append(digest.data(), digest.size());
    }
  }

  State& state_;
};

class FakeVersions final : public FakeForks {
 public:
  explicit FakeVersions(State& state) : FakeForks(state), state_(state) {}

  // Page tokens are the number of versions given so far.
  grpc::Status ListVersions(grpc::ServerContext*, const v1::ListVersionsRequest* request,
                            v1::ListVersionsResponse* response) override {
    if (grpc::Status status = RunHook(state_, "ListVersions"); !status.ok()) return status;
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
    if (grpc::Status status = RunHook(state_, "GetVersion"); !status.ok()) return status;
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

  // Each version has saved as many bytes as its number; a policy keeps its keep_last, and the dry
  // run and the prune itself say so.
  grpc::Status GetHistoryStats(grpc::ServerContext*, const v1::GetHistoryStatsRequest* request,
                               v1::GetHistoryStatsResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    const auto found = state_.files.find(request->name());
    if (found == state_.files.end()) return NoFile(request->name());
    const std::vector<v1::Version>& versions = found->second.versions;
    size_t given = 0;
    if (!request->page_token().empty() && !absl::SimpleAtoi(request->page_token(), &given)) {
      return {StatusCode::INVALID_ARGUMENT, "bad page token"};
    }
    if (given == 0) {
      const auto count = static_cast<int64_t>(versions.size());
      response->set_version_count(count);
      response->set_head_bytes(1 << 20);
      response->set_pages_bytes(4096 * count);
      response->set_garbage_bytes(512);
      if (request->has_policy()) {
        response->set_prune_versions(count - request->policy().keep_last());
        response->set_prune_bytes(4096 * response->prune_versions());
      }
    }
    for (; given < versions.size() && response->versions_size() < request->page_size(); ++given) {
      v1::VersionStats& stats = *response->add_versions();
      *stats.mutable_version() = versions[versions.size() - 1 - given];
      stats.set_saved_bytes(stats.version().version());
    }
    if (given < versions.size()) response->set_next_page_token(StrCat(given));
    return grpc::Status::OK;
  }

  grpc::Status PruneVersions(grpc::ServerContext*, const v1::PruneVersionsRequest* request,
                             grpc::ServerWriter<v1::PruneVersionsResponse>* writer) override {
    absl::MutexLock lock(&state_.mutex);
    const auto found = state_.files.find(request->name());
    if (found == state_.files.end()) return NoFile(request->name());
    state_.policy = request->policy();
    const std::vector<v1::Version>& versions = found->second.versions;
    v1::PruneVersionsResponse response;
    for (size_t i = 0; i < versions.size(); ++i) {
      v1::PlannedVersion& planned = *response.add_plan();
      *planned.mutable_version() = versions[versions.size() - 1 - i];
      if (static_cast<int64_t>(i) < request->policy().keep_last()) planned.add_kept_by("last");
    }
    const auto count = static_cast<int64_t>(versions.size()) - request->policy().keep_last();
    response.set_versions_to_drop(count);
    response.set_freed_bytes(4096 * count);
    writer->Write(response);
    if (request->dry_run()) return grpc::Status::OK;
    response.clear_plan();
    response.set_versions_dropped(count);
    response.set_freed_bytes(4000 * count);
    writer->Write(response);
    return grpc::Status::OK;
  }

  grpc::Status VerifyHistory(grpc::ServerContext*, const v1::VerifyHistoryRequest* request,
                             grpc::ServerWriter<v1::VerifyHistoryResponse>* writer) override {
    absl::MutexLock lock(&state_.mutex);
    if (state_.files.count(request->name()) == 0) return NoFile(request->name());
    state_.subset = {request->subset(), request->subset_count()};
    v1::VerifyHistoryResponse response;
    response.set_complete(true);
    writer->Write(response);
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
    if (!request->ranges().empty()) return SendRanges(content, *request, *writer);
    const uint64_t from = std::min<uint64_t>(request->offset(), content.size());
    const uint64_t left = content.size() - from;
    const uint64_t end =
        from + (request->length_bytes() == 0 ? left : std::min(request->length_bytes(), left));
    for (uint64_t offset = from; offset < end; offset += kPieceBytes) {
      const std::string piece = content.substr(offset, std::min(kPieceBytes, end - offset));
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
    if (grpc::Status status = RunHook(state_, "RollbackVersion"); !status.ok()) return status;
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
        AppendVersion(state_, file, file.contents[index], request->comment(), request->writer());
    return grpc::Status::OK;
  }

  // A writer is there where the test says so: each call is its next cut, of the content that the
  // test has it write.
  grpc::Status CommitVersion(grpc::ServerContext*, const v1::CommitVersionRequest* request,
                             v1::CommitVersionResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    const auto found = state_.files.find(request->name());
    if (found == state_.files.end()) return NoFile(request->name());
    FakeFile& file = found->second;
    if (file.leased && !state_.next_cut) return {StatusCode::DEADLINE_EXCEEDED, "no cut in time"};
    if (file.leased) {
      AppendVersion(state_, file, state_.next_cut(), request->comment(), file.lease);
      *file.versions.back().mutable_client_time() = ToProto(absl::Now());
    } else {
      response->set_unchanged(true);
    }
    *response->mutable_version() = file.versions.back();
    return grpc::Status::OK;
  }

 private:
  static grpc::Status SendRanges(const std::string& content, const v1::ReadVersionRequest& request,
                                 grpc::ServerWriter<v1::ReadVersionResponse>& writer) {
    for (const v1::ByteRange& range : request.ranges()) {
      v1::ReadVersionResponse response;
      response.set_data(content.substr(range.offset(), range.length_bytes()));
      response.set_data_crc32c(Crc32c(response.data()));
      *response.add_pieces() = range;
      writer.Write(response);
    }
    return grpc::Status::OK;
  }
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

class FakeInfo final : public v1::Server::Service {
 public:
  explicit FakeInfo(State& state) : state_(state) {}

  grpc::Status GetServer(grpc::ServerContext*, const v1::GetServerRequest* request,
                         v1::GetServerResponse* response) override {
    response->set_server_version("0.0-fake");
    response->mutable_protocol()->set_oldest(1);
    response->mutable_protocol()->set_newest(1);
    response->set_root("/fake");
    response->set_free_bytes(int64_t{1} << 40);
    absl::MutexLock lock(&state_.mutex);
    const auto own = state_.rights_to.find(request->name());
    for (const std::string& right : own == state_.rights_to.end() ? state_.rights : own->second) {
      response->add_rights(right);
    }
    return grpc::Status::OK;
  }

 private:
  State& state_;
};

}  // namespace

grpc::Status RunHook(FakeServer::State& state, const std::string& call) {
  std::function<grpc::Status()> hook;
  {
    absl::MutexLock lock(&state.mutex);
    const auto found = state.hooks.find(call);
    if (found == state.hooks.end()) return grpc::Status::OK;
    hook = found->second;
  }
  return hook();
}

v1::Version AppendVersion(FakeServer::State& state, FakeFile& file, const std::string& content,
                          const std::string& comment, const v1::Writer& writer) {
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

FakeServer::FakeServer() {
  services_.push_back(std::make_unique<FakeFiles>(state_));
  services_.push_back(std::make_unique<FakeVersions>(state_));
  services_.push_back(NewFakeMirror(state_));
  services_.push_back(std::make_unique<FakeInfo>(state_));
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
  return AppendVersion(state_, file, content, comment, writer);
}

void FakeServer::SetLease(const std::string& name, const std::string& program) {
  absl::MutexLock lock(&state_.mutex);
  FakeFile& file = state_.files[name];
  file.leased = !program.empty();
  file.lease.set_program(program);
  file.lease.set_host("node7");
}

void FakeServer::SetNextCut(std::function<std::string()> next_cut) {
  absl::MutexLock lock(&state_.mutex);
  state_.next_cut = std::move(next_cut);
}

void FakeServer::On(const std::string& call, std::function<grpc::Status()> hook) {
  absl::MutexLock lock(&state_.mutex);
  state_.hooks[call] = std::move(hook);
}

void FakeServer::SetOrigin(const std::string& name, const v1::Origin& origin) {
  absl::MutexLock lock(&state_.mutex);
  state_.files[name].origin = origin;
}

void FakeServer::SetMirrorState(const std::string& name, v1::MirrorState mirror_state) {
  absl::MutexLock lock(&state_.mutex);
  state_.files.at(name).mirror_state = mirror_state;
}

void FakeServer::SetRights(const std::vector<std::string>& rights, const std::string& name) {
  absl::MutexLock lock(&state_.mutex);
  (name.empty() ? state_.rights : state_.rights_to[name]) = rights;
}

void FakeServer::SetCutNumber(int64_t cut) {
  absl::MutexLock lock(&state_.mutex);
  state_.last_cut = cut - 1;
}

void FakeServer::SetHistoryNotice(const std::string& name, const std::string& notice) {
  absl::MutexLock lock(&state_.mutex);
  state_.files[name].history_notice = notice;
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

v1::RetentionPolicy FakeServer::last_policy() const {
  absl::MutexLock lock(&state_.mutex);
  return state_.policy;
}

std::pair<int64_t, int64_t> FakeServer::last_subset() const {
  absl::MutexLock lock(&state_.mutex);
  return state_.subset;
}

bool FakeServer::has(const std::string& name) const {
  absl::MutexLock lock(&state_.mutex);
  return state_.files.contains(name);
}

}  // namespace h5mirror::tools
