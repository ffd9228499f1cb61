#include "client_vfd/plugin/open/remote_open.h"

#include <string>
#include <utility>

#include "client_vfd/plugin/config/real_path.h"
#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/host/this_process.h"
#include "client_vfd/plugin/modes/mirrored_file.h"
#include "client_vfd/plugin/modes/reader_mode.h"
#include "client_vfd/plugin/modes/remote_file.h"
#include "client_vfd/plugin/modes/remote_mode.h"
#include "client_vfd/plugin/open/metadata_layer.h"

namespace h5mirror::vfd {
namespace {

RootPtr RootOfWriter(const Config& config, const ReaderTarget& target) {
  auto root = std::make_shared<ReaderRoot>();
  root->config_text = target.config_text;
  root->real_path = target.real_path;
  root->name = target.name;
  root->server = config.Servers().front();
  root->is_writer = true;
  return root;
}

bool Makes(const OpenRequest& request) { return request.truncates || request.makes_new; }

// MirroredFile, and the session, above and behind `under`.
std::unique_ptr<MirroredFile> MakeMirror(const OpenCall& call, const ReaderTarget& target,
                                         RemoteFile& under) {
  const bool makes = Makes(call.request);
  MirrorTarget mirrored;
  mirrored.real_path = target.real_path;
  mirrored.name = target.name;
  mirrored.intent = !makes                   ? H5M_REMOTE_CHANGE
                    : call.request.truncates ? H5M_REMOTE_REPLACE
                                             : H5M_REMOTE_NEW;
  mirrored.base_cut = under.base_cut();
  mirrored.mode_bits = makes ? NewFileMode() : 0644;
  auto mirror = std::make_unique<MirroredFile>(call.host, call.config, std::move(mirrored), under);
  if (call.request.writes_swmr) mirror->OpenedForSwmr();
  return mirror;
}

// Asks the server for the file now. False: the reason is on the error stack.
bool BeginNow(const OpenCall& call, const ReaderTarget& target, MirroredFile& mirror) {
  std::string error;
  const int failed = mirror.BeginNow(&error);
  if (failed != 0) PushOpenErrno(call.host, target.given_name, failed, error);
  return failed == 0;
}

std::unique_ptr<DriverFile> OpenForWriting(const OpenCall& call, const ReaderTarget& target,
                                           FileIdentity identity) {
  const bool makes = Makes(call.request);
  std::unique_ptr<ReaderFile> cut;
  if (!makes) {
    cut = ReaderFile::Open(call.host, *call.config, target);
    if (cut == nullptr) return nullptr;
  }
  auto under = std::make_unique<RemoteFile>(call.host, call.config, target, std::move(cut));
  std::unique_ptr<MirroredFile> mirror = MakeMirror(call, target, *under);
  if (makes && !BeginNow(call, target, *mirror)) return nullptr;
  auto file = std::make_unique<RemoteMode>(call.host, std::move(under), std::move(identity),
                                           std::move(mirror), RootOfWriter(*call.config, target));
  if (BuffersMetadata(call.request, *call.config, RealPathOfMissing(call.request.name))) {
    AddMetadataBuffer(call, HasMirror::kYes, *file);
  }
  return file;
}

}  // namespace

std::unique_ptr<DriverFile> OpenRemote(const OpenCall& call, ReaderTarget target) {
  const std::string name = call.config->Servers().front() + "\n" + target.name;
  const bool writes = call.request.writes;
  if (target.root != nullptr && (writes || target.root->is_writer)) {
    target.parent = std::exchange(target.root, nullptr);
  }
  if (IsWrittenRemotely(call.host, name)) {
    auto under = std::make_unique<RemoteFile>(call.host, call.config, target, nullptr);
    return std::make_unique<RemoteProbe>(call.host, std::move(under), RemoteIdentity(name));
  }
  if (writes) return OpenForWriting(call, target, RemoteIdentity(name));
  auto file = ReaderFile::Open(call.host, *call.config, target);
  if (file == nullptr) return nullptr;
  if (call.request.reads_swmr) file->AllowRefresh(call.config, std::move(target));
  FileIdentity identity = RemoteIdentity(name, file->key());
  return std::make_unique<ReaderMode>(call.host, std::move(file), std::move(identity));
}

}  // namespace h5mirror::vfd
