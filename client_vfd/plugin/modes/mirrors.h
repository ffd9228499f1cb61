// The mirrors of one file that was opened for writing: a session with each server of the
// configuration. Each has its own window, state and resync (docs/design/020-which-side-is-right.md,
// "Several mirrors"). A call that waits begins its work with all of them before it waits for the
// first one.
//
// Called by one thread at a time, as HDF5 does.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_MIRRORS_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_MIRRORS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client_vfd/api/session_api.h"
#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/modes/member_group.h"

namespace h5mirror::vfd {

struct MirrorTarget {
  std::string real_path;
  std::string name;  // under each server's root
  H5mIntent intent = H5M_EXISTING;
  int64_t base_cut = 0;  // of H5M_REMOTE_CHANGE
  H5mStat stat_at_open{};
  uint32_t mode_bits = 0;
  // True: the changes of this open are in the file already, which is consistent when a session
  // begins.
  bool is_written = false;
  // True: other processes may bring parts of its cuts.
  bool takes_parts = false;
  // True: this open holds the file's lock, so no other program has the file open for writing.
  bool is_locked = false;
};

// True: there is no local file.
constexpr bool IsRemote(H5mIntent intent) { return intent >= H5M_REMOTE_CHANGE; }

class Mirrors {
 public:
  // Begins the sessions. A mirror whose session cannot begin is off, and the user is told; the
  // others go on. `host` must outlive this; `fd` is only used here.
  Mirrors(const HostLibrary& host, std::shared_ptr<const Config> config, const MirrorTarget& target,
          int fd);
  Mirrors(const Mirrors&) = delete;
  Mirrors& operator=(const Mirrors&) = delete;

  // For a remote file, before the first write. 0, or an errno value and the reason in `error`.
  int AwaitOpened(std::string* error) const;
  // As in session_api.h, with every session.
  void BeforeWrite(uint64_t offset, uint64_t length) const;
  void AfterWrite(uint64_t offset, uint64_t length, H5mWriteClass write_class) const;
  void BeforeTruncate(uint64_t size_bytes) const;
  void AfterTruncate(uint64_t size_bytes) const;
  void ChildWrote() const;
  // 0: each mirror has acknowledged as asked. 1: one of them is off, behind or diverged.
  int Barrier(H5mBarrier kind, H5mAck ack, const std::string& comment) const {
    BeginBarrier(kind, ack, comment);
    return AwaitBarrier();
  }
  // The same in two steps, for several files.
  void BeginBarrier(H5mBarrier kind, H5mAck ack, const std::string& comment) const;
  int AwaitBarrier() const;
  // Call before Barrier() and Seal(): the group's cut to which that cut belongs; null: none.
  void SetCut(const MemberCut* cut) const;
  // By mirror: the newest number of a group's cut that is durable there.
  std::vector<uint64_t> DurableNumbers() const;
  // part_ticket and end_part of session_api.h. False: there are no parts now, or never, as there is
  // more than one mirror.
  bool TicketForPart(H5mPartTicket* ticket) const;
  bool EndPart(const H5mPartTicket& ticket, const std::vector<H5mRange>& ranges,
               bool is_sent) const;
  // Returns when closed cuts need the local file's bytes no more, for a file that others write.
  void Detach() const;
  void Seal() const;
  // Only Count() may be called afterwards. 0: each mirror has acknowledged as configured; else an
  // errno value, and the reason in `error`.
  int Close(std::string* error);

  size_t Count() const { return mirrors_.size(); }
  const std::string& ServerOf(size_t index) const { return mirrors_[index].server; }
  void StatusOf(size_t index, H5mStatus* status) const;
  // The status of the mirror that is worst off.
  void WorstStatus(H5mStatus* status) const;

 private:
  struct Mirror {
    std::string server;             // as configured; empty: the client's own configuration decides
    H5mSession* session = nullptr;  // null: off
    std::string why_off;
  };

  const H5mSessionApi* api_ = nullptr;
  std::vector<Mirror> mirrors_;
};

H5mChecksum ToApi(Checksum checksum);

// Writes the line of an unchanged file to the report of `h5mirror exec`: no session was begun.
void ReportUnchanged(const HostLibrary& host, const std::shared_ptr<const Config>& config,
                     const MirrorTarget& target);

// Orders states for WorstStatus(): larger is worse.
int BadnessOf(H5mState state);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_MIRRORS_H_
