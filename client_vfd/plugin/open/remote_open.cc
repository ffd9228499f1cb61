#include "client_vfd/plugin/open/remote_open.h"

#include <cerrno>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "client_vfd/plugin/host/h5_error.h"

namespace h5mirror::vfd {
namespace {

// Which files are open for writing, by the library that has them and their key.
class Writers {
 public:
  static Writers& Get() {
    static auto* const writers = new Writers;
    return *writers;
  }
  void Add(const OpenFile& file) {
    const std::lock_guard lock(mutex_);
    ++counts_[KeyOf(file)];
  }
  void Remove(const OpenFile& file) {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(KeyOf(file));
    if (found != counts_.end() && --found->second == 0) counts_.erase(found);
  }
  bool Has(const OpenFile& file) const {
    const std::lock_guard lock(mutex_);
    return counts_.contains(KeyOf(file));
  }

 private:
  using Key = std::pair<const HostLibrary*, std::string>;
  static Key KeyOf(const OpenFile& file) { return {file.host, file.remote_key}; }

  mutable std::mutex mutex_;
  std::map<Key, int> counts_;
};

Problem ProblemOf(const Config& config, const ReaderTarget& target) {
  if (config.IsEmbedded()) {
    return "mode=remote needs a server; with server=embedded the files are local";
  }
  if (config.Servers().size() > 1) {
    return "mode=remote writes to one server, and server= names " +
           std::to_string(config.Servers().size());
  }
  if (config.under != UnderDriver::kSec2) return "mode=remote does no local I/O: leave out under=";
  if (!config.version.empty()) {
    return "mode=remote opens the newest cut: read version=" + config.version + " with mode=reader";
  }
  if (target.name.empty()) return "it lies outside of the server's root";
  return std::nullopt;
}

RootPtr RootOfWriter(const Config& config, const ReaderTarget& target) {
  auto root = std::make_shared<ReaderRoot>();
  root->config_text = target.config_text;
  root->real_path = target.real_path;
  root->name = target.name;
  root->server = config.Servers().front();
  root->is_writer = true;
  return root;
}

// Has MirroredFile and the session above and behind `file.under`.
void Mirror(OpenFile& file, const std::shared_ptr<const Config>& config, const ReaderTarget& target,
            H5mIntent intent, unsigned flags, unsigned mode_bits) {
  MirrorTarget mirrored;
  mirrored.real_path = target.real_path;
  mirrored.name = target.name;
  mirrored.intent = intent;
  mirrored.base_cut = BaseCutOf(file.under);
  mirrored.mode_bits = mode_bits;
  file.mirror =
      std::make_unique<MirroredFile>(*file.host, config, std::move(mirrored), file.under, -1);
  if ((flags & H5F_ACC_SWMR_WRITE) != 0) file.mirror->OpenedForSwmr();
}

// Opens it for writing, or leaves `file.under` null.
void OpenForWriting(OpenFile& file, const std::shared_ptr<const Config>& config,
                    const ReaderTarget& target, unsigned flags, unsigned mode_bits) {
  const bool makes = (flags & (H5F_ACC_TRUNC | H5F_ACC_EXCL)) != 0;
  H5FD_t* cut = nullptr;
  if (!makes) {
    cut = OpenReader(*file.host, *config, target);
    if (cut == nullptr) return;
  }
  file.under = MakeRemote(*file.host, config, target, cut);
  const H5mIntent intent = !makes                         ? H5M_REMOTE_CHANGE
                           : (flags & H5F_ACC_TRUNC) != 0 ? H5M_REMOTE_REPLACE
                                                          : H5M_REMOTE_NEW;
  Mirror(file, config, target, intent, flags, mode_bits);
  if (!makes) return;
  std::string error;
  const int failed = file.mirror->BeginNow(&error);
  if (failed == 0) return;
  PushOpenErrno(*file.host, target.given_name, failed, error);
  file.mirror.reset();
  file.under->cls->close(std::exchange(file.under, nullptr));
}

}  // namespace

std::unique_ptr<OpenFile> OpenRemote(HostLibrary& host, std::shared_ptr<const Config> config,
                                     ReaderTarget target, unsigned flags, unsigned mode_bits) {
  if (const Problem problem = ProblemOf(*config, target)) {
    PushOpenErrno(host, target.given_name, EINVAL, *problem);
    return nullptr;
  }
  auto file = std::make_unique<OpenFile>();
  file->host = &host;
  file->remote_key = config->Servers().front() + "\n" + target.name;
  const bool writes = (flags & H5F_ACC_RDWR) != 0;
  if (target.root != nullptr && (writes || target.root->is_writer)) {
    target.parent = std::exchange(target.root, nullptr);
  }
  if (Writers::Get().Has(*file)) {  // HDF5 finds out, and lets go of this one.
    file->under = MakeRemote(host, config, target, nullptr);
    return file;
  }
  if (!writes) {
    file->under = OpenReader(host, *config, std::move(target));
    return file->under != nullptr ? std::move(file) : nullptr;
  }
  OpenForWriting(*file, config, target, flags, mode_bits);
  if (file->under == nullptr) return nullptr;
  file->remote_root = RootOfWriter(*config, target);
  Writers::Get().Add(*file);
  return file;
}

herr_t CloseRemote(OpenFile& file) {
  if (file.mirror == nullptr) return file.under->cls->close(file.under);
  Writers::Get().Remove(file);
  const herr_t put = file.buffered != nullptr ? file.buffered->BeforeClose() : 0;
  file.buffered.reset();
  file.mirror->BeforeClose();
  file.under->cls->close(file.under);
  const herr_t result = file.mirror->AfterClose();
  return put < 0 ? put : result;
}

int CompareRemote(const OpenFile& a, const OpenFile& b) {
  const int order = a.remote_key.compare(b.remote_key);
  if (order != 0 || !IsReader(a) || !IsReader(b)) return order;
  return KeyOf(a.under).compare(KeyOf(b.under));
}

}  // namespace h5mirror::vfd
