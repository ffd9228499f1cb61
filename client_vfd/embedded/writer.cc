#include "client_vfd/embedded/writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "client_vfd/embedded/fork.h"
#include "onion_store/origin_here.h"

namespace h5mirror::vfd {
namespace {

// Tools that use a history between two opens are soon done, so an open waits this long. Waiting for
// another writing program would not help.
constexpr absl::Duration kPatience = absl::Seconds(1);
// Larger writes are data: comparing them would cost a read of everything.
constexpr size_t kCompareBytesMax = 64 << 10;

}  // namespace

EmbeddedWriter::EmbeddedWriter(EmbeddedWriterConfig config,
                               std::unique_ptr<store::EmbeddedLease> lease,
                               std::function<void(const std::string&)> tell)
    : config_(std::move(config)),
      tell_(std::move(tell)),
      lease_(std::move(lease)),
      lease_in_use_(lease_.get()),
      session_id_(RandomBytes16()) {}

EmbeddedWriter::~EmbeddedWriter() {
  if (token_ != 0) EndSession(store::SessionEnd::kLost).IgnoreError();
}

absl::StatusOr<std::unique_ptr<EmbeddedWriter>> EmbeddedWriter::Open(
    EmbeddedWriterConfig config, std::function<void(const std::string&)> tell) {
  H5M_ASSIGN_OR_RETURN(
      auto lease, store::EmbeddedLease::Take(*config.env, config.path, LockKind::kExclusive,
                                             config.program, std::min(kPatience, config.timeout)));
  std::unique_ptr<EmbeddedWriter> writer(
      new EmbeddedWriter(std::move(config), std::move(lease), std::move(tell)));
  H5M_RETURN_IF_ERROR(writer->Look());
  return writer;
}

absl::Status EmbeddedWriter::Look() {
  if (config_.locking == HeadLocking::kYes) H5M_RETURN_IF_ERROR(head_lock_.Take(config_.path));
  if (config_.start == store::SessionStart::kNewGeneration) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const bool has_history, lease_->HasHistory());
  H5M_ASSIGN_OR_RETURN(const bool unclean, lease_->IsUnclean());
  auto head = lease_->tree().Open(lease_->name(), OpenKind::kRead, 0);
  // A head that is gone, or between two cuts, is the store's business at once.
  if (has_history && (unclean || absl::IsNotFound(head.status()))) return StartSession();
  H5M_RETURN_IF_ERROR(head.status());
  head_ = *std::move(head);
  H5M_ASSIGN_OR_RETURN(size_bytes_, head_->Size());
  return absl::OkStatus();
}

absl::Status EmbeddedWriter::OpenStore() {
  absl::MutexLock lock(&store_mutex_);
  if (file_ != nullptr) return absl::OkStatus();
  if (lease_in_use_ == nullptr) return NoLease();
  const std::string name = lease_in_use_->name();
  if (store_ == nullptr) {
    store::EmbeddedOptions options;
    options.page_size_bytes = config_.page_size_bytes;
    // The lease is given up on every early return.
    store::EmbeddedLease* const lease = std::exchange(lease_in_use_, nullptr);
    H5M_ASSIGN_OR_RETURN(store_, store::EmbeddedStore::Open(std::move(lease_), options));
    lease_in_use_ = lease;
  }
  H5M_ASSIGN_OR_RETURN(file_, store_->OpenOrCreateFile(name, config_.page_size_bytes));
  if (store_->outside_change() != 0) {
    tell_(store::OutsideChangeNotice(config_.path, store_->outside_change()));
  }
  return absl::OkStatus();
}

absl::Status EmbeddedWriter::NoLease() const {
  return absl::InternalError(
      StrCat(config_.path,
             ": its history could not be opened before; close the file and open it "
             "again"));
}

absl::Status EmbeddedWriter::StartSession() {
  H5M_RETURN_IF_ERROR(OpenStore());
  H5M_RETURN_IF_ERROR(MakeFoldedVersion());
  H5M_ASSIGN_OR_RETURN(const store::Token token, file_->Acquire());
  H5M_RETURN_IF_ERROR(
      file_->Begin(token, config_.start, store::OriginHere(config_.path), {config_.mode_bits}));
  token_ = token;
  head_.reset();
  scratch_.reset();
  if (config_.start == store::SessionStart::kNewGeneration) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const store::FileInfo info, file_->Info());
  size_bytes_ = info.size_bytes;
  return absl::OkStatus();
}

