#include "h5restore/link_graph.h"

#include <algorithm>

#include "base/status_macros.h"
#include "base/strings.h"
#include "h5restore/survey.h"

namespace h5mirror::restore {
namespace {

using hdf5::Check;
using hdf5::Handle;

// Groups with many links among each other have more paths than anyone waits for.
constexpr size_t kStepsMax = 10'000;
constexpr size_t kDepthMax = 256;

struct Member {
  std::string name;
  H5O_token_t token;
};

herr_t AddHardLink(hid_t, const char* name, const H5L_info2_t* info, void* members) {
  if (info->type == H5L_TYPE_HARD) {
    static_cast<std::vector<Member>*>(members)->push_back({name, info->u.token});
  }
  return 0;
}

}  // namespace

struct LinkGraph::Search {
  const std::string& from;
  size_t most;
  std::vector<std::string> on_the_way;  // tokens
  std::vector<std::string> found;
  size_t steps = 0;

  bool is_over() const { return found.size() >= most || steps >= kStepsMax; }
};

absl::StatusOr<LinkGraph> LinkGraph::Of(hid_t file, std::string_view said) {
  const std::string what = StrCat("follow the links of ", said);
  LinkGraph graph;
  H5O_info2_t info{};
  H5M_RETURN_IF_ERROR(
      Check(H5Oget_info_by_name3(file, "/", &info, H5O_INFO_BASIC, H5P_DEFAULT), what));
  graph.root_ = TokenOf(info);
  graph.members_.try_emplace(graph.root_);
  std::vector<std::string> groups = {graph.root_};
  while (!groups.empty()) {
    const std::string group = std::move(groups.back());
    groups.pop_back();
    const absl::Status added = graph.AddMembers(file, group, &groups);
    if (!added.ok()) return absl::Status(added.code(), StrCat(what, ": ", added.message()));
  }
  return graph;
}

absl::Status LinkGraph::AddMembers(hid_t file, const std::string& group,
                                   std::vector<std::string>* groups) {
  H5M_ASSIGN_OR_RETURN(const Handle opened, OpenToken(file, group, "a group"));
  std::vector<Member> members;
  hsize_t at = 0;
  H5M_RETURN_IF_ERROR(
      Check(H5Literate2(opened.get(), H5_INDEX_NAME, H5_ITER_INC, &at, AddHardLink, &members),
            "a group"));
  std::vector<std::pair<std::string, std::string>> known;
  for (Member& member : members) {
    const std::string token = TokenOf(member.token);
    if (!links_to_.contains(token) && token != root_) {
      H5O_info2_t info{};
      H5M_RETURN_IF_ERROR(Check(H5Oget_info_by_name3(opened.get(), member.name.c_str(), &info,
                                                     H5O_INFO_BASIC, H5P_DEFAULT),
                                member.name));
      if (info.type == H5O_TYPE_GROUP) {
        members_.try_emplace(token);
        groups->push_back(token);
      }
    }
    links_to_[token].push_back({group, member.name});
    known.emplace_back(std::move(member.name), token);
  }
  members_[group] = std::move(known);
  return absl::OkStatus();
}

const std::vector<HardLink>& LinkGraph::LinksTo(const std::string& object) const {
  static const auto* const kNone = new std::vector<HardLink>();
  const auto found = links_to_.find(object);
  return found == links_to_.end() ? *kNone : found->second;
}

absl::flat_hash_set<std::string> LinkGraph::Reachable(const std::string& from,
                                                      const HardLink& without) const {
  absl::flat_hash_set<std::string> reached = {from};
  std::vector<std::string> open = {from};
  while (!open.empty()) {
    const std::string group = std::move(open.back());
    open.pop_back();
    const auto members = members_.find(group);
    if (members == members_.end()) continue;
    for (const auto& [name, object] : members->second) {
      if (group == without.group && name == without.name) continue;
      if (reached.insert(object).second) open.push_back(object);
    }
  }
  return reached;
}

std::vector<std::string> LinkGraph::Paths(const std::string& from, const std::string& object,
                                          size_t most) const {
  Search search{from, most, {}, {}, 0};
  Climb(object, "", &search);
  return std::move(search.found);
}

void LinkGraph::Climb(const std::string& at, const std::string& below, Search* search) const {
  if (at == search->from) {
    search->found.push_back(below.empty() ? "." : below);
    return;
  }
  auto& way = search->on_the_way;
  if (way.size() >= kDepthMax || std::find(way.begin(), way.end(), at) != way.end()) return;
  way.push_back(at);
  for (const HardLink& link : LinksTo(at)) {
    if (search->is_over()) break;
    ++search->steps;
    Climb(link.group, below.empty() ? link.name : StrCat(link.name, "/", below), search);
  }
  way.pop_back();
}

}  // namespace h5mirror::restore
