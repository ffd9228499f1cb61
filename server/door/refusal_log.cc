#include "server/door/refusal_log.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <utility>

#include "absl/status/status.h"
#include "base/strings.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr absl::Duration kEvery = absl::Seconds(1);
constexpr std::string_view kOthers = "others";

std::string_view WithoutPort(std::string_view address) {
  return address.substr(0, address.rfind(':'));
}

// The key of a caller. A host with IPv6 has a whole /64 of addresses, so they share one key.
std::string KeyOf(std::string_view peer) {
  if (peer.starts_with("unix")) return "unix";
  if (!peer.starts_with("ipv6:")) return std::string(WithoutPort(peer));
  std::string text(WithoutPort(peer.substr(5)));
  for (const std::string_view open : {"[", "%5B"}) {  // gRPC writes them as in a URL, or not.
    if (std::string_view(text).starts_with(open)) text.erase(0, open.size());
  }
  text.erase(std::min(text.find_first_of("]%"), text.size()));
  in6_addr address{};
  if (inet_pton(AF_INET6, text.c_str(), &address) != 1) return text;
  if (IN6_IS_ADDR_V4MAPPED(&address)) return text;
  std::fill(address.s6_addr + 8, address.s6_addr + 16, uint8_t{0});
  char network[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, &address, network, sizeof(network));
  return StrCat("ipv6:", network);
}

}  // namespace

RefusalLog& RefusalLog::Instance() {
  static auto* instance = new RefusalLog;
  return *instance;
}

std::optional<uint64_t> RefusalLog::Admit(std::string_view peer, absl::Duration now) {
  std::string key = KeyOf(peer);
  absl::MutexLock lock(&mutex_);
  if (peers_.size() >= peers_max_ && !peers_.contains(key)) {
    // Looked through at most once a second, however many come.
    if (!last_sweep_ || now - *last_sweep_ >= kEvery) {
      last_sweep_ = now;
      for (auto at = peers_.begin(); at != peers_.end();) {
        const bool is_old = now - at->second.last_line >= kEvery;
        if (is_old) forgotten_ += at->second.left_out;
        at = is_old ? peers_.erase(at) : std::next(at);
      }
    }
    if (peers_.size() >= peers_max_) key = kOthers;
  }
  const auto [found, is_new] = peers_.try_emplace(std::move(key), Entry{now, 0});
  Entry& entry = found->second;
  if (!is_new && now - entry.last_line < kEvery) {
    ++entry.left_out;
    return std::nullopt;
  }
  entry.last_line = now;
  return std::exchange(entry.left_out, 0) + std::exchange(forgotten_, 0);
}

void RefusalLog::Warn(std::string_view what, const std::string& peer, const absl::Status& status,
                      absl::Duration now) {
  const std::optional<uint64_t> left_out = Admit(peer, now);
  if (!left_out) return;
  const std::string more =
      *left_out == 0 ? "" : StrCat(" (and ", *left_out, " more since the last such line)");
  spdlog::warn("{} from {}: {}{}", what, peer, status.ToString(), more);
}

}  // namespace h5mirror::server
