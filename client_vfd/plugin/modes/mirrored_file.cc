#include "client_vfd/plugin/modes/mirrored_file.h"

#include <errno.h>

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/superblock_image.h"
#include "client_vfd/plugin/host/fork_guard.h"
#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/host/reporter.h"
#include "client_vfd/plugin/writes/swmr_write_mode.h"
#include "client_vfd/plugin/writes/write_class.h"

namespace h5mirror::vfd {
namespace {

// Before the attach, writes up to this size are compared with the local bytes. Larger ones are
// data: comparing them would cost a read of everything.
constexpr size_t kCompareBytesMax = 64 << 10;

}  // namespace

MirroredFile::MirroredFile(const HostLibrary& host, std::shared_ptr<const Config> config,
                           MirrorTarget target, UnderFile& under, int fd, RemoteFile* remote)
    : host_(host),
      config_(std::move(config)),
      target_(std::move(target)),
      under_(under),
      fd_(fd),
      remote_(remote),
      fork_generation_(ForkGeneration()) {}

bool MirroredFile::InForkedChild() const { return ForkGeneration() != fork_generation_; }

void MirroredFile::NoteChildWrite() {
  if (mirrors_ && remote_ == nullptr) mirrors_->ChildWrote();
}

herr_t MirroredFile::Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
                           const void* buffer) {
  if (InForkedChild()) {
    NoteChildWrite();
    return under_.Write(type, dxpl, addr, size, buffer);
  }
  if (!mirrors_) {
    // Not written at all: the file then keeps its mtime, and a crash before the first real change
    // leaves the record of its last clean close valid.
    if (EqualsLocal(type, dxpl, addr, size, buffer)) return 0;
    if (!Attach()) {
      detector_.OnWrite(Outcome::kFailed);
      return -1;
    }
  }
  has_changed_ = has_changed_ || group_ == nullptr || IsChange(type, dxpl, addr, size, buffer);
  mirrors_->BeforeWrite(addr, size);
  const herr_t result = under_.Write(type, dxpl, addr, size, buffer);
  // A failed write may have written some of it.
  mirrors_->AfterWrite(addr, size, WriteClassOf(type, size, buffer));
  detector_.OnWrite(OutcomeOf(result));
  if (result >= 0) WatchSuperblock(addr, size, buffer);
  return result;
}

bool MirroredFile::EqualsLocal(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
                               const void* buffer) {
  if (size > kCompareBytesMax || addr + size > under_.Eof(type)) return false;
  if (!scratch_) scratch_ = std::make_unique<char[]>(kCompareBytesMax);
  if (under_.Read(type, dxpl, addr, size, scratch_.get()) < 0) return false;
  return std::memcmp(scratch_.get(), buffer, size) == 0;
}

bool MirroredFile::IsChange(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
                            const void* buffer) {
  if (size > kCompareBytesMax || addr + size > under_.Eof(type)) return true;
  const std::string_view written(static_cast<const char*>(buffer), size);
  std::string local(size, '\0');
  if (under_.Read(type, dxpl, addr, size, local.data()) < 0) return true;
  if (local == written) return false;
  const auto before = WithoutWriterFlags(local), after = WithoutWriterFlags(written);
  return !after || before != after;
}

bool MirroredFile::Attach() {
  if (mirrors_) return true;
  if (remote_ != nullptr) {
    std::string error;
    const int failed = BeginRemote(&error);
    if (failed != 0) PushWriteErrno(host_, target_.real_path, failed, error);
    return failed == 0;
  }
  scratch_.reset();
  mirrors_ = std::make_unique<Mirrors>(host_, config_, target_, fd_);
  return true;
}

int MirroredFile::BeginRemote(std::string* error) {
  const int spool = remote_->Spool(error);
  if (spool < 0) return EIO;
  auto mirrors = std::make_unique<Mirrors>(host_, config_, target_, spool);
  const int failed = mirrors->AwaitOpened(error);
  if (failed != 0) {
    std::string why_closed;
    mirrors->Close(&why_closed);
    return failed;
  }
  scratch_.reset();
  mirrors_ = std::move(mirrors);
  remote_->SetNewestCut([this] {
    H5mStatus status;
    mirrors_->WorstStatus(&status);
    return status.cut;
  });
  return 0;
}

