#include "client_vfd/plugin/driver_api.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "H5FDh5mirror.h"
#include "client_vfd/plugin/config/file_url.h"
#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/host/session_loader.h"

namespace h5mirror::vfd {
namespace {

DriverFile& Of(void* file) { return *static_cast<DriverFile*>(file); }

void ApiArm(void* file, int commit, const char* comment) {
  Of(file).ArmBarrier(commit != 0 ? H5M_COMMIT : H5M_TICK, comment);
}

int ApiArmTick(void* file) { return Of(file).ArmTick() ? 0 : 1; }

int ApiFinish(void* file) { return Of(file).FinishBarrier(); }

void Tell(const H5mStatus& status, H5FDh5mirror_status_t* out) {
  out->state = static_cast<H5FDh5mirror_state_t>(status.state);
  out->cut = status.cut;
  out->version = status.version;
  out->pending_bytes = status.pending_bytes;
  out->behind_since_ns = status.behind_since_ns;
  static_assert(sizeof out->message == sizeof status.message);
  std::memcpy(out->message, status.message, sizeof out->message);
}

void ApiStatus(void* file, H5FDh5mirror_status_t* out) {
  H5mStatus status{};
  Of(file).Status(&status);
  Tell(status, out);
}

unsigned ApiMirrorCount(void* file) { return static_cast<unsigned>(Of(file).Servers().size()); }

int ApiMirrorStatus(void* file, unsigned index, H5FDh5mirror_status_t* out, char* server,
                    size_t size) {
  const std::vector<std::string> servers = Of(file).Servers();
  if (index >= servers.size()) return -1;
  if (out != nullptr) {
    H5mStatus status{};
    Of(file).StatusOf(index, &status);
    Tell(status, out);
  }
  if (server != nullptr) std::snprintf(server, size, "%s", servers[index].c_str());
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
                !target              ? "not an h5mirror URL; expected h5mirror://HOST[:PORT]/NAME"
                : session == nullptr ? load_error
                                     : std::string(error.data()));
  return -1;
}

int ApiWait(void* file, const char* url, int64_t after_cut, int timeout_ms, int64_t* cut) {
  try {
    return WaitForCut(Of(file).host(), url, after_cut, timeout_ms, cut);
  } catch (...) {
    return -1;
  }
}

}  // namespace

bool FillApi(DriverFile& file, hid_t fapl) {
  const HostApi& api = file.host().api;
  if (!api.usable || fapl <= 0) return false;
  const QuietErrors quiet(api);
  H5FDh5mirror_api_t* out = nullptr;
  if (api.p_exist(fapl, H5FD_H5MIRROR_PROPERTY) <= 0 ||
      api.p_get(fapl, H5FD_H5MIRROR_PROPERTY, &out) < 0 || out == nullptr || out->version < 1 ||
      out->version > H5FD_H5MIRROR_API_VERSION) {
    return false;
  }
  out->file = &file;
  out->arm = ApiArm;
  out->finish = ApiFinish;
  out->status = ApiStatus;
  if (out->version < 2) return true;  // Its struct ends here.
  out->mirror_count = ApiMirrorCount;
  out->mirror_status = ApiMirrorStatus;
  if (out->version < 3) return true;
  out->wait = ApiWait;
  if (out->version < 4) return true;
  out->arm_tick = ApiArmTick;
  return true;
}

}  // namespace h5mirror::vfd