absl::Duration EmbeddedWriter::AgeOfNewest() {
  const auto newest = file_->GetVersion(0);
  return newest.ok() ? absl::Now() - newest->server_time : absl::InfiniteDuration();
}

absl::Duration EmbeddedWriter::AgeOfCommit() {
  absl::Duration age = AgeOfNewest();
  absl::MutexLock lock(&durable_->mutex);
  return std::min(age, absl::Now() - durable_->commit_made);
}

absl::Status EmbeddedWriter::MakeFoldedVersion() {
  H5M_ASSIGN_OR_RETURN(const store::FileInfo info, file_->Info());
  if (info.durable_cut <= info.newest_version.cut) return absl::OkStatus();
  const bool left_behind = config_.start == store::SessionStart::kNewGeneration;
  if (!left_behind && AgeOfNewest() < config_.version_min_interval) return absl::OkStatus();
  return file_->MakeVersion(store::ProvenanceNow(config_.program, "closed before"), RandomBytes16())
      .status();
}

absl::Status EmbeddedWriter::Read(uint64_t offset, absl::Span<char> out) {
  if (token_ != 0) return file_->ReadNewest(token_, offset, out);
  if (head_ != nullptr) return ReadOrZeros(*head_, offset, out);
  std::memset(out.data(), 0, out.size());
  return absl::OkStatus();
}

bool EmbeddedWriter::EqualsHead(uint64_t offset, std::string_view bytes) {
  if (head_ == nullptr || bytes.size() > kCompareBytesMax || offset > size_bytes_ ||
      bytes.size() > size_bytes_ - offset) {
    return false;
  }
  if (scratch_ == nullptr) scratch_ = std::make_unique<char[]>(kCompareBytesMax);
  if (!ReadOrZeros(*head_, offset, {scratch_.get(), bytes.size()}).ok()) return false;
  return std::memcmp(scratch_.get(), bytes.data(), bytes.size()) == 0;
}

absl::Status EmbeddedWriter::Write(uint64_t offset, std::string_view bytes) {
  if (token_ == 0) {
    if (EqualsHead(offset, bytes)) return absl::OkStatus();
    H5M_RETURN_IF_ERROR(StartSession());
  }
  is_at_cut_ = false;
  const Extent extent{offset, bytes.size()};
  H5M_RETURN_IF_ERROR(file_->Write(token_, {&extent, 1}, {&bytes, 1}));
  size_bytes_ = std::max(size_bytes_, extent.end());
  pending_bytes_ += bytes.size();
  return absl::OkStatus();
}

absl::Status EmbeddedWriter::Truncate(uint64_t size_bytes) {
  if (size_bytes == size_bytes_) return absl::OkStatus();
  if (token_ == 0) H5M_RETURN_IF_ERROR(StartSession());
  is_at_cut_ = false;
  H5M_RETURN_IF_ERROR(file_->Truncate(token_, size_bytes));
  size_bytes_ = size_bytes;
  return absl::OkStatus();
}

absl::StatusOr<store::CutNumber> EmbeddedWriter::Cut(store::BarrierKind kind,
                                                     const std::string& comment) {
  store::CutRequest request;
  request.kind = kind;
  request.size_bytes = size_bytes_;
  request.barrier = {session_id_, ++barrier_count_};
  request.provenance = store::ProvenanceNow(config_.program, comment);
  auto on_durable = [durable = durable_](absl::StatusOr<store::DurableCut> result) {
    absl::MutexLock lock(&durable->mutex);
    if (!result.ok()) {
      durable->error = result.status();
      return;
    }
    durable->cut = std::max(durable->cut, result->cut);
    durable->version = std::max(durable->version, result->version);
    if (result->unchanged) durable->commit_made = absl::InfinitePast();
  };
  if (kind == store::BarrierKind::kCommit) {
    absl::MutexLock lock(&durable_->mutex);
    durable_->commit_made = absl::Now();
  }
  H5M_ASSIGN_OR_RETURN(last_cut_, file_->Cut(token_, std::move(request), std::move(on_durable)));
  pending_bytes_ = 0;
  is_at_cut_ = true;
  return last_cut_;
}

