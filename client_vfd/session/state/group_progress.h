// The cuts of a family, split or multi file to which a member's cuts belong, and how far they have
// come with the server: docs/design/047-members.md.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_GROUP_PROGRESS_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_GROUP_PROGRESS_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/hex.h"

namespace h5mirror::vfd {

// As GroupCut of types.proto.
struct GroupCut {
  Bytes16 id{};
  uint64_t number = 0;
  uint64_t whole_number = 0;
  absl::Time time;  // of the cut, for all members
  std::vector<std::string> members;
};

// Pure, not thread-safe.
class GroupProgress {
 public:
  // Sets the group's cut to which cuts closed from now on belong; nullopt: to none.
  void Set(std::optional<GroupCut> cut) { now_ = std::move(cut); }
  const std::optional<GroupCut>& now() const { return now_; }

  // The barrier `seq` goes out for the cut `number`.
  void Sent(uint64_t seq, uint64_t number) { sent_.emplace_back(seq, number); }
  // All barriers up to `seq` are durable.
  void OnDurable(uint64_t seq) {
    for (; !sent_.empty() && sent_.front().first <= seq; sent_.pop_front()) {
      durable_number_ = std::max(durable_number_, sent_.front().second);
    }
  }
  uint64_t durable_number() const { return durable_number_; }
  // True: the server may lack the group's newest cut.
  bool LacksNewest() const { return now_ && durable_number_ < now_->number; }

 private:
  std::optional<GroupCut> now_;
  std::deque<std::pair<uint64_t, uint64_t>> sent_;  // seq and number, not durable
  uint64_t durable_number_ = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_GROUP_PROGRESS_H_