void MirroredFile::WatchSuperblock(haddr_t addr, size_t size, const void* buffer) {
  const SwmrFlag flag = SwmrFlagOf(addr, size, buffer);
  if (flag == SwmrFlag::kNotASuperblock) return;
  detector_.SetSwmr(flag == SwmrFlag::kSet);
}

herr_t MirroredFile::Truncate(hid_t dxpl, hbool_t closing) {
  const haddr_t size = under_.Eoa(H5FD_MEM_DEFAULT);
  const bool changes = size != under_.Eof(H5FD_MEM_DEFAULT);
  const bool ours = !InForkedChild();
  if (changes && ours && !Attach()) {
    detector_.OnTruncate(PhaseOf(closing), Outcome::kFailed);
    return -1;
  }
  if (changes && !ours) NoteChildWrite();
  const bool tell = changes && ours;
  has_changed_ = has_changed_ || tell;
  if (tell) mirrors_->BeforeTruncate(size);
  const herr_t result = under_.Truncate(dxpl, closing);
  if (tell && result >= 0) mirrors_->AfterTruncate(size);
  if (ours) detector_.OnTruncate(PhaseOf(closing), OutcomeOf(result));
  return result;
}

herr_t MirroredFile::Flush(hid_t dxpl, hbool_t closing) {
  const herr_t result = under_.Flush(dxpl, closing);
  if (InForkedChild()) return result;
  const Moment moment = detector_.OnFlush(PhaseOf(closing), OutcomeOf(result));
  const bool is_members = group_ != nullptr && group_->OnFlush(*this, moment);
  if (moment == Moment::kFlush && !is_members) CutHere();
  if (remote_ != nullptr && !closing) return FailRemoteFlush(moment);
  // A close that fails would leave the program with a file that is neither open nor closed.
  return result < 0 || closing ? result : FailFlush();
}

std::optional<std::string> MirroredFile::LostMirror() const {
  if (config_->on_outage != OnOutage::kFail || !mirrors_) return std::nullopt;
  const int64_t timeout_ns = int64_t{config_->TimeoutMs()} * 1'000'000;
  for (size_t index = 0; index < mirrors_->Count(); ++index) {
    H5mStatus status;
    mirrors_->StatusOf(index, &status);
    const bool lost = status.state == H5M_STATE_OFF || status.state == H5M_STATE_DIVERGED ||
                      (status.state == H5M_STATE_BEHIND && status.behind_for_ns >= timeout_ns);
    if (!lost) continue;
    const std::string why = *status.message == '\0' ? "it is not mirrored" : status.message;
    return "the mirror is lost (on_outage=fail): " + why + "; the local file has all that was " +
           "written. To go on without: on_outage=degrade. To bring the mirror level: h5mirror "
           "resync " +
           target_.real_path;
  }
  return std::nullopt;
}

// Flushes, and no writes: HDF5 also writes while it closes a dataset, and where that fails it keeps
// an object that it has freed.
herr_t MirroredFile::FailFlush() {
  const std::optional<std::string> lost = LostMirror();
  if (lost) PushWriteErrno(host_, target_.real_path, ENOTCONN, *lost);
  return lost ? -1 : 0;
}

herr_t MirroredFile::FailRemoteFlush(Moment moment) {
  if (!mirrors_) return 0;
  H5mStatus status;
  mirrors_->WorstStatus(&status);
  const bool is_lost = status.state == H5M_STATE_OFF || status.state == H5M_STATE_DIVERGED;
  if (!is_lost && (moment != Moment::kFlush || barrier_.result() == 0)) return 0;
  const std::string why = *status.message != '\0' ? status.message : "it has not answered in time";
  PushWriteErrno(host_, target_.real_path, is_lost ? ESTALE : ETIMEDOUT,
                 "data written since the last cut is not on the server: " + why);
  return -1;
}

