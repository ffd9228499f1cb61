#include "client_vfd/plugin/open/remote_open.h"

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/host/this_process.h"

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
void Mirror(const OpenCall& call, const ReaderTarget& target, H5mIntent intent, unsigned mode_bits,
            OpenFile& file) {
  MirrorTarget mirrored;
  mirrored.real_path = target.real_path;
  mirrored.name = target.name;
  mirrored.intent = intent;
  mirrored.base_cut = BaseCutOf(file.under);
  mirrored.mode_bits = mode_bits;
  file.mirror =
      std::make_unique<MirroredFile>(call.host, call.config, std::move(mirrored), file.under, -1);
  if (call.request.writes_swmr) file.mirror->OpenedForSwmr();
}

// Opens it for writing, or leaves `file.under` null.
void OpenForWriting(const OpenCall& call, const ReaderTarget& target, OpenFile& file) {
  const bool makes = call.request.truncates || call.request.makes_new;
  const unsigned mode_bits = makes ? NewFileMode() : 0644;
  H5FD_t* cut = nullptr;
  if (!makes) {
    cut = OpenReader(call.host, *call.config, target);
    if (cut == nullptr) return;
  }
  file.under = MakeRemote(call.host, call.config, target, cut);
  const H5mIntent intent = !makes                   ? H5M_REMOTE_CHANGE
                           : call.request.truncates ? H5M_REMOTE_REPLACE
                                                    : H5M_REMOTE_NEW;
  Mirror(call, target, intent, mode_bits, file);
  if (!makes) return;
  std::string error;
  const int failed = file.mirror->BeginNow(&error);
  if (failed == 0) return;
  PushOpenErrno(call.host, target.given_name, failed, error);
  file.mirror.reset();
  file.under->cls->close(std::exchange(file.under, nullptr));
}

}  // namespace

std::unique_ptr<OpenFile> OpenRemote(const OpenCall& call, ReaderTarget target) {
  auto file = std::make_unique<OpenFile>();
  file->host = &call.host;
  file->remote_key = call.config->Servers().front() + "\n" + target.name;
  const bool writes = call.request.writes;
  if (target.root != nullptr && (writes || target.root->is_writer)) {
    target.parent = std::exchange(target.root, nullptr);
  }
  if (Writers::Get().Has(*file)) {  // HDF5 finds out, and lets go of this one.
    file->under = MakeRemote(call.host, call.config, target, nullptr);
    return file;
  }
  if (!writes) {
    file->under = OpenReader(call.host, *call.config, std::move(target));
    return file->under != nullptr ? std::move(file) : nullptr;
  }
  OpenForWriting(call, target, *file);
  if (file->under == nullptr) return nullptr;
  file->remote_root = RootOfWriter(*call.config, target);
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
