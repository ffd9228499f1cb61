// Whether a server is believed that says that it serves the cell of a file, and has no such file.
// That is so of a file of which nothing was durable when its server was lost: the successor makes
// it anew. A server of another cluster, in the list by mistake, says the same at any time. So the
// other servers of the list are heard first (docs/design/049-cells.md, "Finding the server").
//
//   kNobody --OnLacks--> one server lacks it --others say nothing against it--> it is believed
//      ^                        |
//      +-- OnOtherwise, or another one lacks it too
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_LACKING_OWNER_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_LACKING_OWNER_H_

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace h5mirror::vfd {

// Pure, not thread-safe. Servers are told apart by rpc::ClientOptions::target.
class LackingOwner {
 public:
  // `server` says that it is the owner, and lacks the file. A cell has one owner: if another one
  // has said so before, none of the two is believed.
  void OnLacks(const std::string& server) {
    if (server_ == server) return;
    const bool is_first = server_.empty();
    OnOtherwise();
    if (is_first) server_ = server;
  }
  // `server` says nothing against it: it gives no answer, refuses, or names that one.
  void OnNothing(const std::string& server) {
    if (!server_.empty()) heard_.insert(server);
  }
  // Some server has, or will have, another owner.
  void OnOtherwise() { *this = LackingOwner(); }

  // The one that lacks it; empty: none, or it was contradicted.
  const std::string& server() const { return server_; }
  // All of `others` were heard, the servers of the list without that of the stream.
  bool IsBelieved(const std::vector<std::string>& others) const {
    return !server_.empty() &&
           std::all_of(others.begin(), others.end(), [this](const std::string& other) {
             return other == server_ || heard_.count(other) != 0;
           });
  }

 private:
  std::string server_;
  std::set<std::string> heard_;  // since it said so first
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_LACKING_OWNER_H_
