// Keeps messages from being repeated: a program that opens one file a thousand times during an
// outage prints one line.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_HOST_TOLD_ONCE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_HOST_TOLD_ONCE_H_

#include <cstddef>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace h5mirror::vfd {

// The events of files that the user has heard of. Thread-safe; lives as long as the process.
class ToldOnce {
 public:
  // With more files than this, some events are told again.
  static constexpr size_t kEntriesMax = 4096;

  // True for the first `event` of `file` since its last Forget().
  bool IsNews(const std::string& file, const std::string& event);
  // The file is mirrored again: its next event is news.
  void Forget(const std::string& file);

 private:
  std::mutex mutex_;
  std::set<std::pair<std::string, std::string>> told_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_HOST_TOLD_ONCE_H_
