// parallel_senders=node: the first rank of each node sends what that node's ranks have written, so
// that several nodes read and send at once. docs/design/051-senders-by-node.md.
//
//   rank 0        split -> ticket -> note own, plan bcast -> ........ gather -> take, or note
//   first of node                              wait       -> send part, gather
//   other ranks                                wait       -> ......... gather
//
// Each rank has one. Bring() is collective: all ranks call it in the same order.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_NODE_SENDERS_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_NODE_SENDERS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/parallel/mpi.h"
#include "client_vfd/plugin/parallel/root_mirror.h"

namespace h5mirror::vfd {

class NodeSenders {
 public:
  // Collective. `ranks` must outlive it; `path` is the file on this host. Null, on all ranks: there
  // is one node only.
  static std::unique_ptr<NodeSenders> Make(const Ranks& ranks, std::shared_ptr<const Config> config,
                                           const std::string& path);
  ~NodeSenders();
  NodeSenders(const NodeSenders&) = delete;
  NodeSenders& operator=(const NodeSenders&) = delete;

  // Brings the bytes of a cut to `root`, rank 0's; null elsewhere, where `notes` are not used. When
  // it returns, no other rank reads the file any more.
  void Bring(const std::vector<RankNotes>& notes, RootMirror* root) const;

 private:
  NodeSenders(const Ranks& ranks, std::shared_ptr<const Config> config, std::vector<int> senders,
              int fd)
      : ranks_(ranks), config_(std::move(config)), senders_(std::move(senders)), fd_(fd) {}

  bool Send(const PartPlan& plan) const;

  const Ranks& ranks_;
  const std::shared_ptr<const Config> config_;
  const std::vector<int> senders_;  // by rank; at rank 0 only
  const int fd_;                    // -1: this rank sends nothing
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_NODE_SENDERS_H_
