#include "client_vfd/plugin/parallel/root_mirror.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace h5mirror::vfd {
namespace {

// A part costs a stream, and the wait for the cut before.
constexpr uint64_t kPartBytesMin = 1 << 20;

}  // namespace

RootMirror::~RootMirror() {
  mirror_.reset();
  if (fd_ >= 0) close(fd_);
}

std::optional<uint64_t> RootMirror::SizeBytes() const {
  struct stat status {};
  if (fstat(fd_, &status) != 0) return std::nullopt;
  return static_cast<uint64_t>(status.st_size);
}

void RootMirror::BeforeTruncate() { size_before_ = SizeBytes(); }

void RootMirror::AfterTruncate() {
  const std::optional<uint64_t> now = SizeBytes();
  if (now && now != size_before_) cut_off_bytes_ = std::min(cut_off_bytes_.value_or(*now), *now);
}

// MPI-IO takes no lock, so a serial reader may come at any time, and is not to be refused. The lock
// is held only while it must be known that no serial program writes.
void RootMirror::Attach() {
  if (mirror_) return;
  target_.is_locked = locking_ == Locking::kYes && flock(fd_, LOCK_EX | LOCK_NB) == 0;
  mirror_ = std::make_unique<MirroredFile>(host_, config_, target_, under_, fd_);
  mirror_->AttachNow();
  if (target_.is_locked) flock(fd_, LOCK_UN);
}

void RootMirror::Note(const std::vector<RankNotes>& notes) {
  const bool has_changes =
      cut_off_bytes_ || std::any_of(notes.begin(), notes.end(),
                                    [](const RankNotes& each) { return each.HasChanges(); });
  const std::optional<uint64_t> size_now = SizeBytes();
  if (!has_changes || !size_now) return;
  Attach();
  const uint64_t size = *size_now;
  if (cut_off_bytes_) mirror_->NoteSize(*cut_off_bytes_);
  cut_off_bytes_.reset();
  for (const RankNotes& each : notes) {
    if (each.is_incomplete) mirror_->NoteWritten(0, size, H5M_WRITE_RAW);
    for (const NotedPages::Run& run : each.raw) {
      if (run.offset < size) {
        mirror_->NoteWritten(run.offset, std::min(run.end, size) - run.offset, H5M_WRITE_RAW);
      }
    }
    for (const NotedPages::Run& run : each.metadata) {
      if (run.offset < size) {
        mirror_->NoteWritten(run.offset, std::min(run.end, size) - run.offset, H5M_WRITE_METADATA);
      }
    }
  }
}

// A truncate that cuts bytes off must come before all writes, and streams keep no order.
bool RootMirror::MayHaveParts(const std::vector<RankNotes>& notes,
                              std::optional<uint64_t> size_bytes) const {
  return size_bytes && cut_off_bytes_.value_or(*size_bytes) >= *size_bytes &&
         std::none_of(notes.begin(), notes.end(),
                      [](const RankNotes& each) { return each.is_incomplete || each.has_failed; });
}

PartPlan RootMirror::Plan(const std::vector<RankNotes>& notes, const std::vector<int>& senders) {
  const std::optional<uint64_t> size = SizeBytes();
  SplitCut split;
  if (MayHaveParts(notes, size)) split = SplitByNode(notes, senders, *size, kPartBytesMin);
  if (split.parts.empty()) {
    Note(notes);
    return {};
  }
  Attach();
  // Before rank 0's session may send anything of this cut: what it has sent and no barrier follows
  // would be of the file as it was earlier.
  PartPlan plan;
  const bool has_ticket = mirror_->TicketForPart(&plan.ticket);
  Note({split.own});
  if (!has_ticket) {
    for (const CutPart& part : split.parts) NotePart(part);
    return {};
  }
  plan.name = target_.name;
  plan.parts = std::move(split.parts);
  return plan;
}

void RootMirror::EndPart(const H5mPartTicket& ticket, const CutPart& part, bool is_sent) {
  if (!mirror_->EndPart(ticket, RangesOf(part), is_sent)) NotePart(part);
}

void RootMirror::NotePart(const CutPart& part) {
  for (const NotedPages::Run& run : part.runs) {
    mirror_->NoteWritten(run.offset, run.end - run.offset, H5M_WRITE_RAW);
  }
}

herr_t RootMirror::Cut() {
  if (!mirror_) return 0;
  if (armed_) mirror_->barrier().Arm(armed_->kind, armed_->comment.c_str());
  armed_.reset();
  return mirror_->CutNoted();
}

void RootMirror::Close(End end) {
  if (!mirror_) return;
  if (end == End::kClean) mirror_->SealNoted();
  mirror_->AfterClose();
}

}  // namespace h5mirror::vfd
