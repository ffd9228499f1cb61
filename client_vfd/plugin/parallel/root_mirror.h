// Rank 0's part of a parallel file: the mirrors of a file that all ranks have written by
// themselves, as told by their notes.
//
// The bytes are in the file already. So a cut is handed over, or copied, before the ranks may write
// on (Mirrors::Detach).
//
// Called by one thread at a time, while the other ranks wait.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_ROOT_MIRROR_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_ROOT_MIRROR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/modes/local_file.h"
#include "client_vfd/plugin/modes/mirrored_file.h"
#include "client_vfd/plugin/modes/under_file.h"
#include "client_vfd/plugin/parallel/cut_parts.h"
#include "client_vfd/plugin/parallel/rank_notes.h"

namespace h5mirror::vfd {

class RootMirror {
 public:
  // `host` and `under` must outlive it; takes `fd` over, which reads the local file. `locking`:
  // whether the file's lock is asked for while an outside change may be taken in.
  RootMirror(const HostLibrary& host, std::shared_ptr<const Config> config, MirrorTarget target,
             UnderFile& under, int fd, Locking locking)
      : host_(host),
        config_(std::move(config)),
        target_(std::move(target)),
        under_(under),
        fd_(fd),
        locking_(locking) {}
  ~RootMirror();
  RootMirror(const RootMirror&) = delete;
  RootMirror& operator=(const RootMirror&) = delete;

  // Around a truncate of all ranks: the size that the file had meanwhile is part of the cut.
  void BeforeTruncate();
  void AfterTruncate();
  // Takes the writes of all ranks since the last time. Begins the sessions at the first change.
  void Note(const std::vector<RankNotes>& notes);
  // The same, where other ranks can send a part: notes what rank 0 sends, and returns what the
  // others are to send. Each part of it comes back by EndPart().
  PartPlan Plan(const std::vector<RankNotes>& notes, const std::vector<int>& senders);
  // `is_sent`: the server has the part. Else rank 0 sends it.
  void EndPart(const H5mPartTicket& ticket, const CutPart& part, bool is_sent);
  // Before the first change: other ranks may send parts.
  void AllowParts() { target_.takes_parts = true; }
  // The file is consistent: a cut, as of H5Fflush. -1: the mirror is lost and on_outage=fail.
  herr_t Cut();
  // After the close of the file below. kClean: the last cut is made.
  enum class End { kClean, kBroken };
  void Close(End end);

  // Null: no session has begun.
  MirroredFile* mirror() { return mirror_.get(); }
  const MirroredFile* mirror() const { return mirror_.get(); }
  const Config& config() const { return *config_; }
  // For a barrier of the program's own (H5FDh5mirror.h).
  void Arm(H5mBarrier kind, const char* comment) { armed_ = Armed{kind, comment}; }

 private:
  struct Armed {
    H5mBarrier kind;
    std::string comment;
  };

  // Of the file; unset: it cannot be asked.
  std::optional<uint64_t> SizeBytes() const;
  void Attach();
  void NotePart(const CutPart& part);
  // True: other ranks may send parts of the next cut.
  bool MayHaveParts(const std::vector<RankNotes>& notes, std::optional<uint64_t> size_bytes) const;

  const HostLibrary& host_;
  const std::shared_ptr<const Config> config_;
  MirrorTarget target_;
  UnderFile& under_;
  const int fd_;
  const Locking locking_;
  std::optional<uint64_t> size_before_;    // of a truncate
  std::optional<uint64_t> cut_off_bytes_;  // the smallest size since the last cut
  std::optional<Armed> armed_;
  std::unique_ptr<MirroredFile> mirror_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_ROOT_MIRROR_H_
