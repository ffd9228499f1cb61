#include "client_vfd/session/fork_polling.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace h5mirror::vfd {
namespace {

namespace fs = std::filesystem;

bool Is(int fd, const char* what) {
  std::error_code error;
  return fs::read_symlink("/proc/self/fd/" + std::to_string(fd), error) == what;
}

// Moves `fresh` to the number `fd`, in place of what was there.
bool Replace(int fd, int fresh) {
  const bool done = fresh >= 0 && dup3(fresh, fd, O_CLOEXEC) == fd;
  if (fresh >= 0) close(fresh);
  return done;
}

// One line of the kernel's "tfd: 6 events: 80000019 data: 7f0000000000 ...".
bool Watch(int epoll, const char* line) {
  int target = -1;
  uint32_t events = 0;
  uint64_t data = 0;
  if (std::sscanf(line, "tfd: %d events: %" SCNx32 " data: %" SCNx64, &target, &events, &data) != 3)
    return true;  // "pos:", "flags:" and such.
  if (!Is(target, "anon_inode:[eventfd]")) return false;
  if (!Replace(target, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) return false;
  epoll_event event{};
  event.events = events;
  event.data.u64 = data;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, target, &event) == 0;
}

}  // namespace

std::vector<int> EpollDescriptors() {
  std::vector<int> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", error)) {
    const int fd = std::atoi(entry.path().filename().c_str());
    if (Is(fd, "anon_inode:[eventpoll]")) found.push_back(fd);
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool RenewEpoll(int epoll) {
  if (!Is(epoll, "anon_inode:[eventpoll]")) return false;
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(epoll));
  if (!info) return false;
  const int fresh = epoll_create1(EPOLL_CLOEXEC);
  if (fresh < 0) return false;
  bool all = true;
  for (std::string line; all && std::getline(info, line);) all = Watch(fresh, line.c_str());
  return Replace(epoll, fresh) && all;
}

}  // namespace h5mirror::vfd
