#include "cli/testing/fake_forks.h"

#include <optional>

#include "base/hex.h"
#include "base/random.h"
#include "base/strings.h"

namespace h5mirror::tools {
namespace {

using grpc::StatusCode;

// The place of a version in `file`; nullopt: there is none.
std::optional<size_t> IndexOf(const FakeFile& file, int64_t version) {
  const auto count = static_cast<int64_t>(file.versions.size());
  if (version < 0 || version > count || count == 0) return std::nullopt;
  return static_cast<size_t>((version == 0 ? count : version) - 1);
}

v1::SourceVersion SourceOf(v1::SourceKind kind, const std::string& name, const FakeFile& file,
                           const v1::Version& version, const v1::Writer& writer) {
  v1::SourceVersion source;
  source.set_kind(kind);
  source.set_file_id(file.file_id);
  source.set_name(name);
  source.set_version(version.version());
  source.set_cut(version.cut());
  *source.mutable_server_time() = version.server_time();
  source.set_claimed_user(writer.claimed_user());
  return source;
}

}  // namespace

grpc::Status FakeForks::ForkVersion(grpc::ServerContext*, const v1::ForkVersionRequest* request,
                                    v1::ForkVersionResponse* response) {
  if (grpc::Status status = RunHook(forks_state_, "ForkVersion"); !status.ok()) return status;
  absl::MutexLock lock(&forks_state_.mutex);
  const auto found = forks_state_.files.find(request->name());
  if (found == forks_state_.files.end()) return {StatusCode::NOT_FOUND, "no such file"};
  const auto index = IndexOf(found->second, request->version());
  if (!index) return {StatusCode::NOT_FOUND, "no such version"};
  if (forks_state_.files.contains(request->new_name())) {
    return {StatusCode::ALREADY_EXISTS, StrCat(request->new_name(), " exists")};
  }
  const FakeFile from = found->second;  // The map may move.
  const v1::Version& version = from.versions[*index];
  FakeFile& fork = forks_state_.files[request->new_name()];
  fork.file_id = ToByteString(RandomBytes16());
  fork.forked_from =
      SourceOf(v1::SOURCE_KIND_FORK, request->name(), from, version, request->writer());
  const std::string comment = request->comment().empty()
                                  ? StrCat("fork of ", request->name(), "@", version.version())
                                  : request->comment();
  AppendVersion(forks_state_, fork, from.contents[*index], comment, request->writer());
  *fork.versions.back().mutable_source() = fork.forked_from;
  *response->mutable_version() = fork.versions.back();
  return grpc::Status::OK;
}

grpc::Status FakeForks::PromoteVersion(grpc::ServerContext*,
                                       const v1::PromoteVersionRequest* request,
                                       v1::PromoteVersionResponse* response) {
  if (grpc::Status status = RunHook(forks_state_, "PromoteVersion"); !status.ok()) return status;
  absl::MutexLock lock(&forks_state_.mutex);
  const auto fork = forks_state_.files.find(request->name());
  const auto into = forks_state_.files.find(request->into_name());
  if (fork == forks_state_.files.end() || into == forks_state_.files.end()) {
    return {StatusCode::NOT_FOUND, "no such file"};
  }
  const v1::SourceVersion& forked = fork->second.forked_from;
  FakeFile& file = into->second;
  if (forked.file_id() != file.file_id) {
    return {StatusCode::FAILED_PRECONDITION, "is no fork of it"};
  }
  if (file.versions.back().version() != forked.version()) {
    return {StatusCode::ABORTED, StrCat("the newest is version ", file.versions.back().version())};
  }
  const auto index = IndexOf(fork->second, request->version());
  if (!index) return {StatusCode::NOT_FOUND, "no such version"};
  const v1::Version version = fork->second.versions[*index];
  const std::string content = fork->second.contents[*index];
  response->set_promoted_version(version.version());
  response->set_unchanged(version.version() == 1);
  if (!response->unchanged()) {
    response->set_differing_bytes(static_cast<int64_t>(content.size()));
  }
  if (!response->unchanged() && !request->dry_run()) {
    AppendVersion(forks_state_, file, content, request->comment(), request->writer());
    *file.versions.back().mutable_source() = SourceOf(v1::SOURCE_KIND_PROMOTION, request->name(),
                                                      fork->second, version, request->writer());
  }
  *response->mutable_version() = file.versions.back();
  return grpc::Status::OK;
}

}  // namespace h5mirror::tools
