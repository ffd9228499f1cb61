#include "client_vfd/plugin/parallel/node_senders.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <system_error>

#include "client_vfd/plugin/host/reporter.h"
#include "client_vfd/plugin/host/session_loader.h"
#include "client_vfd/plugin/host/this_process.h"
#include "client_vfd/plugin/modes/mirrors.h"

namespace h5mirror::vfd {
namespace {

// A rank's word to rank 0.
constexpr std::string_view kDone = "1";
constexpr std::string_view kNotDone = "0";

// -1: this node does not see the file at `path`, which the log says once.
int OpenToRead(const std::string& path, int rank, const Config& config) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) return fd;
  const std::string why = std::generic_category().message(errno);
  Say(config.log, Audience::kLogOnly,
      path + ": rank " + std::to_string(rank) +
          " cannot read it, and rank 0 sends its node's part: " + why);
  return -1;
}

}  // namespace

std::unique_ptr<NodeSenders> NodeSenders::Make(const Ranks& ranks,
                                               std::shared_ptr<const Config> config,
                                               const std::string& path) {
  std::vector<int> senders = SendersOf(ranks.Gather(HostName()));
  std::string is_sender(senders.size(), '\0');
  for (size_t rank = 0; rank < senders.size(); ++rank) {
    is_sender[rank] = senders[rank] == static_cast<int>(rank) && rank != 0 ? 1 : 0;
  }
  ranks.BroadcastText(&is_sender);
  if (is_sender.find('\1') == std::string::npos) return nullptr;
  const bool sends = is_sender[static_cast<size_t>(ranks.rank())] != 0;
  const int fd = sends ? OpenToRead(path, ranks.rank(), *config) : -1;
  const std::vector<std::string> opened = ranks.Gather(fd >= 0 ? kDone : kNotDone);
  std::vector<bool> can_read;
  for (const std::string& each : opened) can_read.push_back(each == kDone);
  LeaveToRank0(can_read, &senders);
  return std::unique_ptr<NodeSenders>(
      new NodeSenders(ranks, std::move(config), std::move(senders), fd));
}

NodeSenders::~NodeSenders() {
  if (fd_ >= 0) close(fd_);
}

void NodeSenders::Bring(const std::vector<RankNotes>& notes, RootMirror* root) const {
  std::string bytes;
  if (root != nullptr) bytes = ToBytes(root->Plan(notes, senders_));
  ranks_.BroadcastText(&bytes);
  // All ranks read the same bytes, and so go the same way.
  const std::optional<PartPlan> plan = PlanFromBytes(bytes);
  if (!plan || plan->parts.empty()) return;
  const std::vector<std::string> sent = ranks_.Gather(Send(*plan) ? kDone : kNotDone);
  if (root == nullptr) return;
  for (const CutPart& part : plan->parts) {
    root->EndPart(plan->ticket, part, sent[static_cast<size_t>(part.rank)] == kDone);
  }
}

bool NodeSenders::Send(const PartPlan& plan) const {
  const auto mine = std::find_if(plan.parts.begin(), plan.parts.end(),
                                 [&](const CutPart& part) { return part.rank == ranks_.rank(); });
  if (mine == plan.parts.end() || fd_ < 0) return false;
  std::string load_error;
  const H5mSessionApi* const api = LoadSession(&load_error);
  if (api == nullptr) return false;
  const std::vector<H5mRange> ranges = RangesOf(*mine);
  const std::string server = config_->Servers().front();
  H5mPart part{};
  part.fd = fd_;
  part.name = plan.name.c_str();
  part.server = server.c_str();
  part.ca = config_->ca.c_str();
  part.token = config_->token.c_str();
  part.checksum = ToApi(config_->frame_checksum);
  part.timeout_ms = config_->TimeoutMs();
  part.ticket = plan.ticket;
  part.ranges = ranges.data();
  part.range_count = ranges.size();
  std::array<char, 1024> error{};
  if (api->send_part(&part, error.data(), error.size()) == 0) return true;
  Say(config_->log, Audience::kLogOnly,
      plan.name + ": rank " + std::to_string(ranks_.rank()) +
          " could not send its node's part, and rank 0 sends it: " + error.data());
  return false;
}

}  // namespace h5mirror::vfd
