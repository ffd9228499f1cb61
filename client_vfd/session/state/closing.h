// How far the program has closed a file, and the file as it was then.
//
//   kWriting --Seal--> kSealed --Unlock--> kUnlocked --LoseFile--> kAnothers
//       |                                     ^
//       +---- given up in the middle ---------+
//
// Sealed, its final cut is closed, and is read and sent under the file's lock. Unlocked, another
// program may open and change the file: it counts only as it was when the final cut was closed. In
// kAnothers another program has done so.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_CLOSING_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_CLOSING_H_

#include <optional>

#include "base/local_record.h"

namespace h5mirror::vfd {

// Pure, not thread-safe.
class Closing {
 public:
  enum class Phase { kWriting, kSealed, kUnlocked, kAnothers };

  void Seal() { phase_ = Phase::kSealed; }
  // The final cut was closed with this stat of the file; unset: stat() failed.
  void SetStat(const std::optional<FileStat>& stat) { stat_ = stat; }
  // The file's lock is given back, or will be.
  void Unlock() { phase_ = Phase::kUnlocked; }
  // The program has opened the file again, and the file is not as it was closed here.
  void LoseFile() { phase_ = Phase::kAnothers; }
  // The program has waited long enough for its last bytes to be sent. It waits no longer for their
  // ack.
  void Spend() { has_waited_enough_ = true; }
  // True: the server must still hear that the program gave the file up without a clean close.
  void SetUnfinished(bool is_unfinished) { is_unfinished_ = is_unfinished; }

  bool is_unlocked() const { return phase_ >= Phase::kUnlocked; }
  bool is_anothers() const { return phase_ == Phase::kAnothers; }
  bool is_unfinished() const { return is_unfinished_; }
  bool has_waited_enough() const { return has_waited_enough_; }
  // The file's stat at the clean close; unset: there was no clean close, or stat() failed.
  const std::optional<FileStat>& stat() const { return stat_; }
  // True: the file is as it was at the close, or that stat is unknown.
  bool IsAsClosed(const FileStat& now) const { return !stat_ || now == *stat_; }

 private:
  Phase phase_ = Phase::kWriting;
  std::optional<FileStat> stat_;
  bool has_waited_enough_ = false;
  bool is_unfinished_ = false;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_CLOSING_H_
