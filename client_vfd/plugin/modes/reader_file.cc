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
// Of a file that could not be opened: enough for HDF5 to look for a superblock.
constexpr haddr_t kBrokenBytes = 2048;

// Of the module that reads: the session's, or the embedded store's.
struct ReaderApi {
  decltype(H5mSessionApi::reader_open) open = nullptr;
  decltype(H5mSessionApi::reader_read) read = nullptr;
  decltype(H5mSessionApi::reader_close) close = nullptr;
};

struct ReaderFile {
  H5FD_t base{};
  const HostLibrary* host = nullptr;
  ReaderApi api;
  H5mReader* reader = nullptr;  // null: broken, for the reason in `error`
  H5mReaderInfo info{};
  std::string name;
  std::string server;  // that it is read from
  std::string key;
  RootPtr root;
  std::string error;
  haddr_t eoa = 0;
};

ReaderFile* Of(H5FD_t* file) { return reinterpret_cast<ReaderFile*>(file); }
const ReaderFile* Of(const H5FD_t* file) { return reinterpret_cast<const ReaderFile*>(file); }

herr_t Close(H5FD_t* file) {
  const std::unique_ptr<ReaderFile> owned(Of(file));
  if (owned->reader != nullptr) owned->api.close(owned->reader);
  return 0;
}

herr_t Query(const H5FD_t*, unsigned long* flags) {
  // sec2's but for POSIX_COMPAT_HANDLE: HDF5 would lstat() the name, and there may be no such file.
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_SUPPORTS_SWMR_IO |
           H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t GetEoa(const H5FD_t* file, H5FD_mem_t) { return Of(file)->eoa; }
haddr_t GetEof(const H5FD_t* file, H5FD_mem_t) { return Of(file)->info.size_bytes; }

herr_t SetEoa(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  Of(file)->eoa = address;
  return 0;
}

herr_t Read(H5FD_t* file, H5FD_mem_t type, hid_t, haddr_t address, size_t size, void* buffer) {
  std::string error;
  const int error_number = ReadCut(file, type, address, size, buffer, &error);
  if (error_number == 0) return 0;
  PushReadErrno(*Of(file)->host, Of(file)->name, error_number, error);
  return -1;
}

herr_t Write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t, size_t, const void*) {
  PushOpenErrno(*Of(file)->host, Of(file)->name, EROFS, "it is open for reading");
  return -1;
}

H5FD_class_t MakeClass() {
  H5FD_class_t made{};
  made.version = H5FD_CLASS_VERSION;
  made.name = "h5mirror_reader";
  made.close = Close;
  made.query = Query;
  made.get_eoa = GetEoa;
  made.set_eoa = SetEoa;
  made.get_eof = GetEof;
  made.read = Read;
  made.write = Write;
  return made;
}

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
    return api == nullptr ? ReaderApi()
                          : ReaderApi{api->reader_open, api->reader_read, api->reader_close};
  }
  const H5mSessionApi* api = LoadSession(error);
  return api == nullptr ? ReaderApi()
                        : ReaderApi{api->reader_open, api->reader_read, api->reader_close};
}

// Opens it, or fills in `error` and `info.error_number`.
void Start(const Config& config, const ReaderTarget& target, ReaderFile* file) {
  if (target.name.empty()) {
    file->info.error_number = ENOENT;
    file->error = "it lies outside of the server's root";
    return;
  }
  std::array<char, kErrorBytes> error{};
  file->api = LoadReader(config, &file->error);
  if (file->api.open == nullptr) {
    file->info.error_number = ENOSYS;
    return;
  }
  // Versions are numbered by each server, and times are its own: one root, one server.
  const std::vector<std::string> servers =
      target.root != nullptr ? std::vector{target.root->server} : config.Servers();
  int error_number = 0;
  for (const std::string& server : servers) {
    const H5mReaderOpen open = RequestFor(config, target, server);
    file->server = server;
    file->reader = file->api.open(&open, &file->info, error.data(), error.size());
    if (file->reader != nullptr) return;
    file->error += (file->error.empty() ? "" : "; ") +
                   (servers.size() > 1 ? server + ": " : std::string()) + error.data();
    // That there is no such file is certain only where all say so.
    if (error_number == 0 || error_number == ENOENT) error_number = file->info.error_number;
  }
  file->info.error_number = error_number;
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

H5FD_t* OpenReader(const HostLibrary& host, const Config& config, ReaderTarget target) {
  auto file = std::make_unique<ReaderFile>();
  file->base.cls = ReaderClass();
  file->host = &host;
  file->name = target.given_name;
  Start(config, target, file.get());
  if (file->reader == nullptr) {
    const int why = file->info.error_number;
    const RootPtr parent = target.root != nullptr ? target.root : target.parent;
    if (parent == nullptr || why == ENOENT || why == EINVAL) {
      PushOpenErrno(host, target.given_name, file->info.error_number, file->error);
      return nullptr;
    }
    SayBroken(config, target, *parent, file->error);
    file->root = parent;
    file->key = UniqueKey();
    file->info.size_bytes = kBrokenBytes;
    return &file.release()->base;
  }
  file->root = target.root != nullptr ? target.root : MakeRoot(target, file->server, file->info);
  if (file->root->live || file->root->at_ns == 0) {
    file->root->Pin(target.name, {file->info.version, file->info.cut});
  }
  file->key = std::string(file->info.identity) + "\n" + std::to_string(file->root->at_ns);
  Say(config.log, Audience::kLogOnly,
      target.real_path + ": reader: " + file->info.text +
          (config.Servers().size() > 1 ? ", on " + file->server : "") +
          (target.root != nullptr ? ", through " + target.root->name : ""));
  return &file.release()->base;
}

const H5FD_class_t* ReaderClass() {
  static const H5FD_class_t reader_class = MakeClass();
  return &reader_class;
}

int ReadCut(H5FD_t* file, H5FD_mem_t type, haddr_t address, size_t size, void* buffer,
            std::string* error) {
  ReaderFile* self = Of(file);
  if (self->reader == nullptr) {
    *error = self->error;
    return self->info.error_number;
  }
  std::array<char, kErrorBytes> text{};
  const int error_number = self->api.read(self->reader, address, buffer, size,
                                          type == H5FD_MEM_DRAW, text.data(), text.size());
  if (error_number != 0) *error = text.data();
  return error_number;
}

RootPtr RootOf(const H5FD_t* file) { return Of(file)->root; }
const std::string& KeyOf(const H5FD_t* file) { return Of(file)->key; }
const H5mReaderInfo& InfoOf(const H5FD_t* file) { return Of(file)->info; }

}  // namespace h5mirror::vfd
