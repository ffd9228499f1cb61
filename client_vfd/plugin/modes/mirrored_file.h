// The mirrors' half of one file that was opened for writing: watches the local I/O, finds the
// consistent points and hands extents to the sessions. Their module is loaded, and the
// sessions begun, only when the bytes really change: an untouched "r+" open rewrites an identical
// superblock, and probes open and close with nothing between.
//
// In mode=remote there is no local file but a spool (remote_file.h), and the server's is the only
// copy. Nothing is written before the server has taken the session; a flush or a close whose cut it
// did not acknowledge as configured fails.
//
// Called by one thread at a time, as HDF5 does. Else nothing here fails an HDF5 call: local I/O
// decides the result, and the mirror falls behind or off. With on_outage=fail a flush reports the
// loss of the mirror, after the local I/O was done all the same: the file stays sound.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_MIRRORED_FILE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_MIRRORED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client_vfd/api/session_api.h"
#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/modes/file_bytes.h"
#include "client_vfd/plugin/modes/mirrors.h"
#include "client_vfd/plugin/writes/barrier_detector.h"

namespace h5mirror::vfd {

class MirroredFile final : public FileBytes {
 public:
  // `host` and `under` must outlive it; `fd` is the under driver's, and not needed in mode=remote.
  MirroredFile(const HostLibrary& host, std::shared_ptr<const Config> config, MirrorTarget target,
               H5FD_t* under, int fd);

  // Of a remote file that this open makes: the server is asked now, and not at the first write. 0,
  // or an errno value and the reason in `error`.
  int BeginNow(std::string* error) { return BeginRemote(error); }

  herr_t Read(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void* buffer) override {
    return under_->cls->read(under_, type, dxpl, addr, size, buffer);
  }
  herr_t Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer) override;
  herr_t Truncate(hid_t dxpl, hbool_t closing) override;
  herr_t Flush(hid_t dxpl, hbool_t closing) override;
  haddr_t Eof(H5FD_mem_t type) const override { return under_->cls->get_eof(under_, type); }
  // Around the close of the under driver. BeforeClose() does not fail.
  herr_t BeforeClose() override;
  herr_t AfterClose();

  void OpenedForSwmr() { detector_.SetSwmr(true); }

  // The next consistent flush becomes this barrier instead of a tick, and waits as a commit or a
  // tick does. FinishBarrier tells how it went: 0 acknowledged as configured, 1 behind or off.
  void ArmBarrier(H5mBarrier kind, std::string comment);
  int FinishBarrier();
  // Of the mirror that is worst off.
  void Status(H5mStatus* status) const;
  // Where the mirrors are, and how one of them does.
  std::vector<std::string> Servers() const;
  void StatusOf(size_t index, H5mStatus* status) const;

 private:
  bool InForkedChild() const;
  void NoteChildWrite();
  // True when the file already holds these bytes there.
  bool EqualsLocal(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer);
  // False: it fails, and the reason is on the error stack. Only in mode=remote.
  bool Attach();
  int BeginRemote(std::string* error);
  void WatchSuperblock(haddr_t addr, size_t size, const void* buffer);
  void CutHere();
  // on_outage=fail: why a mirror is lost, for the user; else nothing.
  std::optional<std::string> LostMirror() const;
  herr_t FailFlush();
  herr_t FailRemoteFlush(Moment moment);

  const HostLibrary& host_;
  const std::shared_ptr<const Config> config_;
  const MirrorTarget target_;
  H5FD_t* const under_;
  const int fd_;
  const bool is_remote_;
  const unsigned fork_generation_;
  BarrierDetector detector_;
  std::unique_ptr<Mirrors> mirrors_;  // null: nothing was changed yet
  H5mBarrier armed_ = H5M_TICK;
  std::string armed_comment_;
  int barrier_result_ = 1;
  bool barrier_done_ = false;
  std::unique_ptr<char[]> scratch_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_MIRRORED_FILE_H_
