#include "client_vfd/plugin/open/open_file.h"

#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/config/name_rules.h"
#include "client_vfd/plugin/config/real_path.h"
#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/host/held_stderr.h"
#include "client_vfd/plugin/host/refused_opens.h"
#include "client_vfd/plugin/host/reporter.h"
#include "client_vfd/plugin/host/this_process.h"
#include "client_vfd/plugin/modes/embedded_file.h"
#include "client_vfd/plugin/modes/embedded_mode.h"
#include "client_vfd/plugin/modes/left_out_bytes.h"
#include "client_vfd/plugin/modes/local_file.h"
#include "client_vfd/plugin/modes/local_mode.h"
#include "client_vfd/plugin/modes/mirrored_file.h"
#include "client_vfd/plugin/modes/reader_mode.h"
#include "client_vfd/plugin/open/local_open.h"
#include "client_vfd/plugin/open/metadata_layer.h"
#include "client_vfd/plugin/open/open_facts.h"
#include "client_vfd/plugin/open/parallel_open.h"
#include "client_vfd/plugin/open/plan_open.h"
#include "client_vfd/plugin/open/remote_open.h"

namespace h5mirror::vfd {
namespace {

// The driver's config string; empty where there is none.
std::string ConfigText(const HostLibrary& host, hid_t fapl) {
  if (!host.api.usable) {
    const char* text = std::getenv("HDF5_DRIVER_CONFIG");
    return text != nullptr ? text : "";
  }
  QuietErrors quiet(host.api);
  std::array<char, 1024> buffer{};
  const ssize_t length = host.api.p_get_driver_config_str(fapl, buffer.data(), buffer.size());
  if (length <= 0) return "";
  if (static_cast<size_t>(length) < buffer.size()) return buffer.data();
  std::string text(static_cast<size_t>(length) + 1, '\0');
  host.api.p_get_driver_config_str(fapl, text.data(), text.size());
  return text.c_str();
}

H5mStat ToStat(const struct stat& status) {
  const auto nanoseconds = [](const timespec& time) {
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return H5mStat{status.st_ino, status.st_size, nanoseconds(status.st_mtim),
                 nanoseconds(status.st_ctim)};
}

void PushRefusal(const OpenCall& call, const Refusal& refusal) {
  if (refusal.form == Refusal::Form::kLock) return PushOpenError(call.host, refusal.text);
  PushOpenErrno(call.host, call.request.name, refusal.error_number, refusal.text);
}

// A local file that is open for writing. `at_open`: what the server is told that it was.
struct LocalLook {
  OpenedFacts facts;
  struct stat at_open {};
};

// Looks at the file again under its lock: another program may have closed it between the first look
// and the lock. A file that this open truncated is described as it was `before`.
LocalLook LookAt(const OpenCall& call, const LocalOpened& opened, const struct stat* before) {
  LocalLook look;
  const bool truncated = call.request.truncates;
  look.at_open = truncated && before != nullptr ? *before : opened.status;
  const bool has_status = truncated || fstat(opened.fd, &look.at_open) == 0;
  look.facts.size_bytes = static_cast<uint64_t>(look.at_open.st_size);
  look.facts.was_open_here = IsOpenFile(opened.key);
  const char* const name = call.request.name.c_str();
  look.facts.path = RealPathOfMissing(name);
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(name, nullptr), std::free);
  if (real && opened.fd >= 0 && has_status) look.facts.real_path = real.get();
  return look;
}

std::unique_ptr<MirroredFile> MakeMirror(const OpenCall& call, const LocalOpened& opened,
                                         const LocalLook& look, const Layers& layers) {
  MirrorTarget target;
  target.real_path = *look.facts.real_path;
  target.name = *layers.mirror_name;
  target.intent = layers.is_made ? H5M_CREATED : H5M_EXISTING;
  target.stat_at_open = ToStat(look.at_open);
  target.mode_bits = opened.status.st_mode & 0777;
  target.is_locked = WantedLocking(call.host, call.fapl) == Locking::kYes;
  auto mirror = std::make_unique<MirroredFile>(call.host, call.config, std::move(target),
                                               *opened.under, opened.fd);
  if (call.request.writes_swmr) mirror->OpenedForSwmr();
  return mirror;
}

std::unique_ptr<WritableMode> MakeLocalMode(const OpenCall& call, LocalOpened& opened,
                                            const LocalLook& look, const Layers& layers) {
  if (!layers.mirror_name) {
    return std::make_unique<LocalMode>(call.host, std::move(opened.under), opened.key);
  }
  auto mirror = MakeMirror(call, opened, look, layers);
  return std::make_unique<MirroredMode>(call.host, std::move(opened.under), opened.key,
                                        std::move(mirror));
}

// `fd` as in FirstRead::File.
void ExpectFirstRead(const OpenCall& call, int fd, WritableMode& file) {
  file.ExpectFirstRead({call.request.name, call.config->log, fd});
}

// A file may be left out by root=, include= or exclude=, and its user knows. Nobody expects that
// its path cannot be looked at, as one of more than 4,095 bytes.
void TellUnknown(const OpenCall& call, const LocalLook& look, const std::string& why) {
  const bool mirrors = call.config->mode == Mode::kMirror && !call.config->IsEmbedded();
  if (!mirrors || look.facts.real_path) return;
  Say(call.config->log, Audience::kUserToo, look.facts.path + " is NOT mirrored: " + why);
}

void AddLeftOut(const OpenCall& call, const LocalLook& look, const Layers& layers,
                WritableMode& file) {
  TellUnknown(call, look, *layers.why_left_out);
  const auto changes = layers.buffers_metadata ? LeftOutBytes::Changes::kWrites
                                               : LeftOutBytes::Changes::kWritesAndTruncates;
  auto left_out = std::make_unique<LeftOutBytes>(
      call.host,
      LeftOutBytes::File{look.facts.path, call.config->log, layers.why_left_out.value_or("")},
      file.under(), file.bytes(), changes);
  if (call.request.truncates) left_out->Tell();  // It is changed already.
  file.AddLayer(std::move(left_out));
}

// A local file that may be written: with the layers that the plan lays between it and HDF5.
std::unique_ptr<DriverFile> MakeWritable(const OpenCall& call, LocalOpened opened,
                                         FileFacts& facts) {
  const LocalLook look = LookAt(call, opened, facts.before());
  const Layers layers = PlanLayers(call.request, *call.config, look.facts, HostName());
  std::unique_ptr<WritableMode> file = MakeLocalMode(call, opened, look, layers);
  if (layers.buffers_metadata) {
    AddMetadataBuffer(call, layers.mirror_name ? HasMirror::kYes : HasMirror::kNo, *file);
  }
  if (layers.looks_for_swmr_writer) ExpectFirstRead(call, opened.fd, *file);
  if (layers.why_left_out) AddLeftOut(call, look, layers, *file);
  if (layers.marks_swmr) file->OpenedForSwmr();
  return file;
}

std::unique_ptr<DriverFile> OpenHere(const OpenCall& call, FileFacts& facts) {
  LocalOpened opened = OpenLocked(call);
  if (opened.under == nullptr) return nullptr;
  if (call.request.writes) return MakeWritable(call, std::move(opened), facts);
  return std::make_unique<LocalMode>(call.host, std::move(opened.under), opened.key);
}

std::unique_ptr<DriverFile> OpenReading(const OpenCall& call, FileFacts& facts) {
  auto file = ReaderFile::Open(call.host, *call.config, *facts.server_file());
  if (file == nullptr) return nullptr;
  if (call.request.reads_swmr) file->AllowRefresh(call.config, *facts.server_file());
  FileIdentity identity = ReaderIdentity(*file);
  return std::make_unique<ReaderMode>(call.host, std::move(file), std::move(identity));
}

EmbeddedTarget TargetOf(const OpenCall& call) {
  EmbeddedTarget target;
  target.given_name = call.request.name;
  target.real_path = RealPathOfMissing(call.request.name);
  target.locking = WantedLocking(call.host, call.fapl);
  return target;
}

std::unique_ptr<DriverFile> WithHistory(const OpenCall& call, FileFacts& facts,
                                        std::unique_ptr<EmbeddedFile> under) {
  const FileKey key = facts.key();
  const bool looks = LooksForSwmrWriter(call.request, IsOpenFile(key));
  FileIdentity identity = EmbeddedIdentity(key, *under);
  auto file = std::make_unique<EmbeddedMode>(call.host, std::move(under), std::move(identity), key);
  if (looks) ExpectFirstRead(call, FirstRead::kAskedBefore, *file);
  return file;
}

std::unique_ptr<DriverFile> OpenWithHistory(const OpenCall& call, FileFacts& facts,
                                            const OpenPlan& plan) {
  EmbeddedTarget target = TargetOf(call);
  target.intent = plan.makes ? H5M_CREATED : H5M_EXISTING;
  const struct stat* const before = facts.before();
  target.mode_bits = before != nullptr ? before->st_mode & 0777 : NewFileMode();
  if (plan.has_lock) target.locking = Locking::kNo;
  auto under = EmbeddedFile::Open(call.host, call.config, target);
  return under != nullptr ? WithHistory(call, facts, std::move(under)) : nullptr;
}

std::unique_ptr<DriverFile> OpenAsPlanned(const OpenCall& call, FileFacts& facts, Place place) {
  const OpenPlan plan = PlanOpen(place, call.request, *call.config, facts);
  if (plan.refusal) {
    PushRefusal(call, *plan.refusal);
    return nullptr;
  }
  switch (plan.place) {
    case Place::kReader:
      return OpenReading(call, facts);
    case Place::kRemote:
      return OpenRemote(call, *facts.server_file());
    case Place::kEmbedded:
      return OpenWithHistory(call, facts, plan);
    case Place::kLocal:
      break;
  }
  return OpenHere(call, facts);
}

// Called before the local file is looked at. A file that this process has open needs no such
// repair.
void FinishEditOf(const OpenCall& call) {
  struct stat there {};
  if (stat(call.request.name.c_str(), &there) != 0) return;
  const bool ours = IsOpenFile({&call.host, there.st_dev, there.st_ino});
  if (!ours) FinishEdit(*call.config, TargetOf(call));
}

// server=embedded. For reading, the head is a plain file once it is repaired.
std::unique_ptr<DriverFile> OpenEmbeddedOrHead(const OpenCall& call, FileFacts& facts) {
  facts.before();  // Before its head is put in order.
  const EmbeddedTarget target = TargetOf(call);
  auto shared = EmbeddedFile::Share(call.host, call.config, target);
  if (shared != nullptr) return WithHistory(call, facts, std::move(shared));
  if (call.request.writes) return OpenAsPlanned(call, facts, Place::kEmbedded);
  HealEmbeddedHead(*call.config, target);
  return OpenAsPlanned(call, facts, Place::kLocal);
}

std::unique_ptr<DriverFile> OpenAtItsPlace(const OpenCall& call) {
  FileFacts facts(call);
  const Place place = PlaceOf(*call.config, facts);
  if (place == Place::kLocal && call.config->under == UnderDriver::kMpio) {
    return OpenParallel(call, facts, FinishEditOf);
  }
  const bool is_on_server = place == Place::kReader || place == Place::kRemote;
  if (!is_on_server) FinishEditOf(call);
  if (place == Place::kEmbedded) return OpenEmbeddedOrHead(call, facts);
  return OpenAsPlanned(call, facts, place);
}

std::unique_ptr<DriverFile> OpenAsAsked(HostLibrary& host, const char* name, unsigned flags,
                                        hid_t fapl, haddr_t maxaddr) {
  OpenCall call{host, RequestOf(name, flags), flags, fapl, maxaddr, RootOfLinkedOpen(host, fapl)};
  call.config_text = call.root != nullptr ? call.root->config_text : ConfigText(host, fapl);
  if (const Problem problem = CachedConfig(call.config_text, &call.config)) {
    PushOpenError(host, "h5mirror configuration: " + *problem);
    return nullptr;
  }
  return OpenAtItsPlace(call);
}

// Pushes the reason why an existing file cannot be opened for writing. False: it can, or there is
// no file.
bool PushWhyRefused(HostLibrary& host, const char* name, hid_t fapl, haddr_t maxaddr) {
  struct stat there {};
  if (stat(name, &there) != 0) return false;
  const std::unique_ptr<DriverFile> file = OpenAsAsked(host, name, H5F_ACC_RDWR, fapl, maxaddr);
  if (file == nullptr) return true;
  const bool is_refused = file->BeforeFirstRead() < 0;
  file->Close();
  return is_refused;
}

}  // namespace

std::unique_ptr<DriverFile> OpenFileFor(HostLibrary& host, const char* name, unsigned flags,
                                        hid_t fapl, haddr_t maxaddr) {
  const HeldStderr held;
  ReportLoaded(host, "plugin_loaded");
  RefusedOpens& refused = RefusedOpensOfThread();
  if ((flags & H5F_ACC_EXCL) != 0) {
    const bool appends = refused.TakeIsAppend(name);
    if (appends && PushWhyRefused(host, name, fapl, maxaddr)) return nullptr;
    return OpenAsAsked(host, name, flags, fapl, maxaddr);
  }
  std::unique_ptr<DriverFile> file = OpenAsAsked(host, name, flags, fapl, maxaddr);
  if (file == nullptr && (flags & H5F_ACC_RDWR) != 0) refused.OnRefused(name);
  return file;
}

Problem ProblemOfDeleting(const HostLibrary& host, const char* name, hid_t fapl) {
  std::shared_ptr<const Config> config;
  if (const Problem problem = CachedConfig(ConfigText(host, fapl), &config)) return problem;
  if (config->mode != Mode::kRemote && config->mode != Mode::kReader) return std::nullopt;
  const std::optional<std::string> remote_name =
      MirrorName(*config, RealPathOfMissing(name), HostName());
  if (!remote_name) return std::nullopt;
  return "it is " + *remote_name + " on a server; remove it with: h5mirror rm " + *remote_name;
}

}  // namespace h5mirror::vfd
