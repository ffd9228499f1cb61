#include "client_vfd/plugin/parallel/parallel_file.h"

#include <cerrno>
#include <utility>

#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/modes/local_mode.h"
#include "client_vfd/plugin/parallel/selections.h"

namespace h5mirror::vfd {
namespace {

// Without selection I/O a collective write of raw data comes with one element of an MPI datatype
// that only mpio sees: as a write of one byte, or of none (H5Dmpio.c, H5FDmpio.c).
bool MayBeOfADatatype(H5FD_mem_t type, size_t size) { return type == H5FD_MEM_DRAW && size <= 1; }

}  // namespace

ParallelFile::ParallelFile(const HostLibrary& host, std::unique_ptr<UnderFile> under,
                           const FileKey& key, std::unique_ptr<Ranks> ranks, Notes notes,
                           RootPtr link_root)
    : DriverFile(host, std::move(under), LocalIdentity(key)),
      ranks_(std::move(ranks)),
      notes_(notes),
      link_root_(std::move(link_root)),
      mark_(key) {}

ParallelFile::~ParallelFile() = default;

herr_t ParallelFile::Noted(herr_t result) {
  if (result < 0) has_failed_ = true;
  return result;
}

herr_t ParallelFile::Read(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void* buffer) {
  return under().Read(type, dxpl, addr, size, buffer);
}

herr_t ParallelFile::Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
                           const void* buffer) {
  OnChange();
  if (MayBeOfADatatype(type, size)) is_incomplete_ = true;
  PagesOf(type).Add(addr, size);
  return Noted(under().Write(type, dxpl, addr, size, buffer));
}

herr_t ParallelFile::ReadVector(const VectorIo& io, void** buffers) {
  H5FD_t* const file = under().HostFileBelow();
  return file->cls->read_vector(file, io.dxpl, io.count, io.types, io.addresses, io.sizes, buffers);
}

// A size of 0, or a type of H5FD_MEM_NOLIST, stands for the one before it, and for all that follow
// (H5FDdevelop.h).
herr_t ParallelFile::WriteVector(const VectorIo& io, const void** buffers) {
  OnChange();
  size_t size = 0;
  H5FD_mem_t type = H5FD_MEM_DEFAULT;
  bool repeats_size = false, repeats_type = false;
  for (uint32_t i = 0; i < io.count; ++i) {
    repeats_size = repeats_size || io.sizes[i] == 0;
    repeats_type = repeats_type || io.types[i] == H5FD_MEM_NOLIST;
    if (!repeats_size) size = io.sizes[i];
    if (!repeats_type) type = io.types[i];
    PagesOf(type).Add(io.addresses[i], size);
  }
  H5FD_t* const file = under().HostFileBelow();
  return Noted(
      file->cls->write_vector(file, io.dxpl, io.count, io.types, io.addresses, io.sizes, buffers));
}

herr_t ParallelFile::ReadSelection(const SelectionIo& io, void** buffers) {
  H5FD_t* const file = under().HostFileBelow();
  return file->cls->read_selection(file, io.type, io.dxpl, io.count, io.memory_spaces,
                                   io.file_spaces, io.offsets, io.element_sizes, buffers);
}

herr_t ParallelFile::WriteSelection(const SelectionIo& io, const void** buffers) {
  OnChange();
  if (!AddSelections(host().api, io.count, io.file_spaces, io.offsets, io.element_sizes,
                     &PagesOf(io.type))) {
    is_incomplete_ = true;
  }
  H5FD_t* const file = under().HostFileBelow();
  return Noted(file->cls->write_selection(file, io.type, io.dxpl, io.count, io.memory_spaces,
                                          io.file_spaces, io.offsets, io.element_sizes, buffers));
}

herr_t ParallelFile::Truncate(hid_t dxpl, hbool_t closing) {
  // An H5Fflush begins: it writes everything that is still dirty, also what failed before.
  if (!closing) has_failed_ = false;
  if (root_ != nullptr) root_->BeforeTruncate();
  const herr_t result = Noted(under().Truncate(dxpl, closing));
  if (root_ != nullptr) root_->AfterTruncate();
  detector_.OnTruncate(PhaseOf(closing), Outcome::kOk);
  return result;
}

