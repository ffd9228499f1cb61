// A file that is written with mode=remote, below the driver: RemoteMode's `under`.
// There is no local file. The program's writes go to a spool, a nameless sparse file, and the
// session sends them from there (MirroredFile lies above, as over a local file). All other bytes
// are read from the server, at the cut that was opened, through the readers' cache.
//
//   read    written since the open?  the spool
//           else, within the size of the cut that was opened (less what was cut off since): the cut
//           else zeros
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_REMOTE_FILE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_REMOTE_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/owned_fd.h"
#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/host/fork_guard.h"
#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/modes/reader_file.h"
#include "client_vfd/plugin/modes/under_file.h"
#include "client_vfd/plugin/writes/written_bytes.h"

namespace h5mirror::vfd {

class RemoteFile final : public UnderFile {
 public:
  // `host` must outlive it. `cut`: the cut that the file began as; null: it began empty.
  RemoteFile(const HostLibrary& host, std::shared_ptr<const Config> config, ReaderTarget target,
             std::unique_ptr<ReaderFile> cut);

  herr_t Read(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void* buffer) override;
  herr_t Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer) override;
  herr_t Truncate(hid_t dxpl, hbool_t closing) override;
  haddr_t Eof(H5FD_mem_t) const override { return eof_; }

  // The spool's descriptor. Borrowed. The first call makes the spool. -1: it cannot be made, and
  // `error` says why.
  int Spool(std::string* error);
  // The cut that was opened; 0: none.
  int64_t base_cut() const { return base_cut_; }
  // `newest` gives the last cut that the server has confirmed to the session of the file. If the
  // opened cut expires there, reads go on at a cut of that session: bytes that the program has not
  // written are the same in it.
  void SetNewestCut(std::function<int64_t()> newest) { newest_cut_ = std::move(newest); }

 private:
  bool InForkedChild() const { return ForkGeneration() != fork_generation_; }
  herr_t FailRead(int error_number, const std::string& error) const;
  herr_t FailWrite(int error_number, const std::string& error) const;
  std::string SpoolProblem(const char* what, int error_number) const;
  herr_t ReadFromSpool(haddr_t addr, size_t size, char* out) const;
  herr_t ReadFromCut(H5FD_mem_t type, haddr_t addr, size_t size, char* out);
  // Goes on at a cut of the session that writes the file. False: there is none, and `cut_` is as
  // it was.
  bool OpenNewerCut();

  const HostLibrary& host_;
  const std::shared_ptr<const Config> config_;
  const ReaderTarget target_;
  std::unique_ptr<ReaderFile> cut_;
  int64_t base_cut_ = 0;
  uint64_t cut_end_ = 0;  // as far as bytes that were not written are those of `cut_`
  std::function<int64_t()> newest_cut_;
  WrittenBytes written_;
  OwnedFd spool_;
  haddr_t eof_ = 0;
  const unsigned fork_generation_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_REMOTE_FILE_H_
