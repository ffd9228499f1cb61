#include "client_vfd/plugin/modes/member_group.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace h5mirror::vfd {
namespace {

// With the '/' at its end; of the root: empty.
std::string_view DirectoryOf(std::string_view name) {
  return name.substr(0, name.rfind('/') + 1);  // npos + 1 is 0.
}

}  // namespace

std::string NameBeside(const std::string& name, const std::string& of) {
  const std::string_view directory = DirectoryOf(name);
  if (directory == DirectoryOf(of)) return name.substr(directory.size());
  return "/" + name;
}

void MemberGroup::Add(GroupMember& member) {
  members_.push_back({&member});
  size_t bytes = 0;
  for (const Member& each : members_) bytes += each.file->MirrorName().size() + 1;
  if (members_.size() > kMembersMax || bytes > kNameBytesMax) FallOutOfStep();
}

void MemberGroup::Remove(GroupMember& member) {
  std::erase_if(members_, [&](const Member& each) { return each.file == &member; });
  // A cut of the remaining members would not be one of the whole file.
  if (!closing_ && !members_.empty()) FallOutOfStep();
}

MemberGroup::Member* MemberGroup::Find(const GroupMember& member) {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const Member& each) { return each.file == &member; });
  return found != members_.end() ? &*found : nullptr;
}

void MemberGroup::FallOutOfStep() {
  in_step_ = false;
  for (const Member& each : members_) each.file->SetCut(nullptr);
}

bool MemberGroup::OnFlush(GroupMember& member, Moment moment) {
  Member* const flushed = Find(member);
  if (!IsGroup() || flushed == nullptr) return false;
  if (flushed->is_flushed) {  // Once more, and another one was left out.
    FallOutOfStep();
    return false;
  }
  flushed->is_flushed = true;
  flushed->is_consistent = moment == Moment::kFlush;
  const auto is_flushed = [](const Member& each) { return each.is_flushed; };
  if (!std::all_of(members_.begin(), members_.end(), is_flushed)) return true;
  bool is_consistent = true;
  for (Member& each : members_) {
    is_consistent = is_consistent && each.is_consistent;
    each.is_flushed = each.is_consistent = false;
  }
  if (is_consistent) Cut();
  return true;
}

bool MemberGroup::IsAnyAttached() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const Member& each) { return each.file->IsAttached(); });
}

bool MemberGroup::HasAnyChanged() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const Member& each) { return each.file->HasChanged(); });
}

ArmedBarrier::Request MemberGroup::BeginBarriers() {
  const auto armed_as = [&](H5mBarrier kind) {
    return std::find_if(members_.begin(), members_.end(),
                        [kind](const Member& each) { return each.file->barrier().kind() == kind; });
  };
  auto chosen = armed_as(H5M_COMMIT);
  if (chosen == members_.end()) chosen = armed_as(H5M_TICK_IF_CHANGED);
  if (chosen == members_.end()) chosen = members_.begin();
  ArmedBarrier::Request request;
  for (const Member& each : members_) {
    ArmedBarrier::Request own = each.file->BeginBarrier();
    if (&each == &*chosen) request = std::move(own);
  }
  return request;
}

void MemberGroup::SetResults(int result) {
  for (const Member& each : members_) each.file->barrier().SetResult(result);
}

void MemberGroup::Cut() {
  ArmedBarrier::Request request = BeginBarriers();
  // Each cut is a version of each member, so none is made for nothing. A barrier that is waited for
  // asks for the bytes that are on their way.
  const bool is_for_nothing = !HasAnyChanged() && request.kind != H5M_COMMIT;
  const bool is_waited_for = request.ack != H5M_ACK_NONE && number_ > 0;
  if (!IsAnyAttached() || (is_for_nothing && !is_waited_for)) return SetResults(0);
  if (request.kind == H5M_TICK_IF_CHANGED) request.kind = H5M_TICK;
  newest_ = NextCut();
  for (const Member& each : members_) {
    const MemberCut own = Of(*newest_, *each.file);
    each.file->SetCut(&own);
    each.file->AskCut(request);
  }
  int result = 0;
  for (const Member& each : members_) result = std::max(result, each.file->AwaitCut());
  SetResults(result);
}

void MemberGroup::BeforeSeal(GroupMember& member) {
  if (!closing_) {
    const bool has_changed = HasAnyChanged();
    if (!IsGroup() || (!has_changed && !newest_)) return;
    closing_ = has_changed ? NextCut() : *newest_;
  }
  const MemberCut own = Of(*closing_, member);
  member.SetCut(&own);
}

MemberCut MemberGroup::NextCut() {
  MemberCut cut;
  cut.id = id_;
  cut.whole_numbers = WholeNumbers();
  cut.number = ++number_;
  cut.time_ns = now_ns_();
  for (const Member& each : members_) cut.members.push_back(each.file->MirrorName());
  return cut;
}

std::vector<uint64_t> MemberGroup::WholeNumbers() const {
  std::vector<uint64_t> whole;
  for (size_t index = 0; index < members_.size(); ++index) {
    const std::vector<uint64_t> durable = members_[index].file->DurableNumbers();
    if (index == 0) whole = durable;
    whole.resize(std::min(whole.size(), durable.size()));
    for (size_t mirror = 0; mirror < whole.size(); ++mirror) {
      whole[mirror] = std::min(whole[mirror], durable[mirror]);
    }
  }
  return whole;
}

MemberCut MemberGroup::Of(const MemberCut& cut, const GroupMember& member) {
  const std::string& name = member.MirrorName();
  MemberCut own = cut;
  if (name != cut.members.front()) own.members.resize(1);
  for (std::string& each : own.members) each = NameBeside(each, name);
  return own;
}

}  // namespace h5mirror::vfd
