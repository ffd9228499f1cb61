// A file written with server=embedded, below the driver: EmbeddedMode's `under`. Writes go to the
// file's store, beside the head; the head moves from cut to cut.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_EMBEDDED_FILE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_EMBEDDED_FILE_H_

#include <memory>
#include <string>

#include "client_vfd/api/embedded_api.h"
#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/host/fork_guard.h"
#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/modes/armed_barrier.h"
#include "client_vfd/plugin/modes/local_file.h"
#include "client_vfd/plugin/modes/under_file.h"
#include "client_vfd/plugin/writes/barrier_detector.h"

namespace h5mirror::vfd {

struct EmbeddedTarget {
  std::string given_name;  // as HDF5 passed it, for messages
  std::string real_path;
  H5mIntent intent = H5M_EXISTING;
  Locking locking = Locking::kYes;
  unsigned mode_bits = 0;
};

class EmbeddedFile final : public UnderFile {
 public:
  // Null: it failed, and the reason is on the host's error stack. `host` must outlive the file.
  static std::unique_ptr<EmbeddedFile> Open(const HostLibrary& host,
                                            std::shared_ptr<const Config> config,
                                            const EmbeddedTarget& target);
  // The same file once more, if `host` has it open; else null, and no error.
  static std::unique_ptr<EmbeddedFile> Share(const HostLibrary& host,
                                             std::shared_ptr<const Config> config,
                                             const EmbeddedTarget& target);

  herr_t Read(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void* buffer) override;
  herr_t Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer) override;
  herr_t Truncate(hid_t dxpl, hbool_t closing) override;
  herr_t Flush(hid_t dxpl, hbool_t closing) override;
  haddr_t Eof(H5FD_mem_t) const override { return InForkedChild() ? 0 : api_.size_bytes(file_); }
  herr_t Close() override;

  // Equal for two that share one file, and only for these.
  const void* store() const { return file_; }
  ArmedBarrier& barrier() { return barrier_; }
  // As MirroredFile's.
  bool ArmTick() {
    if (InForkedChild()) return false;
    barrier_.Arm(H5M_TICK_IF_CHANGED, "");
    return true;
  }
  void Status(H5mStatus* status) const {
    if (!InForkedChild()) api_.status(file_, status);
  }

 private:
  EmbeddedFile(const HostLibrary& host, std::shared_ptr<const Config> config,
               const EmbeddedTarget& target, const H5mEmbeddedApi& api);

  bool InForkedChild() const { return ForkGeneration() != fork_generation_; }
  // An errno value and its text go to the error stack; 0: done.
  herr_t Told(int error_number, const char* error) const;
  herr_t CutHere();

  const HostLibrary& host_;
  const std::shared_ptr<const Config> config_;
  const H5mEmbeddedApi& api_;
  H5mEmbedded* file_ = nullptr;
  const std::string name_;  // as HDF5 passed it
  const unsigned fork_generation_;
  // True: HDF5's second, read-only look at a file that it has open.
  bool shares_ = false;
  BarrierDetector detector_;
  ArmedBarrier barrier_;
};

// Brings a head that a crash left between two cuts to the newest durable one, before it is read as
// a plain file. Waits at most the configured timeout for other processes that do this, but not for
// readers of a file with a broken-off edit. On failure tells the user; the file is then read as it
// is.
void HealEmbeddedHead(const Config& config, const EmbeddedTarget& target);
// The same for an edit that a killed h5edit left unfinished (docs/design/034-edit-journal.md). For
// all opens, with any configuration.
void FinishEdit(const Config& config, const EmbeddedTarget& target);

// The reason why a file with an unfinished edit must not be mirrored. Unset: it has no such edit.
Problem EditBrokenOff(const std::string& real_path);

// The reason why a file with a history beside it must not be written without server=embedded.
// Unset: it has no such history.
Problem EmbeddedHistoryBeside(const std::string& real_path);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_EMBEDDED_FILE_H_