herr_t ParallelFile::Flush(hid_t dxpl, hbool_t closing) {
  const herr_t result = Noted(under().Flush(dxpl, closing));
  const Moment moment = detector_.OnFlush(PhaseOf(closing), Outcome::kOk);
  if (moment != Moment::kFlush || notes_ == Notes::kNone) return result;
  const herr_t cut = CutTogether();
  return result < 0 ? result : cut;
}

RankNotes ParallelFile::TakeNotes() {
  RankNotes notes;
  notes.raw = raw_.Take();
  notes.metadata = metadata_.Take();
  notes.has_failed = std::exchange(has_failed_, false);
  notes.is_incomplete = std::exchange(is_incomplete_, false);
  return notes;
}

bool ParallelFile::Exchange() {
  const std::vector<std::string> gathered = ranks_->Gather(ToBytes(TakeNotes()));
  bool is_sound = true;
  std::vector<RankNotes> all;
  for (const std::string& each : gathered) {
    RankNotes notes = NotesFromBytes(each).value_or(
        RankNotes{.raw = {}, .metadata = {}, .has_failed = false, .is_incomplete = true});
    is_sound = is_sound && !notes.has_failed;
    all.push_back(std::move(notes));
  }
  if (senders_ != nullptr) {
    senders_->Bring(all, root_.get());
  } else if (root_ != nullptr) {
    root_->Note(all);
  }
  return is_sound;
}

herr_t ParallelFile::CutTogether() {
  const bool is_sound = Exchange();
  herr_t result = 0;
  if (root_ != nullptr && is_sound) {
    result = root_->Cut();
    verdict_.is_lost = result < 0 ? 1 : 0;
    verdict_.barrier = root_->mirror() != nullptr ? root_->mirror()->barrier().result() : 0;
  }
  ranks_->Broadcast(&verdict_, sizeof verdict_);
  if (verdict_.is_lost == 0) return 0;
  if (!ranks_->is_root()) {
    PushWriteErrno(host(), "a parallel file", ENOTCONN,
                   "the mirror is lost (on_outage=fail); rank 0 tells why");
  }
  return -1;
}

void ParallelFile::CloseTogether(Moment moment) {
  const bool is_clean = Exchange() && moment == Moment::kClose;
  if (root_ != nullptr) root_->Close(is_clean ? RootMirror::End::kClean : RootMirror::End::kBroken);
  // The other ranks may open the file again, or change it, once its bytes are on their way.
  ranks_->Broadcast(&verdict_, sizeof verdict_);
}

herr_t ParallelFile::Close() {
  mark_.Remove();
  const Moment moment = detector_.OnClose();
  // MPI-IO makes what all ranks wrote visible to all. It is collective.
  left_out_.reset();  // It looks at the file below.
  const herr_t result = Noted(CloseUnder());
  // HDF5 also closes files from within MPI_Finalize, where MPI still works.
  if (notes_ == Notes::kKept && ranks_->CanTalk()) CloseTogether(moment);
  return result;
}

void ParallelFile::ArmBarrier(H5mBarrier kind, const char* comment) {
  verdict_.barrier = 1;  // where no flush comes
  if (root_ != nullptr) root_->Arm(kind, comment);
}

void ParallelFile::Status(H5mStatus* status) const {
  *status = H5mStatus{};
  status->state = H5M_STATE_UNCHANGED;
  if (root_ != nullptr && root_->mirror() != nullptr) root_->mirror()->Status(status);
}

std::vector<std::string> ParallelFile::Servers() const {
  if (root_ == nullptr) return {};
  return root_->mirror() != nullptr ? root_->mirror()->Servers() : root_->config().Servers();
}

void ParallelFile::StatusOf(size_t index, H5mStatus* status) const {
  *status = H5mStatus{};
  status->state = H5M_STATE_UNCHANGED;
  if (root_ != nullptr && root_->mirror() != nullptr) root_->mirror()->StatusOf(index, status);
}

}  // namespace h5mirror::vfd
