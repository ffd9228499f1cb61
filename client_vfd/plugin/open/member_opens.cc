#include "client_vfd/plugin/open/member_opens.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/random.h"
#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/modes/linked_open.h"
#include "client_vfd/plugin/modes/mirrored_file.h"

namespace h5mirror::vfd {
namespace {

using GroupPtr = std::shared_ptr<MemberGroup>;

int64_t NowNs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

GroupPtr NewGroup() { return std::make_shared<MemberGroup>(RandomBytes16(), NowNs); }

// The newest open of this thread. It holds as long as no file was closed since.
struct LastOpen {
  MirroredFile* file = nullptr;
  const Touched* touched = nullptr;
  uint64_t closes = 0;
};
thread_local LastOpen last_open;
std::atomic<uint64_t> closes = 0;

// A list that only the library holds. Not the default one, with which any file may be opened; nor
// one of a file that leads to others.
bool IsOfTheLibrary(const HostLibrary& host, hid_t fapl) {
  const HostApi& api = host.api;
  const bool is_known = api.usable && api.i_get_ref != nullptr && api.p_default_fapl != nullptr;
  if (!is_known || fapl <= 0 || fapl == *api.p_default_fapl) return false;
  if (RootOfLinkedOpen(host, fapl) != nullptr) return false;
  const QuietErrors quiet(api);
  const KeepErrors keep(api);
  return api.i_get_ref(fapl) == 0;
}

GroupPtr GroupOfList(const HostLibrary& host, hid_t fapl) {
  static auto* const mutex = new std::mutex;
  static auto* const groups =
      new std::map<std::pair<const HostLibrary*, hid_t>, std::weak_ptr<MemberGroup>>;
  const std::lock_guard lock(*mutex);
  std::erase_if(*groups, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<MemberGroup>& known = (*groups)[{&host, fapl}];
  GroupPtr group = known.lock();
  if (group == nullptr) known = group = NewGroup();
  return group;
}

// The group of the file that was opened before in the same call; null: that was another call.
GroupPtr GroupOfLastOpen() {
  const LastOpen& last = last_open;
  const bool is_same_call = last.file != nullptr &&
                            last.closes == closes.load(std::memory_order_relaxed) &&
                            !last.touched->is_touched;
  if (!is_same_call) return nullptr;
  if (last.file->group() == nullptr) last.file->Join(NewGroup());
  return last.file->group();
}

}  // namespace

void JoinMembers(const HostLibrary& host, hid_t fapl, MirroredFile& file, const Touched& touched) {
  GroupPtr group = IsOfTheLibrary(host, fapl) ? GroupOfList(host, fapl) : GroupOfLastOpen();
  if (group != nullptr) file.Join(std::move(group));
  last_open = {&file, &touched, closes.load(std::memory_order_relaxed)};
}

void ForgetOpen() { closes.fetch_add(1, std::memory_order_relaxed); }

}  // namespace h5mirror::vfd
