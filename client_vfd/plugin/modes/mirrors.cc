#include "client_vfd/plugin/modes/mirrors.h"

#include <errno.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/server_list.h"
#include "client_vfd/plugin/host/reporter.h"
#include "client_vfd/plugin/host/session_loader.h"
#include "client_vfd/plugin/host/state_name.h"
#include "client_vfd/plugin/host/told_once.h"
#include "client_vfd/plugin/modes/armed_barrier.h"

namespace h5mirror::vfd {
namespace {

constexpr size_t kErrorBytes = 4096;
// The bytes of a parallel file's cut begin to flow at its flush, not with the writes before. So the
// flush goes on beyond `timeout` while they flow fast enough to be there by then.
constexpr uint32_t kParallelLingerMs = 600'000;

// Outlives the file while one of its sessions finishes in the background.
struct Speaker {
  const HostLibrary& host;
  std::shared_ptr<const Config> config;
  std::string real_path;
  std::string name;
  std::string server;
  bool is_one_of_several = false;
};

// With none configured (client.toml is part of the configuration here) the session looks it up
// likewise: rpc/client_options.h.
std::string NamedServer(const std::string& configured) {
  if (!configured.empty()) return configured;
  const char* variable = std::getenv("H5MIRROR_SERVER");
  return variable != nullptr && *variable != '\0' ? variable : "127.0.0.1:7447";
}

void ReportState(const Speaker& speaker, const H5mEvent& event) {
  ReportLine line;
  line.event = event.event;
  line.file = speaker.real_path;
  line.name = speaker.name;
  line.server = NamedServer(speaker.server);
  line.state = StateName(event.state);
  line.cut = event.cut;
  line.version = event.version;
  line.detail = event.detail;
  Report(speaker.host, line);
}

Audience AudienceOf(const Speaker& speaker, const H5mEvent& event) {
  static auto* const told = new ToldOnce;  // Sessions speak until the process's end.
  const std::string mirror = speaker.real_path + "\n" + speaker.server;
  if (std::strcmp(event.event, "opened") == 0) told->Forget(mirror);
  const bool news = event.to_user != 0 && told->IsNews(mirror, event.event);
  return news ? Audience::kUserToo : Audience::kLogOnly;
}

void OnNotify(void* context, const H5mEvent* event) {
  const auto& speaker = *static_cast<const Speaker*>(context);
  const Audience audience = AudienceOf(speaker, *event);
  if (*event->detail != '\0') {
    Say(speaker.config->log, audience, event->detail);
  } else if (!speaker.config->log.empty()) {
    const std::string mirror = speaker.is_one_of_several ? " on " + speaker.server : "";
    Say(speaker.config->log, Audience::kLogOnly,
        speaker.real_path + mirror + ": " + event->event + ": " + StateName(event->state) +
            ", cut " + std::to_string(event->cut) + ", version " + std::to_string(event->version));
  }
  ReportState(speaker, *event);
}

void OnRelease(void* context) { delete static_cast<Speaker*>(context); }

// With on_outage=fail a barrier gives the server the time of one call to come back.
uint32_t OutageWaitMs(const Config& config) {
  return config.on_outage == OnOutage::kWait   ? config.outage_wait_ms
         : config.on_outage == OnOutage::kFail ? config.TimeoutMs()
                                               : 0;
}

// Fills in all but `server` and `context`, the target of the notices.
H5mAttach AttachOf(const Config& config, const MirrorTarget& target, int fd) {
  H5mAttach attach{};
  attach.fd = fd;
  attach.real_path = target.real_path.c_str();
  attach.name = target.name.c_str();
  attach.intent = target.intent;
  attach.base_cut = target.base_cut;
  attach.stat_at_open = target.stat_at_open;
  attach.mode_bits = target.mode_bits;
  attach.adopts_outside_change = config.on_outside_change == OnOutsideChange::kAdopt &&
                                 target.is_locked && target.intent == H5M_EXISTING;
  attach.is_written = target.is_written;
  attach.takes_parts = target.takes_parts;
  attach.ca = config.ca.c_str();
  attach.token = config.token.c_str();
  attach.comment = config.comment.c_str();
  attach.program = program_invocation_short_name;
  attach.ack_tick = ToApi(config.ack_tick);
  attach.ack_commit = ToApi(config.ack_commit);
  attach.checksum = ToApi(config.frame_checksum);
  attach.window_bytes = config.window_bytes;
  attach.timeout_ms = config.TimeoutMs();
  const bool lingers = target.is_written && config.linger_ms == 0;
  attach.linger_ms = lingers ? kParallelLingerMs : config.linger_ms;
  attach.outage_wait_ms = OutageWaitMs(config);
  attach.bandwidth_bytes_per_second = config.bandwidth_bytes_per_second;
  attach.page_size_bytes = config.page_size_bytes;
  attach.version_every_ms = config.version_every_ms;
  attach.version_min_interval_ms = config.version_min_interval_ms;
  attach.notify = OnNotify;
  attach.release = OnRelease;
  return attach;
}

}  // namespace

H5mChecksum ToApi(Checksum checksum) {
  return checksum == Checksum::kAuto ? H5M_CHECKSUM_AUTO
         : checksum == Checksum::kOn ? H5M_CHECKSUM_ON
                                     : H5M_CHECKSUM_OFF;
}

int BadnessOf(H5mState state) {
  switch (state) {
    case H5M_STATE_OFF:
      return 7;
    case H5M_STATE_DIVERGED:
      return 6;
    case H5M_STATE_BEHIND:
      return 5;
    case H5M_STATE_CONNECTING:
      return 4;
    case H5M_STATE_RESYNCING:
      return 3;
    case H5M_STATE_MIRRORING:
      return 2;
    case H5M_STATE_CLEAN:
    case H5M_STATE_READING:
      return 1;
    case H5M_STATE_UNCHANGED:
      break;
  }
  return 0;
}

Mirrors::Mirrors(const HostLibrary& host, std::shared_ptr<const Config> config,
                 const MirrorTarget& target, int fd) {
  std::string load_error;
  api_ = LoadSession(&load_error);
  const std::vector<std::string> servers = config->Servers();
  H5mAttach attach = AttachOf(*config, target, fd);
  for (const std::string& server : servers) {
    auto* speaker =
        new Speaker{host, config, target.real_path, target.name, server, servers.size() > 1};
    std::array<char, 1024> error{};
    const std::string tag = servers.size() > 1 ? ServerTag(server) : "";
    attach.server = server.c_str();
    attach.record_tag = tag.c_str();
    attach.context = speaker;
    Mirror mirror{server, nullptr, load_error};
    if (api_ != nullptr) {
      mirror.session = api_->attach(&attach, error.data(), error.size());
      mirror.why_off = error.data();
    }
    if (mirror.session == nullptr) {
      const std::string where = servers.size() > 1 ? " to " + server : "";
      const bool is_error = IsRemote(target.intent);  // And not to be told otherwise.
      if (!is_error) {
        mirror.why_off = target.real_path + " is NOT mirrored" + where + ": " + mirror.why_off;
      }
      const H5mEvent event{"attach", H5M_STATE_OFF, 0, 0, mirror.why_off.c_str(), is_error ? 0 : 1};
      OnNotify(speaker, &event);
      OnRelease(speaker);
    }
    mirrors_.push_back(std::move(mirror));
  }
}

int Mirrors::AwaitOpened(std::string* error) const {
  for (const Mirror& mirror : mirrors_) {
    std::array<char, kErrorBytes> text{};
    if (mirror.session == nullptr) {
      *error = mirror.why_off;
      return ENOTCONN;
    }
    const int failed = api_->await_opened(mirror.session, text.data(), text.size());
    if (failed != 0) {
      *error = text.data();
      return failed;
    }
  }
  return 0;
}

void Mirrors::BeforeWrite(uint64_t offset, uint64_t length) const {
  for (const Mirror& mirror : mirrors_) {
    if (mirror.session != nullptr) api_->before_write(mirror.session, offset, length);
  }
}

void Mirrors::AfterWrite(uint64_t offset, uint64_t length, H5mWriteClass write_class) const {
  for (const Mirror& mirror : mirrors_) {
    if (mirror.session != nullptr) {
      api_->after_write(mirror.session, offset, length, write_class);
    }
  }
}

void Mirrors::BeforeTruncate(uint64_t size_bytes) const {
  for (const Mirror& mirror : mirrors_) {
    if (mirror.session != nullptr) api_->before_truncate(mirror.session, size_bytes);
  }
}

void Mirrors::AfterTruncate(uint64_t size_bytes) const {
  for (const Mirror& mirror : mirrors_) {
    if (mirror.session != nullptr) api_->after_truncate(mirror.session, size_bytes);
  }
}

void Mirrors::ChildWrote() const {
  for (const Mirror& mirror : mirrors_) {
    if (mirror.session != nullptr) api_->child_wrote(mirror.session);
  }
}

void Mirrors::SetCut(const MemberCut* cut) const {
  H5mGroupCut group{};
  std::vector<const char*> members;
  if (cut != nullptr) {
    for (const std::string& member : cut->members) members.push_back(member.c_str());
    std::copy(cut->id.begin(), cut->id.end(), group.id);
    group.number = cut->number;
    group.time_ns = cut->time_ns;
    group.members = members.data();
    group.member_count = members.size();
  }
  for (size_t index = 0; index < mirrors_.size(); ++index) {
    if (mirrors_[index].session == nullptr) continue;
    const bool is_known = cut != nullptr && index < cut->whole_numbers.size();
    group.whole_number = is_known ? cut->whole_numbers[index] : 0;
    api_->set_group(mirrors_[index].session, cut != nullptr ? &group : nullptr);
  }
}

std::vector<uint64_t> Mirrors::DurableNumbers() const {
  std::vector<uint64_t> numbers;
  for (size_t index = 0; index < mirrors_.size(); ++index) {
    H5mStatus status;
    StatusOf(index, &status);
    numbers.push_back(status.group_number);
  }
  return numbers;
}

void Mirrors::BeginBarrier(H5mBarrier kind, H5mAck ack, const std::string& comment) const {
  for (const Mirror& mirror : mirrors_) {
    if (mirror.session != nullptr) api_->cut(mirror.session, kind, ack, comment.c_str());
  }
}

int Mirrors::AwaitBarrier() const {
  int result = 0;
  for (const Mirror& mirror : mirrors_) {
    if (mirror.session == nullptr || api_->await_cut(mirror.session) != 0) result = 1;
  }
  return result;
}

void Mirrors::Detach() const {
  for (const Mirror& mirror : mirrors_) {
    if (mirror.session != nullptr) api_->detach_cuts(mirror.session);
  }
}

bool Mirrors::TicketForPart(H5mPartTicket* ticket) const {
  H5mSession* const session = mirrors_.size() == 1 ? mirrors_.front().session : nullptr;
  return session != nullptr && api_->part_ticket(session, ticket) == 0;
}

bool Mirrors::EndPart(const H5mPartTicket& ticket, const std::vector<H5mRange>& ranges,
                      bool is_sent) const {
  H5mSession* const session = mirrors_.front().session;
  return api_->end_part(session, &ticket, ranges.data(), ranges.size(), is_sent ? 1 : 0) == 0;
}

void Mirrors::Seal() const {
  for (const Mirror& mirror : mirrors_) {
    if (mirror.session != nullptr) api_->seal(mirror.session);
  }
  for (const Mirror& mirror : mirrors_) {
    if (mirror.session != nullptr) api_->await_sealed(mirror.session);
  }
}

int Mirrors::Close(std::string* error) {
  int result = 0;
  for (const Mirror& mirror : mirrors_) {
    if (mirror.session != nullptr) api_->begin_close(mirror.session);
  }
  for (Mirror& mirror : mirrors_) {
    if (mirror.session == nullptr) continue;
    std::array<char, kErrorBytes> text{};
    const int failed =
        api_->close(std::exchange(mirror.session, nullptr), text.data(), text.size());
    if (failed != 0 && result == 0) *error = text.data();
    if (failed != 0) result = failed;
  }
  return result;
}

void Mirrors::StatusOf(size_t index, H5mStatus* status) const {
  *status = H5mStatus{};
  const Mirror& mirror = mirrors_[index];
  if (mirror.session != nullptr) return api_->status(mirror.session, status);
  status->state = H5M_STATE_OFF;
  std::snprintf(status->message, sizeof status->message, "%s", mirror.why_off.c_str());
}

void Mirrors::WorstStatus(H5mStatus* status) const {
  StatusOf(0, status);
  for (size_t index = 1; index < mirrors_.size(); ++index) {
    H5mStatus other;
    StatusOf(index, &other);
    const int badness = BadnessOf(other.state) - BadnessOf(status->state);
    const bool lags_more = badness == 0 && other.behind_for_ns > status->behind_for_ns;
    if (badness > 0 || lags_more) *status = other;
  }
}

void ReportUnchanged(const HostLibrary& host, const std::shared_ptr<const Config>& config,
                     const MirrorTarget& target) {
  for (const std::string& server : config->Servers()) {
    const Speaker speaker{host, config, target.real_path, target.name, server};
    ReportState(speaker, H5mEvent{"close", H5M_STATE_UNCHANGED, 0, 0, "", 0});
  }
}

}  // namespace h5mirror::vfd
