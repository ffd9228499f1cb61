#include "client_vfd/plugin/modes/reader_file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <iterator>
#include <utility>
#include <vector>

#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/host/reporter.h"
#include "client_vfd/plugin/host/session_loader.h"
#include "client_vfd/plugin/host/told_once.h"

namespace h5mirror::vfd {
namespace {

constexpr size_t kErrorBytes = 4096;
// The size of a file that could not be opened. It is enough for HDF5 to look for a superblock.
constexpr haddr_t kBrokenBytes = 2048;

H5mReaderOpen RequestFor(const Config& config, const ReaderTarget& target,
                         const std::string& server) {
  H5mReaderOpen open{};
  open.name = target.name.c_str();
  open.server = server.c_str();
  open.ca = config.ca.c_str();
  open.token = config.token.c_str();
  open.version = config.version.c_str();
  open.linked = target.root != nullptr;
  open.agent = config.agent.c_str();
  open.cache_bytes = config.cache_bytes;
  open.timeout_ms = config.TimeoutMs();
  if (target.root != nullptr) {
    const ReaderRoot& root = *target.root;
    open.at_ns = root.at_ns;
    const ReaderRoot::Opened before = root.Pinned(target.name);
    open.number = before.version;
    open.live = root.live && before.version == 0;
    open.cut = before.cut;
    std::copy(root.id.begin(), root.id.end(), open.root_id);
  }
  return open;
}

// The root of a file that the program named: itself.
RootPtr MakeRoot(const ReaderTarget& target, const std::string& server, const H5mReaderInfo& info) {
  auto root = std::make_shared<ReaderRoot>();
  root->config_text = target.config_text;
  root->real_path = target.real_path;
  root->name = target.name;
  root->server = server;
  root->at_ns = info.targets_at_ns;
  root->live = info.targets_live != 0;
  std::copy(std::begin(info.root_id), std::end(info.root_id), root->id.begin());
  return root;
}

std::string UniqueKey() {
  static std::atomic<uint64_t> counter{0};
  return "broken " + std::to_string(counter.fetch_add(1));
}

ReaderApi LoadReader(const Config& config, std::string* error) {
  if (config.IsEmbedded()) {
    const H5mEmbeddedApi* api = LoadEmbedded(error);
    return api == nullptr
               ? ReaderApi()
               : ReaderApi{api->reader_open, api->reader_read, api->reader_close, nullptr};
  }
  const H5mSessionApi* api = LoadSession(error);
  return api == nullptr
             ? ReaderApi()
             : ReaderApi{api->reader_open, api->reader_read, api->reader_close, api->wait_for_cut};
}

// Whether one open of a writer made both cuts, and the second after the first.
bool IsLaterOfSameWriter(const H5mReaderInfo& first, const H5mReaderInfo& second) {
  const auto& id = first.writer_session_id;
  return second.cut > first.cut &&
         std::any_of(std::begin(id), std::end(id), [](uint8_t byte) { return byte != 0; }) &&
         std::equal(std::begin(id), std::end(id), std::begin(second.writer_session_id));
}

// HDF5 1.14.4 and older forgets the error all the same, so it is said.
void SayBroken(const Config& config, const ReaderTarget& target, const ReaderRoot& parent,
               const std::string& error) {
  static auto* const told = new ToldOnce;
  Say(config.log,
      told->IsNews(target.real_path, "broken") ? Audience::kUserToo : Audience::kLogOnly,
      target.real_path + ", which " + parent.name +
          " leads to, cannot be read, and a virtual dataset may show fill values in its place: " +
          error);
}

}  // namespace

ReaderFile::ReaderFile(const HostLibrary& host, std::string name)
    : UnderFile(kCommonFeatures | H5FD_FEAT_SUPPORTS_SWMR_IO),
      host_(host),
      name_(std::move(name)) {}

ReaderFile::~ReaderFile() {
  if (reader_ != nullptr) api_.close(reader_);
}

void ReaderFile::Start(const Config& config, const ReaderTarget& target) {
  if (target.name.empty()) {
    info_.error_number = ENOENT;
    error_ = "it lies outside of the server's root";
    return;
  }
  std::array<char, kErrorBytes> error{};
  api_ = LoadReader(config, &error_);
  if (api_.open == nullptr) {
    info_.error_number = ENOSYS;
    return;
  }
  // Versions are numbered by each server, and times are its own: one root, one server.
  const std::vector<std::string> servers =
      target.root != nullptr ? std::vector{target.root->server} : config.Servers();
  int error_number = 0;
  for (const std::string& server : servers) {
    const H5mReaderOpen open = RequestFor(config, target, server);
    server_ = server;
    reader_ = api_.open(&open, &info_, error.data(), error.size());
    if (reader_ != nullptr) return;
    error_ += (error_.empty() ? "" : "; ") + (servers.size() > 1 ? server + ": " : std::string()) +
              error.data();
    // That there is no such file is certain only where all say so.
    if (error_number == 0 || error_number == ENOENT) error_number = info_.error_number;
  }
  info_.error_number = error_number;
}

std::unique_ptr<ReaderFile> ReaderFile::Open(const HostLibrary& host, const Config& config,
                                             ReaderTarget target) {
  std::unique_ptr<ReaderFile> file(new ReaderFile(host, target.given_name));
  file->Start(config, target);
  if (file->reader_ == nullptr) {
    const int why = file->info_.error_number;
    const RootPtr parent = target.root != nullptr ? target.root : target.parent;
    if (parent == nullptr || why == ENOENT || why == EINVAL) {
      PushOpenErrno(host, target.given_name, why, file->error_);
      return nullptr;
    }
    SayBroken(config, target, *parent, file->error_);
    file->root_ = parent;
    file->key_ = UniqueKey();
    file->info_.size_bytes = kBrokenBytes;
    return file;
  }
  file->Identify(config, target);
  return file;
}

void ReaderFile::Identify(const Config& config, const ReaderTarget& target) {
  root_ = target.root != nullptr ? target.root : MakeRoot(target, server_, info_);
  if (root_->live || root_->at_ns == 0) root_->Pin(target.name, {info_.version, info_.cut});
  key_ = std::string(info_.identity) + "\n" + std::to_string(root_->at_ns);
  Say(config.log, Audience::kLogOnly,
      target.real_path + ": reader: " + info_.text +
          (config.Servers().size() > 1 ? ", on " + server_ : "") +
          (target.root != nullptr ? ", through " + target.root->name : ""));
}

void ReaderFile::AllowRefresh(std::shared_ptr<const Config> config, ReaderTarget target) {
  if (reader_ == nullptr || api_.wait == nullptr || target.root != nullptr || !root_->live) return;
  reopening_ = std::make_unique<Reopening>(Reopening{std::move(config), std::move(target)});
}

bool ReaderFile::HasNewerCut(const Config& config, const ReaderTarget& target) const {
  const H5mWait wait{target.name.c_str(),  server_.c_str(), config.ca.c_str(),
                     config.token.c_str(), info_.cut,       0};
  int64_t newest = 0;
  std::array<char, kErrorBytes> error{};
  const int failed = api_.wait(&wait, &newest, error.data(), error.size());
  if (failed != 0 && failed != ETIMEDOUT) {
    Say(config.log, Audience::kLogOnly,
        target.real_path + ": no refresh, it stays at its cut: " + error.data());
  }
  return failed == 0;
}

bool ReaderFile::Refresh() {
  if (reopening_ == nullptr || info_.is_swmr == 0) return false;
  const auto& [config, target] = *reopening_;
  if (!HasNewerCut(*config, target)) return false;
  const H5mReaderOpen open = RequestFor(*config, target, server_);
  H5mReaderInfo info{};
  std::array<char, kErrorBytes> error{};
  H5mReader* const newest = api_.open(&open, &info, error.data(), error.size());
  if (newest == nullptr || !IsLaterOfSameWriter(info_, info)) {
    Say(config->log, Audience::kLogOnly,
        target.real_path + ": no refresh, it stays at its cut: " +
            (newest == nullptr ? error.data()
                               : "another open wrote the newest one; close it and open it again"));
    if (newest != nullptr) api_.close(newest);
    return false;
  }
  api_.close(std::exchange(reader_, newest));
  info_ = info;
  Identify(*config, target);
  return true;
}

herr_t ReaderFile::Read(H5FD_mem_t type, hid_t, haddr_t addr, size_t size, void* buffer) {
  std::string error;
  const int error_number = ReadCut(type, addr, size, buffer, &error);
  if (error_number == 0) return 0;
  PushReadErrno(host_, name_, error_number, error);
  return -1;
}

herr_t ReaderFile::Write(H5FD_mem_t, hid_t, haddr_t, size_t, const void*) {
  PushOpenErrno(host_, name_, EROFS, "it is open for reading");
  return -1;
}

int ReaderFile::ReadCut(H5FD_mem_t type, haddr_t address, size_t size, void* buffer,
                        std::string* error) {
  if (reader_ == nullptr) {
    *error = error_;
    return info_.error_number;
  }
  std::array<char, kErrorBytes> text{};
  const int error_number =
      api_.read(reader_, address, buffer, size, type == H5FD_MEM_DRAW, text.data(), text.size());
  if (error_number != 0) *error = text.data();
  return error_number;
}

}  // namespace h5mirror::vfd