bool MirroredFile::ArmTick() {
  if (InForkedChild()) return false;
  barrier_.Arm(H5M_TICK_IF_CHANGED, "");
  return true;
}

void MirroredFile::CutHere() {
  const ArmedBarrier::Request request = barrier_.Begin(*config_);
  // Without mirrors nothing changed yet: nothing to cut.
  barrier_.SetResult(mirrors_ ? mirrors_->Barrier(request.kind, request.ack, request.comment) : 0);
}

void MirroredFile::Join(std::shared_ptr<MemberGroup> group) {
  group_ = std::move(group);
  group_->Add(*this);
}

void MirroredFile::LeaveGroup() {
  if (group_ != nullptr) group_->Remove(*this);
  group_.reset();
}

std::vector<uint64_t> MirroredFile::DurableNumbers() const {
  return mirrors_ != nullptr ? mirrors_->DurableNumbers() : std::vector<uint64_t>();
}

void MirroredFile::SetCut(const MemberCut* cut) {
  // An unchanged member needs a session too, for its part of the group's cut.
  if (cut != nullptr) Attach();
  if (mirrors_ != nullptr) mirrors_->SetCut(cut);
}

void MirroredFile::AskCut(const ArmedBarrier::Request& request) {
  has_changed_ = false;
  if (mirrors_ != nullptr) mirrors_->BeginBarrier(request.kind, request.ack, request.comment);
}

void MirroredFile::NoteWritten(uint64_t offset, uint64_t length, H5mWriteClass write_class) {
  mirrors_->BeforeWrite(offset, length);  // No closed cut needs its bytes: CutNoted().
  mirrors_->AfterWrite(offset, length, write_class);
}

void MirroredFile::NoteSize(uint64_t size_bytes) {
  mirrors_->BeforeTruncate(size_bytes);
  mirrors_->AfterTruncate(size_bytes);
}

herr_t MirroredFile::CutNoted() {
  CutHere();
  mirrors_->Detach();
  return FailFlush();
}

void MirroredFile::SealNoted() { mirrors_->Seal(); }

herr_t MirroredFile::BeforeClose() {
  if (InForkedChild() || detector_.OnClose() != Moment::kClose) return 0;
  if (group_ != nullptr) group_->BeforeSeal(*this);
  if (mirrors_ != nullptr) mirrors_->Seal();
  return 0;
}

herr_t MirroredFile::AfterClose() {
  LeaveGroup();
  if (InForkedChild()) return 0;
  if (mirrors_) {
    std::string error;
    const int failed = mirrors_->Close(&error);
    if (failed != 0 && remote_ != nullptr) {
      error = "data written since the last flush is not on the server: " + error;
      PushWriteErrno(host_, target_.real_path, failed, error);
      // Nobody looks at the error of a file that HDF5 closes at the program's end.
      Say(config_->log, Audience::kUserToo, target_.real_path + ": " + error);
      return -1;
    }
  } else if (detector_.OnClose() == Moment::kClose) {
    ReportUnchanged(host_, config_, target_);
  }
  return 0;
}

void MirroredFile::Status(H5mStatus* status) const {
  *status = H5mStatus{};
  status->state = H5M_STATE_UNCHANGED;
  if (mirrors_) mirrors_->WorstStatus(status);
}

std::vector<std::string> MirroredFile::Servers() const {
  if (!mirrors_) return config_->Servers();
  std::vector<std::string> servers;
  for (size_t index = 0; index < mirrors_->Count(); ++index) {
    servers.push_back(mirrors_->ServerOf(index));
  }
  return servers;
}

void MirroredFile::StatusOf(size_t index, H5mStatus* status) const {
  *status = H5mStatus{};
  status->state = H5M_STATE_UNCHANGED;
  if (mirrors_) mirrors_->StatusOf(index, status);
}

}  // namespace h5mirror::vfd
