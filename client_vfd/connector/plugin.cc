// The two functions that HDF5 looks for in a plugin, and the class that it gets.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "client_vfd/connector/callbacks.h"
#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/host/reporter.h"

namespace h5mirror::vol {
namespace {

// 256 to 511 are for connectors that are not registered with The HDF Group.
constexpr H5VL_class_value_t kValue = static_cast<H5VL_class_value_t>(457);
constexpr unsigned kConnectorVersion = 1;

void* CopyInfo(const void* info) {
  void* const copy = std::malloc(sizeof(Settings));
  if (copy != nullptr) std::memcpy(copy, info, sizeof(Settings));
  return copy;
}

herr_t CompareInfo(int* result, const void* left, const void* right) {
  const bool same = left == right ||
                    (left != nullptr && right != nullptr &&
                     *static_cast<const Settings*>(left) == *static_cast<const Settings*>(right));
  *result = same ? 0 : left < right ? -1 : 1;
  return 0;
}

herr_t FreeInfo(void* info) {
  std::free(info);
  return 0;
}

herr_t InfoToText(const void* info, char** text) {
  try {
    *text = ::strdup(SettingsText(*static_cast<const Settings*>(info)).c_str());
    return *text == nullptr ? -1 : 0;
  } catch (...) {
    return -1;
  }
}

// HDF5's pass-through connector passes the settings on with a stray byte of its heap behind them,
// instead of a null. So one byte behind the last ';' is ignored.
std::string Settled(const char* text) {
  std::string settings = text == nullptr ? "" : text;
  if (settings.size() >= 2 && settings[settings.size() - 2] == ';') settings.pop_back();
  return settings;
}

// If a connector cannot be set up, HDF5 does not initialize at all, and some versions crash. So
// wrong settings are reported, and the program goes on with the defaults.
herr_t InfoFromText(const char* text, void** info) {
  try {
    std::string problem;
    const std::optional<Settings> settings = ParseSettings(Settled(text), &problem);
    if (!settings) {
      vfd::Say("", vfd::Audience::kUserToo,
               "HDF5_VOL_CONNECTOR: " + problem + ". The program goes on without ticks");
    }
    const Settings chosen = settings.value_or(Settings{});
    *info = CopyInfo(&chosen);
    return *info == nullptr ? -1 : 0;
  } catch (...) {
    return -1;
  }
}

template <int... kSlot>
void PutCallbacksOf(int slot, H5VL_class_t* cls, std::integer_sequence<int, kSlot...>) {
  ((slot == kSlot ? PutCallbacks<kSlot>(cls) : void()), ...);
}

H5VL_class_t MakeClass(int slot, const H5VL_class_t& native) {
  H5VL_class_t cls = native;
  cls.value = kValue;
  cls.name = "h5mirror";
  cls.conn_version = kConnectorVersion;
  cls.initialize = nullptr;
  cls.terminate = nullptr;
  cls.info_cls = {sizeof(Settings), CopyInfo, CompareInfo, FreeInfo, InfoToText, InfoFromText};
  PutCallbacksOf(slot, &cls, std::make_integer_sequence<int, kSlots>());
  return cls;
}

struct Registered {
  const vfd::HostLibrary* library;
  H5VL_class_t cls;
};

const H5VL_class_t* ClassFor(const vfd::HostLibrary& library) {
  static std::mutex mutex;
  static auto* const registered = new std::vector<std::unique_ptr<Registered>>;
  std::lock_guard lock(mutex);
  for (const auto& each : *registered) {
    if (each->library == &library) return &each->cls;
  }
  const std::optional<Host> host = LoadHost(library);
  const int slot = static_cast<int>(registered->size());
  const H5VL_class_t* const native = host && slot < kSlots ? NativeClassOf(*host) : nullptr;
  if (native == nullptr) return nullptr;
  slots[slot] = new Connector(*host, *native);
  registered->push_back(
      std::make_unique<Registered>(Registered{&library, MakeClass(slot, *native)}));
  return &registered->back()->cls;
}

}  // namespace
}  // namespace h5mirror::vol

H5PL_type_t H5PLget_plugin_type(void) { return H5PL_TYPE_VOL; }

// Called from inside the host: while it is being initialized, or after an open that failed, whose
// errors are to stay.
const void* H5PLget_plugin_info(void) {
  try {
    const auto& library = h5mirror::vfd::FindHost(__builtin_return_address(0));
    if (!library.api.usable) return nullptr;
    const h5mirror::vfd::KeepErrors keep(library.api);
    return h5mirror::vol::ClassFor(library);
  } catch (...) {
    return nullptr;
  }
}
