#include "client_vfd/connector/explicit_drivers.h"

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/host/mpio_driver.h"

namespace h5mirror::vol {
namespace {

enum class Named { kOther, kSec2, kStdio, kCore, kDirect, kLog, kMpio };

constexpr std::array kMirrored = {Named::kSec2, Named::kCore, Named::kStdio, Named::kDirect,
                                  Named::kLog};

// HDF5's own defaults of H5Pset_fapl_direct and of the core driver's growth.
constexpr size_t kAlignmentBytes = 4096;
constexpr size_t kCopyBytes = 16 << 20;
constexpr size_t kIncrementBytes = 64 << 10;

herr_t Name(const Host& host, Named driver, hid_t list) {
  switch (driver) {
    case Named::kSec2:
      return host.api.p_set_fapl_sec2(list);
    case Named::kStdio:
      return host.more.p_set_fapl_stdio(list);
    case Named::kCore:
      return host.more.p_set_fapl_core(list, kIncrementBytes, 1);
    case Named::kDirect:
      if (host.api.p_set_fapl_direct == nullptr) return -1;
      return host.api.p_set_fapl_direct(list, kAlignmentBytes, kAlignmentBytes, kCopyBytes);
    case Named::kLog:
      if (host.api.p_set_fapl_log == nullptr) return -1;
      return host.api.p_set_fapl_log(list, nullptr, 0, 0);
    case Named::kMpio:  // Named by its id.
    case Named::kOther:
      break;
  }
  return -1;
}

// A driver has one id, made at its first use. So a list that surely names the driver tells whether
// another list does.
Named DriverOf(const Host& host, hid_t fapl) {
  const hid_t wanted = host.more.p_get_driver(fapl);
  if (wanted >= 0 && wanted == vfd::MpioDriver(host.api)) return Named::kMpio;
  const hid_t sample = host.api.p_copy(fapl);
  if (sample < 0) return Named::kOther;
  Named found = Named::kOther;
  for (const Named driver : kMirrored) {
    if (Name(host, driver, sample) < 0 || host.more.p_get_driver(sample) != wanted) continue;
    found = driver;
    break;
  }
  host.api.p_close(sample);
  return found;
}

bool HasFileImage(const Host& host, hid_t fapl) {
  void* image = nullptr;
  size_t bytes = 0;
  if (host.more.p_get_file_image(fapl, &image, &bytes) < 0) return true;
  if (image != nullptr) host.more.free_memory(image);
  return bytes > 0;
}

// Core reads a whole file into memory at its open, which a program that only reads asked for.
bool IsBackedWriter(const Host& host, hid_t fapl, unsigned flags) {
  size_t increment = 0;
  hbool_t has_backing = false;
  return (flags & H5F_ACC_RDWR) != 0 &&
         host.more.p_get_fapl_core(fapl, &increment, &has_backing) >= 0 && has_backing;
}

std::string ConfigOver(Named named) {
  const char* const config = std::getenv("HDF5_DRIVER_CONFIG");
  std::string text = config == nullptr ? "" : config;
  if (named == Named::kDirect) text += ";under=direct";
  if (named == Named::kLog) text += ";under=log";
  if (named == Named::kMpio) text += ";under=mpio";
  return text;
}

// Property lists that are closed with it.
class Lists {
 public:
  explicit Lists(const Host& host) : host_(host) {}
  ~Lists() {
    for (const hid_t list : lists_) host_.api.p_close(list);
  }
  Lists(const Lists&) = delete;
  Lists& operator=(const Lists&) = delete;
  hid_t Keep(hid_t list) {
    if (list > 0) lists_.push_back(list);
    return list;
  }

 private:
  const Host& host_;
  std::vector<hid_t> lists_;
};

// The arguments of H5Pset_fapl_multi(), also for a split file. Owns the names.
struct MultiDriver {
  std::array<H5FD_mem_t, H5FD_MEM_NTYPES> map{};
  std::array<hid_t, H5FD_MEM_NTYPES> lists{};
  std::array<char*, H5FD_MEM_NTYPES> names{};
  std::array<haddr_t, H5FD_MEM_NTYPES> addresses{};
  hbool_t relax = false;

