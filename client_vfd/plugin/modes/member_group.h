// The members of one family, split or multi file, open for writing. Each is a local file with its
// mirrors. A cut is one over all of them: docs/design/047-members.md.
//
// HDF5 flushes the members one after the other. It does not write to a flushed member before the
// last one is flushed. So at the last flush all members together are consistent; they are cut then,
// under one number.
//
//   OnFlush()     one member is flushed; the last one of a round makes the cut
//   BeforeSeal()  one member is closed. The first one gives the last cut its number
//
// If HDF5 does not flush the members in turn, they are no such group: each one cuts by itself.
//
// Called by one thread at a time, as HDF5 does.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_MEMBER_GROUP_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_MEMBER_GROUP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client_vfd/plugin/modes/armed_barrier.h"
#include "client_vfd/plugin/writes/barrier_detector.h"

namespace h5mirror::vfd {

// One cut of a group, for one member. See GroupCut in proto/h5mirror/v1/types.proto.
struct MemberCut {
  std::array<uint8_t, 16> id{};
  uint64_t number = 0;
  // By mirror: the newest cut that each member's mirror has, durable.
  std::vector<uint64_t> whole_numbers;
  int64_t time_ns = 0;  // of all members
  std::vector<std::string> members;
};

// One member. The group borrows it until Remove().
class GroupMember {
 public:
  virtual ~GroupMember() = default;
  virtual const std::string& MirrorName() const = 0;  // under each server's root
  virtual bool IsAttached() const = 0;                // its sessions have begun
  virtual bool HasChanged() const = 0;                // since its last cut
  // By mirror, of a member that is attached: the newest number of the group that is durable there.
  virtual std::vector<uint64_t> DurableNumbers() const = 0;
  // Sets the group's cut to which the member's next cut belongs; null: none. With a `cut`, begins
  // the sessions.
  virtual void SetCut(const MemberCut* cut) = 0;
  virtual ArmedBarrier& barrier() = 0;
  virtual ArmedBarrier::Request BeginBarrier() = 0;
  // As ArmedBarrier's result. The first step cuts, the second waits.
  virtual void AskCut(const ArmedBarrier::Request& request) = 0;
  virtual int AwaitCut() = 0;
};

class MemberGroup {
 public:
  // The most members that the wire takes. With more, each member cuts by itself.
  static constexpr size_t kMembersMax = 4096;
  static constexpr size_t kNameBytesMax = 256 << 10;

  // `id` is random; `now_ns` gives the time of day.
  MemberGroup(const std::array<uint8_t, 16>& id, std::function<int64_t()> now_ns)
      : id_(id), now_ns_(std::move(now_ns)) {}
  MemberGroup(const MemberGroup&) = delete;
  MemberGroup& operator=(const MemberGroup&) = delete;

  void Add(GroupMember& member);
  void Remove(GroupMember& member);

  // After a flush of `member` that was `moment`. False: it is in no group, and cuts by itself.
  bool OnFlush(GroupMember& member, Moment moment);
  // Before the last cut of a clean close.
  void BeforeSeal(GroupMember& member);

 private:
  struct Member {
    GroupMember* file = nullptr;
    bool is_flushed = false;     // in this round
    bool is_consistent = false;  // that flush was a moment
  };

  bool IsGroup() const { return in_step_ && members_.size() > 1; }
  Member* Find(const GroupMember& member);
  void FallOutOfStep();
  bool IsAnyAttached() const;
  bool HasAnyChanged() const;
  // The barrier that the program has armed with one of the members; else an ordinary one.
  ArmedBarrier::Request BeginBarriers();
  void SetResults(int result);
  void Cut();
  MemberCut NextCut();
  std::vector<uint64_t> WholeNumbers() const;
  // `cut`, as the member tells it.
  static MemberCut Of(const MemberCut& cut, const GroupMember& member);

  const std::array<uint8_t, 16> id_;
  const std::function<int64_t()> now_ns_;
  std::vector<Member> members_;  // in the order of their opens
  bool in_step_ = true;
  uint64_t number_ = 0;               // of the newest cut
  std::optional<MemberCut> newest_;   // unset: none was made yet
  std::optional<MemberCut> closing_;  // the last cut; the newest one, if nothing changed since
};

// `name` as a member tells it whose own name is `of`: without the directory, if both have the same
// one; else with a '/' before it.
std::string NameBeside(const std::string& name, const std::string& of);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_MEMBER_GROUP_H_
