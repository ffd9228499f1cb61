#include "client_vfd/connector/connector.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "H5FDh5mirror.h"
#include "client_vfd/connector/explicit_drivers.h"
#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/host/reporter.h"

namespace h5mirror::vol {
namespace {

// Calls of HDF5 under way in this thread.
thread_local int depth = 0;

int64_t NowNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// A few nanoseconds, exact to a tick of the kernel: enough for the question of each call.
int64_t RoughNow() { return NowNs(CLOCK_MONOTONIC_COARSE); }

// No tick flushes with less free space than this. A flush that fails half-way breaks HDF5's cache:
// each later flush fails too, and so does the close ("slist already enabled"). Without the tick the
// program might have gone on with a full disk. The bound is more than caches of metadata and chunks
// usually hold.
constexpr uint64_t kRoomBytes = 256 << 20;
constexpr int64_t kMembersTickNs = 1'000'000'000;

bool HasRoom(int fd) {
  struct statvfs status {};
  if (fd < 0 || fstatvfs(fd, &status) != 0) return true;
  return uint64_t{status.f_bavail} * status.f_frsize >= kRoomBytes;
}

// HDF5 is C, and the program's call must not fail because of us. So an exception of `body` (out of
// memory) is dropped.
template <typename Body>
void Quietly(Body body) noexcept {
  try {
    body();
  } catch (...) {
  }
}

}  // namespace

Connector::Connector(Host host, const H5VL_class_t& native) : host_(host), native_(native) {}

Connector::Call::Call(Connector& connector) {
  if (depth++ == 0 && connector.files_.MayBeDue(RoughNow())) {
    Quietly([&] { connector.FlushDue(); });
  }
}

Connector::Call::~Call() { --depth; }

void Connector::FlushDue() {
  files_.FlushDue(
      [] { return NowNs(CLOCK_MONOTONIC); },
      [this](void* file, const OpenFiles::Mirrored& mirrored) { return Flush(file, mirrored); });
}

OpenFiles::Flushed Connector::Flush(void* file, const OpenFiles::Mirrored& mirrored) {
  if (!HasRoom(mirrored.fd)) return OpenFiles::Flushed::kNotNow;
  const H5FDh5mirror_api_t& driver = mirrored.driver;
  // A forked child's flush would only write to its parent's file.
  if (driver.arm_tick(driver.file) != 0) return OpenFiles::Flushed::kFailed;
  H5VL_file_specific_args_t args{};
  args.op_type = H5VL_FILE_FLUSH;
  args.args.flush.obj_type = H5I_FILE;
  args.args.flush.scope = H5F_SCOPE_LOCAL;
  const herr_t flushed = native_.file_cls.specific(file, &args, H5P_DEFAULT, nullptr);
  driver.finish(driver.file);
  if (flushed >= 0) return OpenFiles::Flushed::kYes;
  // The program did not ask for this flush, so it must not find the flush's error on its stack.
  host_.more.e_clear(H5E_DEFAULT);
  return OpenFiles::Flushed::kFailed;
}

void Connector::NoteChange(void* object, H5I_type_t type) {
  if (!files_.has_ticking()) return;
  void* file = object;
  if (type != H5I_FILE) {
    H5VL_loc_params_t self{};
    self.obj_type = type;
    self.type = H5VL_OBJECT_BY_SELF;
    H5VL_object_get_args_t args{};
    args.op_type = H5VL_OBJECT_GET_FILE;
    args.args.get_file.file = &file;
    if (native_.object_cls.get(object, &self, &args, H5P_DEFAULT, nullptr) < 0) return;
  }
  Quietly([&] { files_.OnChange(file, RoughNow()); });
}

std::optional<Settings> Connector::SettingsOf(hid_t fapl) const {
  void* info = nullptr;
  if (host_.more.p_get_vol_info(fapl, &info) < 0 || info == nullptr) return std::nullopt;
  const Settings settings = *static_cast<const Settings*>(info);
  std::free(info);
  return settings;
}

herr_t Connector::GetHandle(void* file, hid_t fapl, void** handle) const {
  H5VL_native_file_optional_args_t native_args{};
  native_args.get_vfd_handle.fapl_id = fapl;
  native_args.get_vfd_handle.file_handle = handle;
  H5VL_optional_args_t args{.op_type = H5VL_NATIVE_FILE_GET_VFD_HANDLE, .args = &native_args};
  return native_.file_cls.optional(file, &args, H5P_DEFAULT, nullptr);
}

bool Connector::IsMirrored(void* file, hid_t fapl, H5FDh5mirror_api_t* driver) const {
  const hid_t list = host_.api.p_copy(fapl);
  if (list < 0) return false;
  *driver = {};
  driver->version = H5FD_H5MIRROR_API_VERSION;
  H5FDh5mirror_api_t* filled = driver;
  void* handle = nullptr;
  bool is_mirrored = false;
  // For a multi file: the member that uses this list. Other drivers ignore it.
  host_.more.p_set_multi_type(list, H5FD_MEM_SUPER);
  if (host_.more.p_insert(list, H5FD_H5MIRROR_PROPERTY, sizeof filled, &filled, nullptr, nullptr,
                          nullptr, nullptr, nullptr, nullptr) >= 0 &&
      GetHandle(file, list, &handle) >= 0 && driver->file != nullptr) {
    H5FDh5mirror_status_t status{};
    driver->status(driver->file, &status);
    is_mirrored = status.state != H5FD_H5MIRROR_OFF;
  }
  host_.api.p_close(list);
  return is_mirrored;
}

int Connector::DescriptorOf(void* file, hid_t fapl) const {
  void* handle = nullptr;
  if (GetHandle(file, fapl, &handle) < 0 || handle == nullptr) return -1;
  return *static_cast<const int*>(handle);
}

void Connector::LookAfter(void* file, unsigned flags, const Settings& settings, hid_t fapl) {
  const bool writes = (flags & (H5F_ACC_RDWR | H5F_ACC_TRUNC | H5F_ACC_EXCL)) != 0;
  if (settings.tick_ns == 0 || !writes) return;
  OpenFiles::Mirrored mirrored;
  if (!IsMirrored(file, fapl, &mirrored.driver)) return;
  mirrored.fd = DescriptorOf(file, fapl);
  // A cut of several members is a version of each.
  const bool has_members = HasMembers(host_, fapl);
  const int64_t tick_ns = std::max(settings.tick_ns, has_members ? kMembersTickNs : 0);
  files_.AddTicking(file, tick_ns, mirrored);
}

template <typename Open>
void* Connector::OpenWith(unsigned flags, hid_t fapl, Open open) {
  Settings settings;
  hid_t list = H5I_INVALID_HID;
  Quietly([&] {
    vfd::ReportLoaded(host_.library, "connector_loaded");  // once, and once more after a fork
    settings = SettingsOf(fapl).value_or(Settings{});
    if (settings.all_drivers) list = MirroringList(host_, fapl, flags);
  });
  const bool is_ours = list >= 0;
  void* const file = open(is_ours ? list : fapl);
  if (file != nullptr) {
    Quietly([&] {
      LookAfter(file, flags, settings, is_ours ? list : fapl);
      if (is_ours) files_.SetProgramList(file, host_.api.p_copy(fapl));
    });
  }
  if (is_ours) {
    const vfd::KeepErrors keep(host_.api);
    host_.api.p_close(list);
  }
  return file;
}

void* Connector::CreateFile(const char* name, unsigned flags, hid_t fcpl, hid_t fapl, hid_t dxpl,
                            void** req) {
  return OpenWith(flags | H5F_ACC_RDWR, fapl, [&](hid_t list) {
    return native_.file_cls.create(name, flags, fcpl, list, dxpl, req);
  });
}

void* Connector::OpenFile(const char* name, unsigned flags, hid_t fapl, hid_t dxpl, void** req) {
  return OpenWith(flags, fapl,
                  [&](hid_t list) { return native_.file_cls.open(name, flags, list, dxpl, req); });
}

herr_t Connector::GetOfFile(void* file, H5VL_file_get_args_t* args, hid_t dxpl, void** req) {
  const herr_t result = native_.file_cls.get(file, args, dxpl, req);
  if (result >= 0 && args->op_type == H5VL_FILE_GET_FAPL) {
    Quietly([&] {
      const hid_t program_fapl = files_.ProgramList(file);
      if (program_fapl >= 0) ShowProgramDriver(host_, program_fapl, args->args.get_fapl.fapl_id);
    });
  }
  return result;
}

herr_t Connector::CloseFile(void* file, hid_t dxpl, void** req) {
  const hid_t program_fapl = files_.Remove(file);
  const herr_t result = native_.file_cls.close(file, dxpl, req);
  if (program_fapl >= 0) {
    const vfd::KeepErrors keep(host_.api);
    host_.api.p_close(program_fapl);
  }
  return result;
}

bool Connector::IsAsked(const H5VL_file_specific_args_t& is_accessible) const {
  const char* const chosen = std::getenv("HDF5_VOL_CONNECTOR");
  if (chosen != nullptr && std::string_view(chosen).starts_with("h5mirror")) return true;
  const vfd::KeepErrors keep(host_.api);
  return SettingsOf(is_accessible.args.is_accessible.fapl_id).has_value();
}

void Connector::NoteReopened(void* from, void* file) {
  Quietly([&] {
    files_.CopyTicks(from, file);
    const hid_t program_fapl = files_.ProgramList(from);
    if (program_fapl >= 0) files_.SetProgramList(file, host_.api.p_copy(program_fapl));
  });
}

void Connector::NoteFlushed(void* file) {
  if (!files_.has_ticking()) return;
  Quietly([&] { files_.OnProgramFlush(file); });
}

}  // namespace h5mirror::vol