  MultiDriver() = default;
  ~MultiDriver() {
    for (char* const name : names) std::free(name);
  }
  MultiDriver(const MultiDriver&) = delete;
  MultiDriver& operator=(const MultiDriver&) = delete;
};

// The list for a family, whose members are opened with one list of their own. H5I_INVALID_HID: the
// file is no family, or its members need no other list.
hid_t FamilyList(const Host& host, hid_t fapl, unsigned flags) {
  Lists lists(host);
  hsize_t member_bytes = 0;
  hid_t members = H5I_INVALID_HID;
  if (host.more.p_get_fapl_family(fapl, &member_bytes, &members) < 0) return H5I_INVALID_HID;
  const hid_t mirrored = lists.Keep(MirroringList(host, lists.Keep(members), flags));
  if (mirrored < 0) return H5I_INVALID_HID;
  const hid_t list = host.api.p_copy(fapl);
  if (list < 0 || host.more.p_set_fapl_family(list, member_bytes, mirrored) >= 0) return list;
  host.api.p_close(list);
  return H5I_INVALID_HID;
}

// The same for a split or multi file, with a list for each kind of bytes.
hid_t MultiList(const Host& host, hid_t fapl, unsigned flags) {
  Lists lists(host);
  MultiDriver multi;
  if (host.more.p_get_fapl_multi(fapl, multi.map.data(), multi.lists.data(), multi.names.data(),
                                 multi.addresses.data(), &multi.relax) < 0) {
    return H5I_INVALID_HID;
  }
  bool is_any_mirrored = false;
  for (hid_t& member : multi.lists) {
    if (lists.Keep(member) <= 0) continue;
    const hid_t mirrored = lists.Keep(MirroringList(host, member, flags));
    if (mirrored < 0) continue;
    member = mirrored;
    is_any_mirrored = true;
  }
  const hid_t list = is_any_mirrored ? host.api.p_copy(fapl) : H5I_INVALID_HID;
  if (list < 0 ||
      host.more.p_set_fapl_multi(list, multi.map.data(), multi.lists.data(), multi.names.data(),
                                 multi.addresses.data(), multi.relax) >= 0) {
    return list;
  }
  host.api.p_close(list);
  return H5I_INVALID_HID;
}

}  // namespace

bool HasMembers(const Host& host, hid_t fapl) {
  const vfd::QuietErrors quiet(host.api);
  const vfd::KeepErrors keep(host.api);
  return host.more.p_get_fapl_family(fapl, nullptr, nullptr) >= 0 ||
         host.more.p_get_fapl_multi(fapl, nullptr, nullptr, nullptr, nullptr, nullptr) >= 0;
}

hid_t MirroringList(const Host& host, hid_t fapl, unsigned flags) {
  const vfd::QuietErrors quiet(host.api);
  if (const hid_t list = FamilyList(host, fapl, flags); list >= 0) return list;
  if (const hid_t list = MultiList(host, fapl, flags); list >= 0) return list;
  const Named named = DriverOf(host, fapl);
  if (named == Named::kOther || HasFileImage(host, fapl)) return H5I_INVALID_HID;
  if (named == Named::kCore && !IsBackedWriter(host, fapl, flags)) return H5I_INVALID_HID;
  const hid_t list = host.api.p_copy(fapl);
  if (list < 0) return H5I_INVALID_HID;
  if (host.more.p_set_driver_by_name(list, "h5mirror", ConfigOver(named).c_str()) >= 0) return list;
  host.api.p_close(list);
  return H5I_INVALID_HID;
}

void ShowProgramDriver(const Host& host, hid_t program_fapl, hid_t shown) {
  const vfd::QuietErrors quiet(host.api);
  const hid_t driver = host.more.p_get_driver(program_fapl);
  if (driver >= 0) host.more.p_set_driver(shown, driver, host.api.p_get_driver_info(program_fapl));
}

}  // namespace h5mirror::vol
