// The files of one host that the connector looks after, from their open to their close.
#ifndef H5MIRROR_CLIENT_VFD_CONNECTOR_OPEN_FILES_H_
#define H5MIRROR_CLIENT_VFD_CONNECTOR_OPEN_FILES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "H5FDh5mirror.h"
#include "client_vfd/connector/tick_clock.h"
#include "client_vfd/connector/vol_headers.h"

namespace h5mirror::vol {

// A file is known by the pointer that HDF5's own connector has for it. It holds from the open to
// the close of that handle; afterwards the pointer may be another file's.
// Thread-safe; HDF5 calls with its lock, except where it has none.
class OpenFiles {
 public:
  // A file of our driver, open for writing.
  struct Mirrored {
    H5FDh5mirror_api_t driver{};  // its own; holds until the file's close
    int fd = -1;                  // of the local file; -1: there is none
  };

  void AddTicking(void* file, int64_t tick_ns, const Mirrored& mirrored);
  // `file` is another handle of `from`, and is looked after in the same way.
  void CopyTicks(void* from, void* file);
  // The program's own access list, which H5Fget_access_plist gives back; owned from here on.
  void SetProgramList(void* file, hid_t fapl);

  // The program's list, H5I_INVALID_HID if it is what the file was opened with.
  hid_t ProgramList(void* file);
  // Returns the program's list, for the caller to close; H5I_INVALID_HID: none.
  hid_t Remove(void* file);

  // Cheap, and the first question of each call: false if there is nothing to note.
  bool has_ticking() const { return ticking_.load(std::memory_order_relaxed) > 0; }
  bool MayBeDue(int64_t now) const { return now >= due_.load(std::memory_order_relaxed); }

  void OnChange(void* file, int64_t now);
  // The program has flushed it: readers see all that it changed.
  void OnProgramFlush(void* file);
  enum class Flushed {
    kYes,
    kNotNow,  // it is asked again after a tick
    kFailed   // never again
  };
  // Calls `flush` for each file that is due, and notes how it went. `clock` gives the time.
  void FlushDue(const std::function<int64_t()>& clock,
                const std::function<Flushed(void* file, const Mirrored& mirrored)>& flush);

 private:
  struct OpenFile {
    void* file = nullptr;
    bool ticks = false;
    TickClock clock{0};
    Mirrored mirrored{};
    hid_t program_fapl = H5I_INVALID_HID;
  };

  OpenFile* FindLocked(void* file);
  OpenFile& AddLocked(void* file);
  void UpdateLocked();
  static void Note(Flushed how, int64_t began, int64_t ended, TickClock* clock);

  std::mutex mutex_;
  std::vector<OpenFile> files_;
  std::atomic<int> ticking_ = 0;
  std::atomic<int64_t> due_ = TickClock::kNever;  // the earliest of all files
};

}  // namespace h5mirror::vol

#endif  // H5MIRROR_CLIENT_VFD_CONNECTOR_OPEN_FILES_H_
