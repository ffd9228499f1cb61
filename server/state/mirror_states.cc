#include "server/state/mirror_states.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"
#include "rpc/mirror_state_name.h"
#include "server/state/convert.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr size_t kDetailBytesMax = 1000;

bool HasWriter(v1::MirrorState state) {
  return state == v1::MIRROR_STATE_CONNECTED || state == v1::MIRROR_STATE_RESYNCING;
}

using Json = nlohmann::json;

int64_t NumberOf(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

std::string TextOf(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// True: the state outlives a restart, because no writer would report it anew.
bool IsKept(v1::MirrorState state) {
  return state == v1::MIRROR_STATE_DEGRADED || state == v1::MIRROR_STATE_DIVERGED;
}

struct Kept {
  Bytes16 file_id{};
  v1::MirrorStatus status;
  int64_t last_cut = 0;
  store::LocalStat local;
};

Json ToJson(const Kept& kept) {
  return Json{{"file_id", HexOf(kept.file_id)},
              {"state", rpc::MirrorStateName(kept.status.state())},
              {"since_ns", absl::ToUnixNanos(FromProto(kept.status.since_time()))},
              {"detail", kept.status.detail()},
              {"last_cut", kept.last_cut},
              {"inode", kept.local.inode},
              {"size_bytes", kept.local.size_bytes},
              {"mtime_ns", kept.local.mtime_ns},
              {"ctime_ns", kept.local.ctime_ns}};
}

// Unset: it is none.
std::optional<Kept> FromJson(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  Kept kept;
  const absl::StatusOr<Bytes16> file_id = ParseHex16(TextOf(json, "file_id"));
  for (const v1::MirrorState state : {v1::MIRROR_STATE_DEGRADED, v1::MIRROR_STATE_DIVERGED}) {
    if (TextOf(json, "state") == rpc::MirrorStateName(state)) kept.status.set_state(state);
  }
  if (!file_id.ok() || !IsKept(kept.status.state())) return std::nullopt;
  kept.file_id = *file_id;
  *kept.status.mutable_since_time() = ToProto(absl::FromUnixNanos(NumberOf(json, "since_ns")));
  kept.status.set_detail(TextOf(json, "detail").substr(0, kDetailBytesMax));
  kept.last_cut = NumberOf(json, "last_cut");
  kept.local.inode = static_cast<uint64_t>(NumberOf(json, "inode"));
  kept.local.size_bytes = NumberOf(json, "size_bytes");
  kept.local.mtime_ns = NumberOf(json, "mtime_ns");
  kept.local.ctime_ns = NumberOf(json, "ctime_ns");
  return kept;
}

bool SameLocal(const store::LocalStat& a, const store::LocalStat& b) {
  return a.inode == b.inode && a.size_bytes == b.size_bytes && a.mtime_ns == b.mtime_ns &&
         a.ctime_ns == b.ctime_ns;
}

}  // namespace

absl::Status CheckMirrorStatus(const v1::MirrorStatus& status) {
  if (!HasWriter(status.state())) {
    return absl::InvalidArgumentError(
        StrCat("keep_alive.mirror.state ", static_cast<int>(status.state()),
               " is not a connected writer's: CONNECTED or RESYNCING"));
  }
  const auto check = [](std::string_view field, int64_t value) {
    if (value >= 0) return absl::OkStatus();
    return absl::InvalidArgumentError(StrCat("keep_alive.mirror.", field, " ", value, " < 0"));
  };
  absl::Status checked = check("pending_bytes", status.pending_bytes());
  checked.Update(check("pending_cuts", status.pending_cuts()));
  checked.Update(check("resync_total_bytes", status.resync_total_bytes()));
  checked.Update(check("resync_sent_bytes", status.resync_sent_bytes()));
  if (status.detail().size() > kDetailBytesMax) {
    checked.Update(
        absl::InvalidArgumentError(StrCat("keep_alive.mirror.detail has ", status.detail().size(),
                                          " bytes; at most ", kDetailBytesMax, " are allowed")));
  }
  return checked;
}

MirrorStates::Entry& MirrorStates::EntryOf(const Bytes16& file_id) {
  const auto found = entries_.find(file_id);
  if (found != entries_.end()) return found->second;
  if (entries_.size() >= files_max_) {
    const auto idle = std::find_if(entries_.begin(), entries_.end(), [](const auto& entry) {
      return !HasWriter(entry.second.status.state());
    });
    if (idle != entries_.end()) Erase(idle);
  }
  return entries_[file_id];
}

void MirrorStates::Erase(Entries::iterator entry) {
  has_news_ |= IsKept(entry->second.status.state());
  entries_.erase(entry);
}

void MirrorStates::Change(const std::string& name, Entry& entry, v1::MirrorState state,
                          const std::string& detail) {
  const v1::MirrorState before = entry.status.state();
  const bool news = before != state;
  if (!news && entry.status.detail() == detail) return;
  has_news_ |= IsKept(state) || IsKept(before);
  entry.status.Clear();
  entry.status.set_state(state);
  entry.status.set_detail(detail.substr(0, kDetailBytesMax));
  *entry.status.mutable_since_time() = ToProto(clock_.Now());
  // That a writer has come to a file that was in sync is told by its session's line.
  const bool as_ever =
      before == v1::MIRROR_STATE_UNSPECIFIED && state == v1::MIRROR_STATE_CONNECTED;
  if (!news || as_ever) return;
  spdlog::log(HasWriter(state) ? spdlog::level::info : spdlog::level::warn,
              "mirror: file={} {}{}{}", Quoted(name), rpc::MirrorStateName(state),
              detail.empty() ? "" : ": ", detail);
}

void MirrorStates::Connected(const std::string& name, const Bytes16& file_id, store::Token token) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = EntryOf(file_id);
  entry.token = token;
  Change(name, entry, v1::MIRROR_STATE_CONNECTED, "");
}

