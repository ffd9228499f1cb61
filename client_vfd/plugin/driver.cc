#include "client_vfd/plugin/host/driver_class.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string>

#include "H5FDh5mirror.h"
#include "client_vfd/plugin/config/file_url.h"
#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/host/reporter.h"
#include "client_vfd/plugin/host/session_loader.h"
#include "client_vfd/plugin/modes/linked_open.h"
#include "client_vfd/plugin/open/open_file.h"
#include "client_vfd/plugin/open/remote_open.h"
#include "client_vfd/plugin/open/swmr_file.h"
#include "client_vfd/plugin/writes/superblock.h"

namespace h5mirror::vfd {
namespace {

// Free for drivers that The HDF Group has not registered: 512..65535 (H5FDpublic.h).
constexpr H5FD_class_value_t kDriverValue = 7447;
constexpr haddr_t kMaxAddress = (haddr_t{1} << 63) - 1;
// As sec2's, for a query without a file.
constexpr unsigned long kFeatures = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA |
                                    H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA |
                                    H5FD_FEAT_POSIX_COMPAT_HANDLE | H5FD_FEAT_SUPPORTS_SWMR_IO |
                                    H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;

OpenFile* Of(H5FD_t* file) { return reinterpret_cast<OpenFile*>(file); }
const OpenFile* Of(const H5FD_t* file) { return reinterpret_cast<const OpenFile*>(file); }

// Runs `body` at the C border: whatever is thrown becomes -1.
template <typename Body>
herr_t Guard(Body body) {
  try {
    return body();
  } catch (...) {
    return -1;
  }
}

H5FD_t* Open(const char* name, unsigned flags, hid_t fapl, haddr_t maxaddr) {
  const void* caller = __builtin_return_address(0);
  try {
    HostLibrary& host = FindHost(caller);
    try {
      OpenFile* file = OpenFileFor(host, name, flags, fapl, maxaddr);
      return file != nullptr ? &file->base : nullptr;
    } catch (const std::exception& error) {
      PushOpenError(host, std::string("h5mirror: ") + error.what());
    }
  } catch (...) {
  }
  return nullptr;
}

herr_t Close(H5FD_t* file) {
  return Guard([&] { return CloseFile(Of(file)); });
}

// Files of mode=remote by what they are on their server; readers by what they read, local files by
// device and inode, and no reader is a local file.
int Compare(const H5FD_t* a, const H5FD_t* b) {
  const bool remote = !Of(a)->remote_key.empty();
  if (remote == Of(b)->remote_key.empty()) return remote ? 1 : -1;
  if (remote) return CompareRemote(*Of(a), *Of(b));
  const bool reads = IsReader(*Of(a));
  if (reads != IsReader(*Of(b))) return reads ? 1 : -1;
  if (reads) return KeyOf(Of(a)->under).compare(KeyOf(Of(b)->under));
  if (IsEmbedded(*Of(a)) && IsEmbedded(*Of(b))) {
    const auto left = reinterpret_cast<uintptr_t>(IdentityOf(Of(a)->under));
    const auto right = reinterpret_cast<uintptr_t>(IdentityOf(Of(b)->under));
    return left < right ? -1 : left > right ? 1 : 0;
  }
  const FileKey& left = Of(a)->key;
  const FileKey& right = Of(b)->key;
  if (left.device != right.device) return left.device < right.device ? -1 : 1;
  if (left.inode != right.inode) return left.inode < right.inode ? -1 : 1;
  return 0;
}

herr_t Query(const H5FD_t* file, unsigned long* flags) {
  if (flags == nullptr) return 0;
  *flags = kFeatures;
  if (file == nullptr) return 0;
  const H5FD_t* under = Of(file)->under;
  return under->cls->query != nullptr ? under->cls->query(under, flags) : 0;
}

// What the access property lists of the files that it leads to are given.
void* GetLinkInfo(H5FD_t* file) {
  if (IsRemote(*Of(file))) return MakeLinkInfo(Of(file)->remote_root);
  return IsReader(*Of(file)) ? MakeLinkInfo(RootOf(Of(file)->under)) : nullptr;
}

herr_t FreeLinkInfoCallback(void* info) {
  FreeLinkInfo(info);
  return 0;
}

haddr_t GetEoa(const H5FD_t* file, H5FD_mem_t type) {
  return Of(file)->under->cls->get_eoa(Of(file)->under, type);
}

herr_t SetEoa(H5FD_t* file, H5FD_mem_t type, haddr_t address) {
  return Of(file)->under->cls->set_eoa(Of(file)->under, type, address);
}

haddr_t GetEof(const H5FD_t* file, H5FD_mem_t type) {
  if (Of(file)->buffered != nullptr) return Of(file)->buffered->Eof(type);
  return Of(file)->under->cls->get_eof(Of(file)->under, type);
}

void ApiArm(void* file, int commit, const char* comment) {
  auto* mirror = static_cast<OpenFile*>(file)->mirror.get();
  const H5mBarrier kind = commit != 0 ? H5M_COMMIT : H5M_TICK;
  if (mirror != nullptr) mirror->ArmBarrier(kind, comment);
  if (IsEmbedded(*static_cast<OpenFile*>(file))) {
    ArmEmbedded(static_cast<OpenFile*>(file)->under, kind, comment);
  }
}

int ApiFinish(void* file) {
  auto* mirror = static_cast<OpenFile*>(file)->mirror.get();
  if (IsEmbedded(*static_cast<OpenFile*>(file))) {
    return FinishEmbedded(static_cast<OpenFile*>(file)->under);
  }
  return mirror != nullptr ? mirror->FinishBarrier() : 1;
}

void ReaderStatus(const H5mReaderInfo& info, H5mStatus* status) {
  status->state = H5M_STATE_READING;
  status->cut = info.cut;
  status->version = info.version;
  std::snprintf(status->message, sizeof status->message, "%.255s", info.text);
}

void Tell(const H5mStatus& status, H5FDh5mirror_status_t* out) {
  out->state = static_cast<H5FDh5mirror_state_t>(status.state);
  out->cut = status.cut;
  out->version = status.version;
  out->pending_bytes = status.pending_bytes;
  out->behind_since_ns = status.behind_since_ns;
  static_assert(sizeof out->message == sizeof status.message);
  std::memcpy(out->message, status.message, sizeof out->message);
}

void ApiStatus(void* opaque, H5FDh5mirror_status_t* out) {
  auto* file = static_cast<OpenFile*>(opaque);
  H5mStatus status{};
  if (file->mirror != nullptr) file->mirror->Status(&status);
  if (IsReader(*file)) ReaderStatus(InfoOf(file->under), &status);
  if (IsEmbedded(*file)) StatusOfEmbedded(file->under, &status);
  Tell(status, out);
}

unsigned ApiMirrorCount(void* opaque) {
  const auto* mirror = static_cast<OpenFile*>(opaque)->mirror.get();
  return mirror != nullptr ? static_cast<unsigned>(mirror->Servers().size()) : 0;
}

int ApiMirrorStatus(void* opaque, unsigned index, H5FDh5mirror_status_t* out, char* server,
                    size_t size) {
  if (index >= ApiMirrorCount(opaque)) return -1;
  const auto* mirror = static_cast<OpenFile*>(opaque)->mirror.get();
  if (out != nullptr) {
    H5mStatus status{};
    mirror->StatusOf(index, &status);
    Tell(status, out);
  }
  if (server != nullptr) std::snprintf(server, size, "%s", mirror->Servers()[index].c_str());
  return 0;
}

int WaitForCut(const HostLibrary& host, const char* url, int64_t after_cut, int timeout_ms,
               int64_t* cut) {
  std::array<char, 4096> error{};
  int number = EINVAL;
  std::string load_error;
  const std::optional<FileUrl> target = ParseFileUrl(url);
  const H5mSessionApi* session = target ? LoadSession(&load_error) : nullptr;
  if (session != nullptr) {
    const H5mWait wait{target->name.c_str(), target->server.c_str(), "", "", after_cut, timeout_ms};
    number = session->wait_for_cut(&wait, cut, error.data(), error.size());
    if (number == 0) return 0;
    if (number == ETIMEDOUT && error.front() == '\0') return 1;
  } else if (target) {
    number = ENOSYS;
  }
  PushOpenErrno(host, url, number,
                !target              ? "no url of h5mirror, as h5mirror://HOST[:PORT]/NAME"
                : session == nullptr ? load_error
                                     : std::string(error.data()));
  return -1;
}

int ApiWait(void* file, const char* url, int64_t after_cut, int timeout_ms, int64_t* cut) {
  const HostLibrary& host = *static_cast<OpenFile*>(file)->host;
  return Guard([&] { return WaitForCut(host, url, after_cut, timeout_ms, cut); });
}

// H5FDh5mirror.h puts the address of its table into the property list that it passes.
// False: it passed none.
bool FillApi(OpenFile* file, hid_t fapl) {
  const HostApi& api = file->host->api;
  if (!api.usable || fapl <= 0) return false;
  const QuietErrors quiet(api);
  H5FDh5mirror_api_t* out = nullptr;
  if (api.p_exist(fapl, H5FD_H5MIRROR_PROPERTY) <= 0 ||
      api.p_get(fapl, H5FD_H5MIRROR_PROPERTY, &out) < 0 || out == nullptr || out->version < 1 ||
      out->version > H5FD_H5MIRROR_API_VERSION) {
    return false;
  }
  out->file = file;
  out->arm = ApiArm;
  out->finish = ApiFinish;
  out->status = ApiStatus;
  if (out->version < 2) return true;  // Its struct ends here.
  out->mirror_count = ApiMirrorCount;
  out->mirror_status = ApiMirrorStatus;
  if (out->version < 3) return true;
  out->wait = ApiWait;
  return true;
}

herr_t GetHandle(H5FD_t* file, hid_t fapl, void** handle) {
  if (handle == nullptr) return -1;
  const bool filled = FillApi(Of(file), fapl);
  H5FD_t* under = Of(file)->under;
  if (filled &&
      under->cls->get_handle == nullptr) {  // It has no descriptor, and nobody asked for one.
    *handle = nullptr;
    return 0;
  }
  return under->cls->get_handle != nullptr ? under->cls->get_handle(under, fapl, handle) : -1;
}

herr_t Read(H5FD_t* file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size, void* buffer) {
  OpenFile* open_file = Of(file);
  if (IsUnread(*open_file) && Guard([&] { return BeforeFirstRead(open_file); }) < 0) return -1;
  if (open_file->buffered != nullptr) {
    return Guard([&] { return open_file->buffered->Read(type, dxpl, address, size, buffer); });
  }
  H5FD_t* under = open_file->under;
  return under->cls->read(under, type, dxpl, address, size, buffer);
}

herr_t Write(H5FD_t* file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
             const void* buffer) {
  OpenFile* open_file = Of(file);
  if (open_file->swmr.IsToBeMarked() && Guard([&] { return MarkForSwmr(open_file); }) < 0) {
    return -1;
  }
  if (type != H5FD_MEM_DRAW && SwmrFlagOf(address, size, buffer) != SwmrFlag::kNotASuperblock) {
    return Guard([&] { return WriteSuperblock(open_file, type, dxpl, address, size, buffer); });
  }
  return Guard([&] { return WriteFile(open_file, type, dxpl, address, size, buffer); });
}

herr_t Flush(H5FD_t* file, hid_t dxpl, hbool_t closing) {
  OpenFile* open_file = Of(file);
  if (open_file->buffered != nullptr) {
    return Guard([&] { return open_file->buffered->Flush(dxpl, closing); });
  }
  if (open_file->mirror != nullptr) {
    return Guard([&] { return open_file->mirror->Flush(dxpl, closing); });
  }
  H5FD_t* under = open_file->under;
  return under->cls->flush != nullptr ? under->cls->flush(under, dxpl, closing) : 0;
}

herr_t Truncate(H5FD_t* file, hid_t dxpl, hbool_t closing) {
  OpenFile* open_file = Of(file);
  open_file->swmr.OnTruncate(closing);
  if (open_file->buffered != nullptr) {
    return Guard([&] { return open_file->buffered->Truncate(dxpl, closing); });
  }
  if (open_file->mirror != nullptr) {
    return Guard([&] { return open_file->mirror->Truncate(dxpl, closing); });
  }
  H5FD_t* under = open_file->under;
  if (open_file->left_out != nullptr && under->cls->get_eoa(under, H5FD_MEM_DEFAULT) !=
                                            under->cls->get_eof(under, H5FD_MEM_DEFAULT)) {
    Guard([&] { return BeforeChange(open_file), 0; });
  }
  return under->cls->truncate != nullptr ? under->cls->truncate(under, dxpl, closing) : 0;
}

herr_t Delete(const char* name, hid_t fapl) {
  const void* caller = __builtin_return_address(0);
  return Guard([&] {
    const HostLibrary& host = FindHost(caller);
    if (const Problem problem = ProblemOfDeleting(host, name, fapl)) {
      PushOpenErrno(host, name, EPERM, *problem);
      return -1;
    }
    return std::remove(name) < 0 ? -1 : 0;
  });
}

herr_t Control(H5FD_t* file, uint64_t code, uint64_t flags, const void* input, void** output) {
  H5FD_t* under = file != nullptr ? Of(file)->under : nullptr;
  if (under != nullptr && under->cls->ctl != nullptr) {
    return under->cls->ctl(under, code, flags, input, output);
  }
  return (flags & H5FD_CTL_FAIL_IF_UNKNOWN_FLAG) != 0 ? -1 : 0;
}

// The host closes down (H5close, or its atexit); it may come back and ask for the class again.
herr_t Terminate() {
  if (const H5mSessionApi* session = LoadedSession()) session->drain();
  return 0;
}

}  // namespace

H5FD_class_t MakeDriverClass() {
  H5FD_class_t made{};
  made.version = H5FD_CLASS_VERSION;
  made.value = kDriverValue;
  made.name = "h5mirror";
  made.maxaddr = kMaxAddress;
  made.fc_degree = H5F_CLOSE_WEAK;
  made.terminate = Terminate;
  made.fapl_size = kLinkInfoBytes;
  made.fapl_get = GetLinkInfo;
  made.fapl_copy = CopyLinkInfo;
  made.fapl_free = FreeLinkInfoCallback;
  made.open = Open;
  made.close = Close;
  made.cmp = Compare;
  made.query = Query;
  made.get_eoa = GetEoa;
  made.set_eoa = SetEoa;
  made.get_eof = GetEof;
  made.get_handle = GetHandle;
  made.read = Read;
  made.write = Write;
  made.flush = Flush;
  made.truncate = Truncate;
  // No `lock`: with one, the library sets and checks the superblock's status flags at open.
  made.del = Delete;
  made.ctl = Control;
  const H5FD_mem_t map[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
  std::memcpy(made.fl_map, map, sizeof map);
  return made;
}

}  // namespace h5mirror::vfd
