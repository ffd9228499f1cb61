// The mirrors' half of one file that was opened for writing. Watches the local I/O, finds the
// consistent points and hands extents to the sessions. Their module is loaded, and the sessions are
// begun, only when the bytes really change: an untouched "r+" open rewrites an identical
// superblock, and probes open and close a file without any change.
//
// In mode=remote there is no local file but a spool (remote_file.h), and the server has the only
// copy. No byte is written before the server has taken the session. A flush or a close fails if the
// server did not acknowledge its cut as configured.
//
// In other modes nothing here fails an HDF5 call: the local I/O decides the result, and the mirror
// falls behind or off. One exception: with on_outage=fail a flush reports the loss of the mirror.
// The local I/O was done by then, and the file stays sound.
//
// Called by one thread at a time, as HDF5 does.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_MIRRORED_FILE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_MIRRORED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client_vfd/api/session_api.h"
#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/modes/armed_barrier.h"
#include "client_vfd/plugin/modes/member_group.h"
#include "client_vfd/plugin/modes/mirrors.h"
#include "client_vfd/plugin/modes/remote_file.h"
#include "client_vfd/plugin/modes/under_file.h"
#include "client_vfd/plugin/writes/barrier_detector.h"

namespace h5mirror::vfd {

class MirroredFile final : public FileBytes, public GroupMember {
 public:
  // `host` and `under` must outlive it. Of a local file, with its descriptor; or with mode=remote.
  MirroredFile(const HostLibrary& host, std::shared_ptr<const Config> config, MirrorTarget target,
               UnderFile& under, int fd)
      : MirroredFile(host, std::move(config), std::move(target), under, fd, nullptr) {}
  MirroredFile(const HostLibrary& host, std::shared_ptr<const Config> config, MirrorTarget target,
               RemoteFile& under)
      : MirroredFile(host, std::move(config), std::move(target), under, -1, &under) {}

  // For a remote file that this open makes: asks the server now, and not at the first write. 0, or
  // an errno value and the reason in `error`.
  int BeginNow(std::string* error) { return BeginRemote(error); }

  herr_t Read(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void* buffer) override {
    return under_.Read(type, dxpl, addr, size, buffer);
  }
  herr_t Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer) override;
  herr_t Truncate(hid_t dxpl, hbool_t closing) override;
  herr_t Flush(hid_t dxpl, hbool_t closing) override;
  haddr_t Eof(H5FD_mem_t type) const override { return under_.Eof(type); }
  // Around the close of the under file. BeforeClose() does not fail.
  herr_t BeforeClose() override;
  herr_t AfterClose();
  ~MirroredFile() override { LeaveGroup(); }

  // Begins the sessions. For a file that the ranks of a parallel program write by themselves
  // (parallel/): its bytes are there already.
  void AttachNow() { Attach(); }
  // Since the last cut, the range was written; the file was cut off to `size_bytes`.
  void NoteWritten(uint64_t offset, uint64_t length, H5mWriteClass write_class);
  void NoteSize(uint64_t size_bytes);
  // Before CutNoted() or SealNoted(): as Mirrors.
  bool TicketForPart(H5mPartTicket* ticket) const { return mirrors_->TicketForPart(ticket); }
  bool EndPart(const H5mPartTicket& ticket, const std::vector<H5mRange>& ranges,
               bool is_sent) const {
    return mirrors_->EndPart(ticket, ranges, is_sent);
  }
  // The file is consistent. As Flush(), and returns when the cut needs the file's bytes no more.
  herr_t CutNoted();
  // After a clean close, before AfterClose().
  void SealNoted();

  void OpenedForSwmr() { detector_.SetSwmr(true); }

  // It is one of several files that HDF5 has open as one. Holds `group`, also beyond its own close.
  void Join(std::shared_ptr<MemberGroup> group);
  const std::shared_ptr<MemberGroup>& group() const { return group_; }

  const std::string& MirrorName() const override { return target_.name; }
  bool IsAttached() const override { return mirrors_ != nullptr; }
  bool HasChanged() const override { return has_changed_; }
  std::vector<uint64_t> DurableNumbers() const override;
  void SetCut(const MemberCut* cut) override;
  ArmedBarrier& barrier() override { return barrier_; }
  ArmedBarrier::Request BeginBarrier() override { return barrier_.Begin(*config_); }
  void AskCut(const ArmedBarrier::Request& request) override;
  int AwaitCut() override { return mirrors_ != nullptr ? mirrors_->AwaitBarrier() : 1; }
  // False: it is a forked child's, whose flushes make no cuts.
  bool ArmTick();
  // The status of the mirror that is worst off.
  void Status(H5mStatus* status) const;
  // The mirrors' servers, and the status of one mirror.
  std::vector<std::string> Servers() const;
  void StatusOf(size_t index, H5mStatus* status) const;

 private:
  MirroredFile(const HostLibrary& host, std::shared_ptr<const Config> config, MirrorTarget target,
               UnderFile& under, int fd, RemoteFile* remote);

  bool InForkedChild() const;
  void NoteChildWrite();
  // True: the file has these bytes there already.
  bool EqualsLocal(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer);
  // For a member: true if the write changes more than the flags that name a writer. HDF5 locks such
  // files and rewrites unchanged blocks of the superblock.
  bool IsChange(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer);
  // False, only in mode=remote: it failed, and the reason is on the error stack.
  bool Attach();
  int BeginRemote(std::string* error);
  void WatchSuperblock(haddr_t addr, size_t size, const void* buffer);
  void CutHere();
  void LeaveGroup();
  // With on_outage=fail: why a mirror is lost, for the user; unset: none is.
  std::optional<std::string> LostMirror() const;
  herr_t FailFlush();
  herr_t FailRemoteFlush(Moment moment);

  const HostLibrary& host_;
  const std::shared_ptr<const Config> config_;
  const MirrorTarget target_;
  UnderFile& under_;
  const int fd_;
  RemoteFile* const remote_;  // `under_` in mode=remote; else null
  const unsigned fork_generation_;
  BarrierDetector detector_;
  std::unique_ptr<Mirrors> mirrors_;  // null: no byte was changed yet
  bool has_changed_ = false;          // since the last cut of its group
  ArmedBarrier barrier_;
  std::shared_ptr<MemberGroup> group_;  // null: it is a file by itself
  std::unique_ptr<char[]> scratch_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_MIRRORED_FILE_H_
