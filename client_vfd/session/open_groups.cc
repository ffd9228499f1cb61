#include "client_vfd/session/open_groups.h"

#include <algorithm>
#include <utility>

namespace h5mirror::vfd {

OpenGroup::OpenGroup(std::string server, const rpc::WholeCut& cut)
    : server_(std::move(server)), first_(cut.members.front().name) {
  for (const rpc::MemberVersion& member : cut.members) {
    versions_[member.name] = member.version.version();
  }
}

OpenGroups& OpenGroups::Get() {
  static auto* const groups = new OpenGroups;
  return *groups;
}

void OpenGroups::Add(const std::shared_ptr<const OpenGroup>& group) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(groups_, [](const auto& each) { return each.expired(); });
  groups_.push_back(group);
}

std::vector<std::shared_ptr<const OpenGroup>> OpenGroups::Open() {
  std::vector<std::shared_ptr<const OpenGroup>> open;
  absl::MutexLock lock(&mutex_);
  for (auto each = groups_.rbegin(); each != groups_.rend(); ++each) {
    if (auto group = each->lock()) open.push_back(std::move(group));
  }
  return open;
}

int64_t OpenGroups::VersionOf(const std::string& server, const std::string& name) {
  for (const auto& group : Open()) {
    if (group->server_ != server || group->first_ == name) continue;
    const auto found = group->versions_.find(name);
    if (found != group->versions_.end()) return found->second;
  }
  return 0;
}

bool OpenGroups::HasFirst(const std::string& server, const std::string& first) {
  const auto open = Open();
  return std::any_of(open.begin(), open.end(), [&](const auto& group) {
    return group->server_ == server && group->first_ == first;
  });
}

}  // namespace h5mirror::vfd