absl::Status EmbeddedWriter::AwaitDurable(store::CutNumber cut) {
  Durable& durable = *durable_;
  absl::MutexLock lock(&durable.mutex);
  auto done = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(durable.mutex) {
    return durable.cut >= cut || !durable.error.ok();
  };
  if (!durable.mutex.AwaitWithTimeout(absl::Condition(&done), config_.timeout)) {
    return absl::DeadlineExceededError(
        StrCat(config_.path, ": cut ", cut, " is not durable yet; it will be soon"));
  }
  return durable.cut >= cut ? absl::OkStatus() : durable.error;
}

absl::Status EmbeddedWriter::Barrier(store::BarrierKind kind, AckLevel ack,
                                     const std::string& comment) {
  if (token_ == 0) return absl::OkStatus();
  if (config_.version_every > absl::ZeroDuration() && AgeOfCommit() >= config_.version_every) {
    kind = store::BarrierKind::kCommit;
  }
  H5M_ASSIGN_OR_RETURN(const store::CutNumber cut, Cut(kind, comment));
  const absl::Status durable = ack == AckLevel::kDurable ? AwaitDurable(cut) : absl::OkStatus();
  // A new generation's head has its name since its first durable cut. Another program that was
  // quicker only reads it; it cannot write a history.
  if (config_.locking == HeadLocking::kYes) head_lock_.Take(config_.path).IgnoreError();
  return durable;
}

absl::Status EmbeddedWriter::Close(store::SessionEnd end, const std::string& comment) {
  if (token_ == 0) return absl::OkStatus();
  absl::Status cut;
  if (end == store::SessionEnd::kClean) {
    const bool folds = AgeOfNewest() < config_.version_min_interval;
    cut = Cut(folds ? store::BarrierKind::kSync : store::BarrierKind::kCommit, comment).status();
    if (!cut.ok()) end = store::SessionEnd::kLost;
  }
  const absl::Status ended = EndSession(end);
  return cut.ok() ? ended : cut;
}

absl::Status EmbeddedWriter::EndSession(store::SessionEnd end) {
  absl::Status ended = file_->End(token_, end);
  token_ = 0;
  absl::MutexLock lock(&store_mutex_);
  const absl::Status closed = store_->Close(config_.timeout);
  lease_in_use_ = nullptr;
  file_.reset();
  store_.reset();
  if (!ended.ok()) return ended;
  if (!closed.ok()) return closed;
  // A cut that failed in the background is reported only to a caller that waits for it.
  absl::MutexLock durable_lock(&durable_->mutex);
  if (durable_->cut >= last_cut_) return absl::OkStatus();
  if (!durable_->error.ok()) return durable_->error;
  return absl::InternalError(StrCat(config_.path, ": cut ", last_cut_, " did not become durable"));
}

EmbeddedProgress EmbeddedWriter::Progress() const {
  EmbeddedProgress progress;
  progress.pending_bytes = pending_bytes_;
  progress.changed = last_cut_ != 0 || token_ != 0;
  absl::MutexLock lock(&durable_->mutex);
  progress.cut = durable_->cut;
  progress.version = durable_->version;
  return progress;
}

absl::StatusOr<std::shared_ptr<store::File>> EmbeddedWriter::FileForReaders() {
  {
    absl::MutexLock lock(&store_mutex_);
    if (lease_in_use_ == nullptr) return NoLease();
    H5M_ASSIGN_OR_RETURN(const bool has_history, lease_in_use_->HasHistory());
    if (!has_history) {
      return absl::NotFoundError(StrCat(config_.path, " has no version yet"));
    }
  }
  H5M_RETURN_IF_ERROR(OpenStore());
  absl::MutexLock lock(&store_mutex_);
  if (file_ == nullptr) return absl::UnavailableError(StrCat(config_.path, " is being closed"));
  return file_;
}

bool EmbeddedWriter::PrepareFork(absl::Time deadline) {
  locked_for_fork_ = LockBefore(store_mutex_, deadline);
  if (!locked_for_fork_) return false;
  return store_ == nullptr || store_->PrepareFork(deadline - absl::Now());
}

void EmbeddedWriter::LeaveToParent() {
  head_lock_.LetGo();
  if (lease_in_use_ != nullptr) lease_in_use_->LeaveToParent();
}

void EmbeddedWriter::ParentAfterFork() {
  if (!locked_for_fork_) return;
  if (store_ != nullptr) store_->ParentAfterFork();
  store_mutex_.Unlock();
}

}  // namespace h5mirror::vfd
