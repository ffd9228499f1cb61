#include "tests/cluster_sim/disk.h"

#include <algorithm>
#include <utility>

#include "tests/cluster_sim/faults.h"

namespace h5mirror::cluster_sim {
namespace {

// Stands for the hour of mon_osd_blocklist_default_expire.
constexpr absl::Duration kBlockedByMds = absl::Seconds(12);
// Monitors and OSDs pass a map on. Some OSDs get it late.
constexpr absl::Duration kMapTravelsMax = absl::Seconds(3);
constexpr absl::Duration kMapIsLateMax = absl::Seconds(15);

}  // namespace

SessionPtr Disk::Mount(const std::string& name, std::function<bool()> runs) {
  auto session = std::make_shared<Session>();
  session->name = name;
  session->map = map_;
  session->runs = std::move(runs);
  sessions_[name] = session;
  return session;
}

void Disk::Forget(Session& session) {
  session.buffered.clear();
  session.is_forgotten = true;
}

void Disk::Write(Session& session, const Object& object, uint64_t epoch, uint64_t value) {
  // If the client has noticed the end, the write goes to a session that is gone.
  if (!session.has_noticed) session.buffered[object] = {value, epoch};
}

bool Disk::IsRefused(const Session& session, Osd& osd) {
  // An operation brings the map of its client to the OSD.
  osd.map = std::max(osd.map, session.map);
  const auto blocked = blocked_.find(session.name);
  return blocked != blocked_.end() && blocked->second.since_map <= osd.map &&
         world_.Now() < blocked->second.until;
}

void Disk::Land(Session& session, const Object& object, const Session::Buffered& write) {
  --session.in_flight;
  Osd& osd = osds_[object];
  if (IsRefused(session, osd)) {
    world_.Trace(session.name, ": a write of ", object.ToString(), " is refused");
    session.has_noticed = true;
    session.buffered.clear();
    return;
  }
  golden_.Landed(object, write.epoch, osd.value, write.value);
  osd.value = write.value;
}

bool Disk::Sync(const SessionPtr& session, const Wait& wait) {
  const auto writes = std::exchange(session->buffered, {});
  for (const auto& [object, write] : writes) {
    absl::Duration takes = world_.Between(absl::Microseconds(300), absl::Milliseconds(8));
    if (world_.Chance(0.03)) takes += world_.Between(absl::ZeroDuration(), absl::Seconds(4));
    absl::Time& last = session->last_landing[object];
    last = std::max(last, world_.Now() + takes);
    ++session->in_flight;
    world_.After(last - world_.Now(), [this, session, object = object, write = write] {
      Land(*session, object, write);
    });
  }
  wait([session] { return session->in_flight == 0; }, absl::InfiniteFuture());
  if (!session->has_noticed) return true;
  // If nothing is left to be written, nothing fails.
  return world_.Chance(0.7);
}

std::optional<uint64_t> Disk::Read(Session& session, const Object& object, uint64_t epoch) {
  Osd& osd = osds_[object];
  if (IsRefused(session, osd)) {
    session.has_noticed = true;
    return std::nullopt;
  }
  golden_.Found(object, epoch, osd.value);
  return osd.value;
}

// A process that stands still notices nothing.
void Disk::Notice(const SessionPtr& session) {
  world_.After(world_.Between(absl::ZeroDuration(), absl::Seconds(2)), [this, session] {
    if (session->is_forgotten) return;
    if (!session->runs()) return Notice(session);
    session->has_noticed = true;
    session->buffered.clear();
  });
}

void Disk::Put(const std::string& name, absl::Time until) {
  Blocked& blocked = blocked_[name];
  // Until that time the OSDs' maps already block it.
  if (blocked.until <= world_.Now()) blocked.since_map = ++map_;
  blocked.until = std::max(blocked.until, until);
  for (auto& [object, osd] : osds_) {
    const absl::Duration most = world_.Chance(0.7) ? kMapTravelsMax : kMapIsLateMax;
    world_.After(world_.Between(absl::ZeroDuration(), most), [this, object = object, map = map_] {
      osds_[object].map = std::max(osds_[object].map, map);
    });
  }
}

void Disk::EndSession(const std::string& name) {
  const auto found = sessions_.find(name);
  if (found == sessions_.end() || found->second->has_ended) return;
  world_.Trace(name, ": its session ends");
  found->second->has_ended = true;
  Put(name, world_.Now() + kBlockedByMds);
  Notice(found->second);
}

void Disk::Block(const std::string& name) {
  if (Is(Fault::kShortBlocklist)) return;
  Put(name, absl::InfiniteFuture());
}

}  // namespace h5mirror::cluster_sim