void MirrorStates::Reported(const std::string& name, const Bytes16& file_id, store::Token token,
                            const v1::MirrorStatus& status) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(file_id);
  if (found == entries_.end() || found->second.token != token) return;
  Change(name, found->second, status.state(), "");  // A stranger's text is not for the log.
  found->second.status = status;
}

void MirrorStates::Ended(const Bytes16& file_id, store::Token token) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(file_id);
  if (found != entries_.end() && found->second.token == token) Erase(found);
}

bool MirrorStates::Lost(const std::string& name, const store::FileInfo& info, store::Token token,
                        const std::string& why) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(info.file_id);
  if (found == entries_.end() || found->second.token != token) return false;
  Remember(info, found->second);
  Change(name, found->second, v1::MIRROR_STATE_DEGRADED, why);
  return true;
}

bool MirrorStates::Diverged(const std::string& name, const store::FileInfo& info,
                            const std::string& reason) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = EntryOf(info.file_id);
  entry.token = 0;
  Remember(info, entry);
  const bool is_news = entry.status.state() != v1::MIRROR_STATE_DIVERGED;
  Change(name, entry, v1::MIRROR_STATE_DIVERGED, reason);
  return is_news;
}

void MirrorStates::Remember(const store::FileInfo& info, Entry& entry) {
  entry.last_cut = info.last_cut;
  entry.local = info.local;
}

MirrorStates::Entry* MirrorStates::Find(const store::FileInfo& info) {
  const auto found = entries_.find(info.file_id);
  if (found == entries_.end()) return nullptr;
  Entry& entry = found->second;
  const bool changed = entry.last_cut != info.last_cut || !SameLocal(entry.local, info.local);
  if (HasWriter(entry.status.state()) || !changed) return &entry;
  Erase(found);
  return nullptr;
}

void MirrorStates::Settle(const store::FileInfo& info) {
  absl::MutexLock lock(&mutex_);
  Find(info);
}

void MirrorStates::FoundEqual(const std::string& name, const Bytes16& file_id) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(file_id);
  if (found == entries_.end() || !IsKept(found->second.status.state())) return;
  Erase(found);
  spdlog::info("mirror: file={} in sync: it was found equal to its local file", Quoted(name));
}

void MirrorStates::Forget(const Bytes16& file_id) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(file_id);
  if (found != entries_.end()) Erase(found);
}

v1::MirrorStatus MirrorStates::StatusOf(const store::FileInfo& info) {
  absl::MutexLock lock(&mutex_);
  if (const Entry* entry = Find(info)) return entry->status;
  v1::MirrorStatus status;
  const bool newest_is_version = info.newest_version.cut == info.last_cut;
  if (info.local.inode != 0) {
    status.set_state(v1::MIRROR_STATE_IN_SYNC);
    if (newest_is_version) {
      *status.mutable_since_time() = ToProto(info.newest_version.server_time);
    }
  } else if (newest_is_version && info.last_check && info.last_check->differing_bytes == 0 &&
             info.last_check->version == info.newest_version.version) {
    status.set_state(v1::MIRROR_STATE_IN_SYNC);
    *status.mutable_since_time() = ToProto(info.last_check->time);
  }
  return status;
}

std::optional<std::string> MirrorStates::TakeNews() {
  absl::MutexLock lock(&mutex_);
  if (!std::exchange(has_news_, false)) return std::nullopt;
  Json kept = Json::array();
  for (const auto& [file_id, entry] : entries_) {
    if (!IsKept(entry.status.state())) continue;
    kept.push_back(ToJson({file_id, entry.status, entry.last_cut, entry.local}));
  }
  return kept.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void MirrorStates::Restore(std::string_view news) {
  const Json kept = Json::parse(news.begin(), news.end(), nullptr, /*allow_exceptions=*/false);
  if (!kept.is_array()) return;
  absl::MutexLock lock(&mutex_);
  for (const Json& json : kept) {
    if (entries_.size() >= files_max_) return;
    const std::optional<Kept> one = FromJson(json);
    if (!one) continue;
    Entry& entry = entries_[one->file_id];
    entry.status = one->status;
    entry.last_cut = one->last_cut;
    entry.local = one->local;
  }
}

MirrorSummary MirrorStates::Sum() const {
  MirrorSummary summary;
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mutex_);
  for (const auto& [file_id, entry] : entries_) {
    const v1::MirrorStatus& status = entry.status;
    ++summary.files[status.state()];
    summary.lag_cuts = std::max(summary.lag_cuts, status.pending_cuts());
    summary.lag_bytes = std::max(summary.lag_bytes, status.pending_bytes());
    const absl::Time since = status.state() == v1::MIRROR_STATE_DEGRADED
                                 ? FromProto(status.since_time())
                                 : FromProto(status.pending_since_time());
    if (since != absl::InfinitePast()) summary.lag = std::max(summary.lag, now - since);
  }
  return summary;
}

}  // namespace h5mirror::server
