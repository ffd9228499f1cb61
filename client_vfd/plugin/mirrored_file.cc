#include "client_vfd/plugin/mirrored_file.h"

#include <errno.h>

#include <array>
#include <cstring>
#include <utility>

#include "client_vfd/plugin/fork_guard.h"
#include "client_vfd/plugin/h5_error.h"
#include "client_vfd/plugin/reporter.h"
#include "client_vfd/plugin/session_loader.h"
#include "client_vfd/plugin/state_name.h"
#include "client_vfd/plugin/superblock.h"
#include "client_vfd/plugin/told_once.h"

namespace h5mirror::vfd {
namespace {

// Before the attach, writes up to this size are compared with the local bytes. Larger ones are
// data: comparing them would cost a read of everything.
constexpr size_t kCompareBytesMax = 64 << 10;

// What outlives the file while its session finishes in the background.
struct Speaker {
  const HostLibrary& host;
  std::shared_ptr<const Config> config;
  std::string real_path;
  std::string name;
};

void ReportState(const Speaker& speaker, const H5mEvent& event) {
  ReportLine line;
  line.event = event.event;
  line.file = speaker.real_path;
  line.name = speaker.name;
  line.server = speaker.config->server;
  line.state = StateName(event.state);
  line.cut = event.cut;
  line.version = event.version;
  line.detail = event.detail;
  Report(speaker.host, line);
}

Audience AudienceOf(const Speaker& speaker, const H5mEvent& event) {
  static auto* const told = new ToldOnce;  // Sessions speak until the process's end.
  if (std::strcmp(event.event, "opened") == 0) told->Forget(speaker.real_path);
  const bool news = event.to_user != 0 && told->IsNews(speaker.real_path, event.event);
  return news ? Audience::kUserToo : Audience::kLogOnly;
}

void OnNotify(void* context, const H5mEvent* event) {
  const auto& speaker = *static_cast<const Speaker*>(context);
  const Audience audience = AudienceOf(speaker, *event);
  if (*event->detail != '\0') {
    Say(speaker.config->log, audience, event->detail);
  } else if (!speaker.config->log.empty()) {
    Say(speaker.config->log, Audience::kLogOnly,
        speaker.real_path + ": " + event->event + ": " + StateName(event->state) + ", cut " +
            std::to_string(event->cut) + ", version " + std::to_string(event->version));
  }
  ReportState(speaker, *event);
}

void OnRelease(void* context) { delete static_cast<Speaker*>(context); }

H5mAck ToApi(Ack ack) {
  return ack == Ack::kNone      ? H5M_ACK_NONE
         : ack == Ack::kApplied ? H5M_ACK_APPLIED
                                : H5M_ACK_DURABLE;
}

H5mChecksum ToApi(Checksum checksum) {
  return checksum == Checksum::kAuto ? H5M_CHECKSUM_AUTO
         : checksum == Checksum::kOn ? H5M_CHECKSUM_ON
                                     : H5M_CHECKSUM_OFF;
}

// With on_outage=fail a barrier gives the server the time of one call to come back.
uint32_t OutageWaitMs(const Config& config) {
  return config.on_outage == OnOutage::kWait   ? config.outage_wait_ms
         : config.on_outage == OnOutage::kFail ? config.TimeoutMs()
                                               : 0;
}

Outcome OutcomeOf(herr_t result) { return result < 0 ? Outcome::kFailed : Outcome::kOk; }
Phase PhaseOf(hbool_t closing) { return closing ? Phase::kClosing : Phase::kOpen; }

}  // namespace

MirroredFile::MirroredFile(const HostLibrary& host, std::shared_ptr<const Config> config,
                           MirrorTarget target, H5FD_t* under, int fd)
    : host_(host),
      config_(std::move(config)),
      target_(std::move(target)),
      under_(under),
      fd_(fd),
      fork_generation_(ForkGeneration()) {}

bool MirroredFile::InForkedChild() const { return ForkGeneration() != fork_generation_; }

void MirroredFile::NoteChildWrite() {
  if (session_ != nullptr) api_->child_wrote(session_);
}

herr_t MirroredFile::Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
                           const void* buffer) {
  if (InForkedChild()) {
    NoteChildWrite();
    return under_->cls->write(under_, type, dxpl, addr, size, buffer);
  }
  if (session_ == nullptr) {
    // Not written at all: the file then keeps its mtime, and a crash before the first real change
    // leaves the record of its last clean close valid.
    if (!attach_tried_ && EqualsLocal(type, dxpl, addr, size, buffer)) return 0;
    Attach();
  }
  if (session_ != nullptr) api_->before_write(session_, addr, size);
  const herr_t result = under_->cls->write(under_, type, dxpl, addr, size, buffer);
  // A failed write may have written some of it.
  if (session_ != nullptr) api_->after_write(session_, addr, size);
  detector_.OnWrite(OutcomeOf(result));
  if (result >= 0) WatchSuperblock(addr, size, buffer);
  return result;
}

