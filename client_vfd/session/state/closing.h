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
  // A final cut was closed with the file like this; unset: it could not be looked at.
  void SetStat(const std::optional<FileStat>& stat) { stat_ = stat; }
  // The file's lock is given back, or will be.
  void Unlock() { phase_ = Phase::kUnlocked; }
  // The program has opened it again, and not as it was closed here.
  void LoseFile() { phase_ = Phase::kAnothers; }
  // The program has waited for its last bytes to be sent, and waits no more for their answer.
  void Spend() { has_waited_enough_ = true; }
  // The server is still to hear that the program gave the file up in the middle, or has heard it.
  void SetUnfinished(bool is_unfinished) { is_unfinished_ = is_unfinished; }

  bool is_unlocked() const { return phase_ >= Phase::kUnlocked; }
  bool is_anothers() const { return phase_ == Phase::kAnothers; }
  bool is_unfinished() const { return is_unfinished_; }
  bool has_waited_enough() const { return has_waited_enough_; }
  // The file at the clean close; unset: there was none, or it could not be looked at.
  const std::optional<FileStat>& stat() const { return stat_; }
  // It is as it was closed, as far as is known.
  bool IsAsClosed(const FileStat& now) const { return !stat_ || now == *stat_; }

 private:
  Phase phase_ = Phase::kWriting;
  std::optional<FileStat> stat_;
  bool has_waited_enough_ = false;
  bool is_unfinished_ = false;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_CLOSING_H_
