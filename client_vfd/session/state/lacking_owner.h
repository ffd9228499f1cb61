// Decides whether to believe a server that claims to serve a file's cell, but lacks the file. The
// claim is right if nothing of the file was durable when its former server was lost; then the
// successor makes the file anew. But a server of another cluster, listed by mistake, claims the
// same. So the other servers of the list are heard first (docs/design/049-cells.md, "Finding the
// server").
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
  // `server` says that it is the owner, and lacks the file. A cell has one owner: if another server
  // has said so before, neither of the two is believed.
  void OnLacks(const std::string& server) {
    if (server_ == server) return;
    const bool is_first = server_.empty();
    OnOtherwise();
    if (is_first) server_ = server;
  }
  // `server` does not contradict the claim: it gives no answer, refuses, or names the claiming
  // server.
  void OnNothing(const std::string& server) {
    if (!server_.empty()) heard_.insert(server);
  }
  // Some server contradicts the claim: it names another owner, or expects one.
  void OnOtherwise() { *this = LackingOwner(); }

  // The server that lacks the file; empty: none, or its claim was contradicted.
  const std::string& server() const { return server_; }
  // True: all of `others` were heard. `others`: the servers of the list except the stream's own.
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
