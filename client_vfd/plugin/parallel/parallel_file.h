// under=mpio: one file that several ranks of a program have open together.
//
// Each rank reads and writes through HDF5's own mpio driver and notes the pages that it writes. At
// a collective H5Fflush, and at the close, the notes come to rank 0 (Ranks::Gather). Rank 0 makes
// the cut (RootMirror), and the others wait for it (Ranks::Broadcast): the file must not change
// before the cut's bytes are on their way. docs/design/039-parallel-writers.md.
//
//   rank 1..n   write, note             gather -> wait ......................... go on
//   rank 0      write, note, mpio sync  gather -> sessions: note, cut, detach -> go on
//
// HDF5 calls Flush, Truncate and Close of such a file on all ranks, in the same order. So each rank
// finds the same consistent moments, whatever fails on it. Failures are told to rank 0, which then
// makes no cut.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_PARALLEL_FILE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_PARALLEL_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client_vfd/plugin/modes/driver_file.h"
#include "client_vfd/plugin/modes/left_out_bytes.h"
#include "client_vfd/plugin/modes/open_files.h"
#include "client_vfd/plugin/modes/parallel_bytes.h"
#include "client_vfd/plugin/parallel/mpi.h"
#include "client_vfd/plugin/parallel/node_senders.h"
#include "client_vfd/plugin/parallel/noted_pages.h"
#include "client_vfd/plugin/parallel/root_mirror.h"
#include "client_vfd/plugin/writes/barrier_detector.h"

namespace h5mirror::vfd {

class ParallelFile final : public DriverFile, public ParallelBytes {
 public:
  enum class Notes { kKept, kNone };

  // `under` is mpio's. `notes` is the same on all ranks; kNone: no server gets the file.
  ParallelFile(const HostLibrary& host, std::unique_ptr<UnderFile> under, const FileKey& key,
               std::unique_ptr<Ranks> ranks, Notes notes, RootPtr link_root);
  ~ParallelFile() override;

  // On rank 0, before the first call of HDF5's: of a file with Notes::kKept, and of one that is
  // left out.
  void SetRoot(std::unique_ptr<RootMirror> root) { root_ = std::move(root); }
  // On all ranks: rank 0 does not send alone.
  void SetSenders(std::unique_ptr<NodeSenders> senders) { senders_ = std::move(senders); }
  void SetLeftOut(std::unique_ptr<LeftOutBytes> left_out) { left_out_ = std::move(left_out); }

  herr_t Read(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void* buffer) override;
  herr_t Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer) override;
  herr_t ReadVector(const VectorIo& io, void** buffers) override;
  herr_t WriteVector(const VectorIo& io, const void** buffers) override;
  herr_t ReadSelection(const SelectionIo& io, void** buffers) override;
  herr_t WriteSelection(const SelectionIo& io, const void** buffers) override;
  herr_t Truncate(hid_t dxpl, hbool_t closing) override;
  herr_t Flush(hid_t dxpl, hbool_t closing) override;
  haddr_t Eof(H5FD_mem_t type) const override { return under().Eof(type); }
  herr_t Close() override;
  ParallelBytes* Parallel() override { return this; }
  // Files that this leads to are opened by the same ranks with the same configuration. The
  // program's default one would not name mpio.
  RootPtr LinkRoot() const override { return link_root_; }

  // Of rank 0's mirrors; other ranks know nothing of them.
  void ArmBarrier(H5mBarrier kind, const char* comment) override;
  int FinishBarrier() override { return verdict_.barrier; }
  void Status(H5mStatus* status) const override;
  std::vector<std::string> Servers() const override;
  void StatusOf(size_t index, H5mStatus* status) const override;

 private:
  // Rank 0's message to the others about a cut.
  struct Verdict {
    int32_t is_lost = 0;  // on_outage=fail, and the mirror is lost
    int32_t barrier = 1;  // as FinishBarrier()
  };

  NotedPages& PagesOf(H5FD_mem_t type) { return type == H5FD_MEM_DRAW ? raw_ : metadata_; }
  void OnChange() {
    if (left_out_ != nullptr) left_out_->Tell();
  }
  // Remembers a failure for rank 0; returns `result`.
  herr_t Noted(herr_t result);
  RankNotes TakeNotes();
  // The ranks' notes come to rank 0, and their bytes to its mirrors. At rank 0: hands the notes of
  // all ranks to the mirrors. True: no call of any has failed.
  bool Exchange();
  herr_t CutTogether();
  void CloseTogether(Moment moment);

  const std::unique_ptr<Ranks> ranks_;
  const Notes notes_;
  const RootPtr link_root_;
  std::unique_ptr<NodeSenders> senders_;  // null: rank 0 sends all
  std::unique_ptr<RootMirror> root_;
  std::unique_ptr<LeftOutBytes> left_out_;
  NotedPages raw_;
  NotedPages metadata_;
  bool has_failed_ = false;
  bool is_incomplete_ = false;
  BarrierDetector detector_;
  Verdict verdict_;
  OpenMark mark_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_PARALLEL_FILE_H_
