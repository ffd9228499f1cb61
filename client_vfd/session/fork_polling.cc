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
#include <iterator>
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

std::optional<PollSet> ReadPollSet(int epoll) {
  if (!Is(epoll, "anon_inode:[eventpoll]")) return std::nullopt;
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(epoll));
  if (!info) return std::nullopt;
  PollSet set{epoll, {}};
  for (std::string line; std::getline(info, line);) {
    // "tfd: 6 events: 80000019 data: 7f0000000000 ..."; the others are "pos:", "flags:" and such.
    PollSet::Watch watch{};
    if (std::sscanf(line.c_str(), "tfd: %d events: %" SCNx32 " data: %" SCNx64, &watch.eventfd,
                    &watch.events, &watch.data) != 3) {
      continue;
    }
    if (!Is(watch.eventfd, "anon_inode:[eventfd]")) return std::nullopt;
    set.watched.push_back(watch);
  }
  return set;
}

bool RenewPollSet(const PollSet& set) {
  if (!Replace(set.epoll, epoll_create1(EPOLL_CLOEXEC))) return false;
  return std::all_of(set.watched.begin(), set.watched.end(), [&](const PollSet::Watch& watch) {
    epoll_event event{};
    event.events = watch.events;
    event.data.u64 = watch.data;
    return Replace(watch.eventfd, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) &&
           epoll_ctl(set.epoll, EPOLL_CTL_ADD, watch.eventfd, &event) == 0;
  });
}

void ForkPolling::Begin(absl::FunctionRef<void()> start) {
  const bool first = epolls_.empty();
  const std::vector<int> before = first ? EpollDescriptors() : std::vector<int>();
  start();
  begun_ = true;
  if (!first) return;
  const std::vector<int> now = EpollDescriptors();
  std::set_difference(now.begin(), now.end(), before.begin(), before.end(),
                      std::back_inserter(epolls_));
}

void ForkPolling::Read(bool in_use) {
  sets_.clear();
  is_whole_ = !in_use && ReadSets();
}

bool ForkPolling::ReadSets() {
  if (begun_ && epolls_.empty()) return false;  // Somebody else began gRPC: its set is not known.
  const std::vector<int> live = EpollDescriptors();  // Some were closed at gRPC's end.
  for (const int epoll : epolls_) {
    if (!std::binary_search(live.begin(), live.end(), epoll)) continue;
    std::optional<PollSet> set = ReadPollSet(epoll);
    if (!set.has_value()) return false;
    sets_.push_back(*std::move(set));
  }
  return true;
}

bool ForkPolling::Renew() const {
  bool renewed = is_whole_;
  for (const PollSet& set : sets_) renewed = RenewPollSet(set) && renewed;
  return renewed;
}

}  // namespace h5mirror::vfd