bool MirroredFile::EqualsLocal(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
                               const void* buffer) {
  if (size > kCompareBytesMax || addr + size > under_->cls->get_eof(under_, type)) return false;
  if (!scratch_) scratch_ = std::make_unique<char[]>(kCompareBytesMax);
  if (under_->cls->read(under_, type, dxpl, addr, size, scratch_.get()) < 0) return false;
  return std::memcmp(scratch_.get(), buffer, size) == 0;
}

void MirroredFile::Attach() {
  if (attach_tried_) return;
  attach_tried_ = true;
  scratch_.reset();
  std::array<char, 1024> error{};
  std::string load_error;
  api_ = LoadSession(&load_error);
  auto* speaker = new Speaker{host_, config_, target_.real_path, target_.name};
  if (api_ != nullptr) {
    H5mAttach attach{};
    attach.fd = fd_;
    attach.real_path = target_.real_path.c_str();
    attach.name = target_.name.c_str();
    attach.intent = target_.intent;
    attach.stat_at_open = target_.stat_at_open;
    attach.mode_bits = target_.mode_bits;
    attach.server = config_->server.c_str();
    attach.ca = config_->ca.c_str();
    attach.token = config_->token.c_str();
    attach.comment = config_->comment.c_str();
    attach.program = program_invocation_short_name;
    attach.ack_tick = ToApi(config_->ack_tick);
    attach.ack_commit = ToApi(config_->ack_commit);
    attach.checksum = ToApi(config_->frame_checksum);
    attach.window_bytes = config_->window_bytes;
    attach.timeout_ms = config_->TimeoutMs();
    attach.outage_wait_ms = OutageWaitMs(*config_);
    attach.bandwidth_bytes_per_second = config_->bandwidth_bytes_per_second;
    attach.page_size_bytes = config_->page_size_bytes;
    attach.version_every_ms = config_->version_every_ms;
    attach.version_min_interval_ms = config_->version_min_interval_ms;
    attach.notify = OnNotify;
    attach.release = OnRelease;
    attach.context = speaker;
    session_ = api_->attach(&attach, error.data(), error.size());
  }
  if (session_ != nullptr) return;
  const std::string reason = api_ == nullptr ? load_error : std::string(error.data());
  const std::string detail = target_.real_path + " is NOT mirrored: " + reason;
  const H5mEvent event{"attach", H5M_STATE_OFF, 0, 0, detail.c_str(), 1};
  OnNotify(speaker, &event);
  OnRelease(speaker);
}

void MirroredFile::WatchSuperblock(haddr_t addr, size_t size, const void* buffer) {
  const SwmrFlag flag = SwmrFlagOf(addr, size, buffer);
  if (flag == SwmrFlag::kNotASuperblock) return;
  const bool writing = flag == SwmrFlag::kSet;
  // HDF5 gives up its lock here (H5Fstart_swmr_write), so that readers can open the file.
  if (writing && !detector_.swmr() && under_->cls->unlock != nullptr) under_->cls->unlock(under_);
  detector_.SetSwmr(writing);
}

herr_t MirroredFile::Truncate(hid_t dxpl, hbool_t closing) {
  const haddr_t size = under_->cls->get_eoa(under_, H5FD_MEM_DEFAULT);
  const bool changes = size != under_->cls->get_eof(under_, H5FD_MEM_DEFAULT);
  const bool ours = !InForkedChild();
  if (changes && ours) Attach();
  if (changes && !ours) NoteChildWrite();
  const bool tell = changes && ours && session_ != nullptr;
  if (tell) api_->before_truncate(session_, size);
  const herr_t result =
      under_->cls->truncate == nullptr ? 0 : under_->cls->truncate(under_, dxpl, closing);
  if (tell && result >= 0) api_->after_truncate(session_, size);
  if (ours) detector_.OnTruncate(PhaseOf(closing), OutcomeOf(result));
  return result;
}

