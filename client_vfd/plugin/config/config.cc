#include "client_vfd/plugin/config/config.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "base/driver_keys.h"
#include "base/server_list.h"
#include "base/swmr_fields.h"
#include "client_vfd/plugin/config/config_values.h"

namespace h5mirror::vfd {
namespace {

constexpr uint32_t kVersionAgeMaxMs = 31u * 86'400'000;

using Setter = Problem (*)(const std::string& value, Config* config);

struct Key {
  std::string_view name;
  Setter set;
};

// Every key, in the order of kDriverKeys.
constexpr auto kKeys = std::to_array<Key>({
    {"server", [](const std::string& v, Config* c) { return SetServers(v, &c->server); }},
    {"mode", [](const std::string& v, Config* c) { return SetMode(v, &c->mode); }},
    {"under",
     [](const std::string& v, Config* c) {
       return SetChoice<UnderDriver>(v, {{"sec2", UnderDriver::kSec2},
                                         {"direct", UnderDriver::kDirect},
                                         {"log", UnderDriver::kLog},
                                         {"mpio", UnderDriver::kMpio}},
                                     &c->under);
     }},
    {"root", [](const std::string& v, Config* c) { return SetAbsolutePath(v, &c->root); }},
    {"name", [](const std::string& v, Config* c) { return SetText(v, &c->name); }},
    {"include", [](const std::string& v, Config* c) { return SetList(v, &c->include); }},
    {"exclude", [](const std::string& v, Config* c) { return SetList(v, &c->exclude); }},
    {"flush",
     [](const std::string& v, Config* c) {
       return SetChoice<FlushKind>(v, {{"tick", FlushKind::kTick}, {"sync", FlushKind::kSync}},
                                   &c->flush);
     }},
    {"ack",
     [](const std::string& v, Config* c) {
       Problem problem = SetAck(v, &c->ack_tick);
       c->ack_commit = c->ack_tick;
       return problem;
     }},
    {"ack_tick", [](const std::string& v, Config* c) { return SetAck(v, &c->ack_tick); }},
    {"ack_commit", [](const std::string& v, Config* c) { return SetAck(v, &c->ack_commit); }},
    {"window",
     [](const std::string& v, Config* c) {
       return SetSize(v, 1 << 20, uint64_t{1} << 40, &c->window_bytes);
     }},
    {"timeout",
     [](const std::string& v, Config* c) { return SetDurationMs(v, 10, 86'400'000, &c->timeout_ms); }},
    {"linger",
     [](const std::string& v, Config* c) { return SetDurationMs(v, 0, 86'400'000, &c->linger_ms); }},
    {"on_outage",
     [](const std::string& v, Config* c) {
       return SetOnOutage(v, &c->on_outage, &c->outage_wait_ms);
     }},
    {"on_outside_change",
     [](const std::string& v, Config* c) {
       return SetChoice<OnOutsideChange>(
           v, {{"adopt", OnOutsideChange::kAdopt}, {"ask", OnOutsideChange::kAsk}},
           &c->on_outside_change);
     }},
    {"bandwidth",
     [](const std::string& v, Config* c) {
       return SetBandwidth(v, &c->bandwidth_bytes_per_second);
     }},
    {"version", [](const std::string& v, Config* c) { return SetText(v, &c->version); }},
    {"cache",
     [](const std::string& v, Config* c) {
       return SetSize(v, 1 << 20, uint64_t{1} << 40, &c->cache_bytes);
     }},
    {"agent", [](const std::string& v, Config* c) { return SetAgent(v, &c->agent); }},
    {"ca", [](const std::string& v, Config* c) { return SetText(v, &c->ca); }},
    {"token", [](const std::string& v, Config* c) { return SetText(v, &c->token); }},
    {"page_size", [](const std::string& v, Config* c) { return SetPageSize(v, &c->page_size_bytes); }},
    {"comment", [](const std::string& v, Config* c) { return SetComment(v, &c->comment); }},
    {"version_every",
     [](const std::string& v, Config* c) {
       return SetDurationMs(v, 100, kVersionAgeMaxMs, &c->version_every_ms);
     }},
    {"version_min_interval",
     [](const std::string& v, Config* c) {
       return SetDurationMs(v, 0, kVersionAgeMaxMs, &c->version_min_interval_ms);
     }},
    {"spool", [](const std::string& v, Config* c) { return SetAbsolutePath(v, &c->spool); }},
    {"log", [](const std::string& v, Config* c) { return SetText(v, &c->log); }},
    {"frame_checksum",
     [](const std::string& v, Config* c) {
       return SetChoice<Checksum>(
           v, {{"auto", Checksum::kAuto}, {"on", Checksum::kOn}, {"off", Checksum::kOff}},
           &c->frame_checksum);
     }},
    {"metadata",
     [](const std::string& v, Config* c) {
       return SetChoice<MetadataPlace>(
           v, {{"file", MetadataPlace::kFile}, {"memory", MetadataPlace::kMemory}}, &c->metadata);
     }},
    {"metadata_memory",
     [](const std::string& v, Config* c) {
       return SetSize(v, 4 << 10, uint64_t{1} << 40, &c->metadata_memory_bytes);
     }},
    {"parallel_senders",
     [](const std::string& v, Config* c) {
       return SetChoice<ParallelSenders>(
           v, {{"rank0", ParallelSenders::kRank0}, {"node", ParallelSenders::kNode}},
           &c->parallel_senders);
     }},
});

constexpr bool SetsEveryKey() {
  if (kKeys.size() != kDriverKeys.size()) return false;
  for (size_t at = 0; at < kKeys.size(); ++at) {
    if (kKeys[at].name != kDriverKeys[at]) return false;
  }
  return true;
}
static_assert(SetsEveryKey(), "base/driver_keys.h lists the same keys in the same order");

std::string_view Trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

Problem SetAll(const std::vector<KeyValue>& items, const std::string& where, Config* config) {
  for (const auto& [key, value] : items) {
    if (Problem problem = SetConfigKey(key, value, config)) return where + *problem;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> Config::Servers() const {
  // One address the session looks up by itself, where none is configured; it knows of no lists.
  const char* variable = server.empty() ? std::getenv("H5MIRROR_SERVER") : nullptr;
  const bool lists = variable != nullptr && std::strchr(variable, ',') != nullptr;
  std::vector<std::string> servers = ParseServerList(lists ? variable : server).servers;
  if (servers.empty()) servers.emplace_back();
  return servers;
}

void Config::SettleRemote() {
  if (mode != Mode::kRemote) return;
  if (ack_tick == Ack::kNone) ack_tick = Ack::kApplied;
  if (ack_commit == Ack::kNone) ack_commit = Ack::kApplied;
  if (on_outage == OnOutage::kDegrade) on_outage = OnOutage::kFail;
}

Problem SplitConfigString(std::string_view text, std::vector<KeyValue>* items) {
  while (!text.empty()) {
    const size_t semicolon = text.find(';');
    const std::string_view item = Trim(text.substr(0, semicolon));
    text = semicolon == std::string_view::npos ? std::string_view() : text.substr(semicolon + 1);
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return "'" + std::string(item) + "' is not key=value (items are separated by ';')";
    }
    items->emplace_back(Trim(item.substr(0, equals)), Trim(item.substr(equals + 1)));
  }
  return std::nullopt;
}

Problem SetConfigKey(const std::string& key, const std::string& value, Config* config) {
  for (const Key& known : kKeys) {
    if (key != known.name) continue;
    Problem problem = known.set(value, config);
    if (problem) return key + "=" + value + ": " + *problem;
    return std::nullopt;
  }
  if (const std::string_view advice = AdviceOnSwmrField(key); !advice.empty()) {
    return "unknown key '" + key + "'; " + std::string(advice);
  }
  std::string list;
  for (const Key& known : kKeys) list += (list.empty() ? "" : ", ") + std::string(known.name);
  return "unknown key '" + key + "'; known are: " + list;
}

Problem MakeConfig(std::string_view text, const std::string& home, Config* config) {
  std::vector<std::string> default_files = {"/etc/h5mirror/client.toml"};
  if (!home.empty()) default_files.push_back(home + "/.config/h5mirror/client.toml");
  for (const std::string& path : default_files) {
    std::vector<KeyValue> items;
    if (Problem problem = ReadConfigFile(path, Missing::kAllowed, &items)) return problem;
    if (Problem problem = SetAll(items, path + ": ", config)) return problem;
  }
  text = Trim(text);
  std::vector<KeyValue> items;
  if (!text.empty() && text.front() == '@') {
    const std::string path(text.substr(1));
    if (Problem problem = ReadConfigFile(path, Missing::kRefused, &items)) return problem;
    return SetAll(items, path + ": ", config);
  }
  if (Problem problem = SplitConfigString(text, &items)) return problem;
  return SetAll(items, "", config);
}

Problem CachedConfig(const std::string& text, std::shared_ptr<const Config>* config) {
  static auto* mutex = new std::mutex;
  static auto* cache = new std::map<std::string, std::shared_ptr<const Config>>;
  std::lock_guard lock(*mutex);
  auto found = cache->find(text);
  if (found == cache->end()) {
    const char* home = std::getenv("HOME");
    auto made = std::make_shared<Config>();
    if (Problem problem = MakeConfig(text, home ? home : "", made.get())) return problem;
    made->SettleRemote();
    found = cache->emplace(text, std::move(made)).first;
  }
  *config = found->second;
  return std::nullopt;
}

}  // namespace h5mirror::vfd