herr_t MirroredFile::Flush(hid_t dxpl, hbool_t closing) {
  const herr_t result =
      under_->cls->flush == nullptr ? 0 : under_->cls->flush(under_, dxpl, closing);
  if (InForkedChild()) return result;
  if (detector_.OnFlush(PhaseOf(closing), OutcomeOf(result)) == Moment::kFlush) CutHere();
  // A close that fails would leave the program with a file that is neither open nor closed.
  return result < 0 || closing ? result : FailFlush();
}

std::optional<std::string> MirroredFile::LostMirror() const {
  if (config_->on_outage != OnOutage::kFail || !attach_tried_) return std::nullopt;
  H5mStatus status;
  Status(&status);
  const int64_t timeout_ns = int64_t{config_->TimeoutMs()} * 1'000'000;
  const bool lost = status.state == H5M_STATE_OFF || status.state == H5M_STATE_DIVERGED ||
                    (status.state == H5M_STATE_BEHIND && status.behind_for_ns >= timeout_ns);
  if (!lost) return std::nullopt;
  const std::string why = *status.message == '\0' ? "it is not mirrored" : status.message;
  return "the mirror is lost (on_outage=fail): " + why + "; the local file has all that was " +
         "written. To go on without: on_outage=degrade. To bring the mirror level: h5mirror "
         "resync " +
         target_.real_path;
}

// Flushes, and no writes: HDF5 also writes while it closes a dataset, and where that fails it keeps
// an object that it has freed.
herr_t MirroredFile::FailFlush() {
  const std::optional<std::string> lost = LostMirror();
  if (lost) PushWriteErrno(host_, target_.real_path, ENOTCONN, *lost);
  return lost ? -1 : 0;
}

void MirroredFile::CutHere() {
  barrier_done_ = true;
  if (session_ == nullptr) {
    barrier_result_ = attach_tried_ ? 1 : 0;  // Nothing changed yet: nothing to cut.
    return;
  }
  H5mBarrier kind = armed_;
  if (kind == H5M_TICK && config_->flush == FlushKind::kSync) kind = H5M_SYNC;
  H5mAck ack = ToApi(kind == H5M_COMMIT ? config_->ack_commit : config_->ack_tick);
  if (kind == H5M_SYNC) ack = H5M_ACK_DURABLE;
  // Waiting for a tick to become durable by itself could take the server's `durable_every`.
  if (kind == H5M_TICK && ack == H5M_ACK_DURABLE) kind = H5M_SYNC;
  const std::string& comment = armed_comment_.empty() ? config_->comment : armed_comment_;
  barrier_result_ = api_->barrier(session_, kind, ack, kind == H5M_COMMIT ? comment.c_str() : "");
}

void MirroredFile::ArmBarrier(H5mBarrier kind, std::string comment) {
  armed_ = kind;
  armed_comment_ = std::move(comment);
  barrier_done_ = false;
}

int MirroredFile::FinishBarrier() {
  armed_ = H5M_TICK;
  armed_comment_.clear();
  return barrier_done_ ? barrier_result_ : 1;
}

void MirroredFile::BeforeClose() {
  if (session_ == nullptr || InForkedChild()) return;
  if (detector_.OnClose() == Moment::kClose) api_->seal(session_);
}

void MirroredFile::AfterClose() {
  if (InForkedChild()) return;
  if (session_ != nullptr) {
    api_->close(std::exchange(session_, nullptr));
  } else if (!attach_tried_ && detector_.OnClose() == Moment::kClose) {
    const Speaker speaker{host_, config_, target_.real_path, target_.name};
    ReportState(speaker, H5mEvent{"close", H5M_STATE_UNCHANGED, 0, 0, "", 0});
  }
}

void MirroredFile::Status(H5mStatus* status) const {
  *status = H5mStatus{};
  if (session_ != nullptr) {
    api_->status(session_, status);
  } else {
    status->state = attach_tried_ ? H5M_STATE_OFF : H5M_STATE_UNCHANGED;
  }
}

}  // namespace h5mirror::vfd
