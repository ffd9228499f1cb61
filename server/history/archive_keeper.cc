#include "server/history/archive_keeper.h"

#include <pthread.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "rpc/elsewhere.h"
#include "server/state/store_watch.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr absl::Duration kRoundPeriod = absl::Milliseconds(100);
// A server that is started anew every day archives all the same.
constexpr absl::Duration kFirstPassMax = absl::Minutes(5);
constexpr absl::Duration kFirstRetry = absl::Seconds(10);
constexpr absl::Duration kRetryMax = absl::Minutes(15);
constexpr absl::Duration kProbeTimeout = absl::Seconds(60);
constexpr size_t kFilesAtOnce = 256;
constexpr size_t kOrdersMax = 1000;

absl::Status Stops() { return absl::UnavailableError("the server stops"); }

// The caller's own end of a job.
absl::Status MakeWay() { return absl::CancelledError("the work is broken off"); }

}  // namespace

ArchiveOrder::State ArchiveOrder::Look() const {
  const absl::MutexLock lock(&mutex_);
  return state_;
}

void ArchiveOrder::GiveUp() {
  const absl::MutexLock lock(&mutex_);
  is_given_up_ = true;
}

bool ArchiveOrder::is_given_up() const {
  const absl::MutexLock lock(&mutex_);
  return is_given_up_;
}

void ArchiveOrder::Note(const store::ArchiveProgress& progress) {
  const absl::MutexLock lock(&mutex_);
  state_.started = true;
  state_.progress = progress;
}

void ArchiveOrder::End(const absl::Status& status) {
  const absl::MutexLock lock(&mutex_);
  state_.done = true;
  state_.status = status;
}

ArchiveKeeper::ArchiveKeeper(const Config& config, store::Store& store,
                             archive::RootArchive* archive, Clock& clock, SpaceCounter* counter,
                             EventSink* events)
    : root_(config.root),
      after_(config.archive_after),
      local_bytes_(config.archive_local_bytes),
      every_(config.archive_every),
      copies_(config.archive_heads ? store::ArchiveCopy::kKeep : store::ArchiveCopy::kNone),
      store_(store),
      archive_(archive),
      clock_(clock),
      counter_(counter),
      events_(events),
      retry_(kFirstRetry) {
  PassAgainIn(std::min(kFirstPassMax, every_));
}

ArchiveKeeper::~ArchiveKeeper() {
  BeginStop();
  AwaitEnd(absl::InfiniteDuration()).IgnoreError();  // It waits as long as it takes.
}

void ArchiveKeeper::Start() {
  if (archive_ == nullptr) return;
  {
    const absl::MutexLock lock(&mutex_);
    is_running_ = true;
  }
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "h5m-archive");
    while (!stopping()) {
      Round();
      absl::SleepFor(kRoundPeriod);
    }
    const absl::MutexLock lock(&mutex_);
    is_running_ = false;
  });
}

void ArchiveKeeper::BeginStop() {
  std::deque<std::shared_ptr<ArchiveOrder>> orders;
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
    orders.swap(orders_);
  }
  if (archive_ != nullptr) archive_->Stop();
  for (const auto& order : orders) order->End(Stops());
}

absl::Status ArchiveKeeper::AwaitEnd(absl::Duration timeout) {
  if (!thread_.joinable()) return absl::OkStatus();
  {
    const absl::MutexLock lock(&mutex_);
    const auto ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !is_running_; };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&ended), timeout)) {
      return absl::DeadlineExceededError(StrCat("the archive ", archive_->Describe(), " hangs"));
    }
  }
  thread_.join();
  return absl::OkStatus();
}

bool ArchiveKeeper::stopping() const {
  const absl::MutexLock lock(&mutex_);
  return stopping_;
}

ArchiveCounts ArchiveKeeper::Counts() const {
  const absl::MutexLock lock(&mutex_);
  return counts_;
}

absl::StatusOr<std::shared_ptr<ArchiveOrder>> ArchiveKeeper::Order(const std::string& name,
                                                                   uint64_t keep_bytes) {
  if (archive_ == nullptr) {
    return absl::FailedPreconditionError(
        "this server has no archive: set `archive` in its configuration");
  }
  auto order = std::make_shared<ArchiveOrder>(name, keep_bytes);
  const absl::MutexLock lock(&mutex_);
  if (stopping_) return Stops();
  if (orders_.size() >= kOrdersMax) {
    return absl::ResourceExhaustedError(
        StrCat(orders_.size(), " files wait to be archived already: try again later"));
  }
  orders_.push_back(order);
  return order;
}

void ArchiveKeeper::Round() {
  if (archive_ == nullptr) return;
  const archive::RootArchive::BackgroundWork paced;
  // An archive that was set up wrongly is told of at once.
  if (!std::exchange(is_known_, true)) {
    // A look at a directory that hangs is told of in there alone.
    if (Probe()) WarnOfOneDisk();
  }
  FillOrders();
  if (!stopping() && clock_.Monotonic() >= next_pass_) {
    if (Probe()) {
      RunPass();
    } else {
      TryLater();
    }
  }
  TellStanding();
}

// Also where nothing is to be archived it is told that the archive is well, or well again.
bool ArchiveKeeper::Probe() {
  const std::string owner(archive::RootArchive::kOwnerObject);
  const absl::Status answer = archive_->Head(owner, kProbeTimeout).status();
  // In a cluster each cell has an owner object of its own, and the archive none.
  if (!answer.ok() && !absl::IsNotFound(answer)) return false;
  archive_->NoteTopOwner(answer.ok());
  archive_->NoteCluster(kProbeTimeout);
  // Else those that failed once might never be made again.
  if (!archive_->Standing().error.empty())
    archive_->List(owner, "", 1, kProbeTimeout).IgnoreError();
  return true;
}

void ArchiveKeeper::WarnOfOneDisk() const {
  const std::string place = archive_->Describe();
  struct stat root = {};
  struct stat archive = {};
  if (stat(root_.c_str(), &root) != 0 || stat(place.c_str(), &archive) != 0) return;
  if (root.st_dev != archive.st_dev) return;
  spdlog::warn(
      "archive: {} is on the disk of the root {}, so that it gives no space back, and is lost with "
      "the root: is its disk mounted?",
      place, root_.string());
}

void ArchiveKeeper::TryLater() {
  waits_for_ = Trouble::kAway;
  PassAgainIn(std::min(retry_, every_));
  retry_ = std::min(2 * retry_, kRetryMax);
}

std::shared_ptr<ArchiveOrder> ArchiveKeeper::FirstOrder() {
  const absl::MutexLock lock(&mutex_);
  return orders_.empty() ? nullptr : orders_.front();
}

void ArchiveKeeper::FillOrders() {
  while (const std::shared_ptr<ArchiveOrder> order = FirstOrder()) {
    const absl::Status done = order->is_given_up() ? MakeWay() : Fill(*order);
    order->End(stopping() ? Stops() : done);
    const absl::MutexLock lock(&mutex_);
    if (!orders_.empty()) orders_.pop_front();
  }
}

absl::Status ArchiveKeeper::Fill(ArchiveOrder& order) {
  return Run(order.name(), {store::SealSegment::kYes, order.keep_bytes(), copies_},
             [&](const store::ArchiveProgress& progress) {
               order.Note(progress);
               return order.is_given_up() ? MakeWay() : absl::OkStatus();
             });
}

void ArchiveKeeper::PassAgainIn(absl::Duration wait) {
  next_pass_ = clock_.Monotonic() + wait;
  const absl::MutexLock lock(&mutex_);
  counts_.next_pass = clock_.Now() + wait;
}

void ArchiveKeeper::RunPass() {
  const bool is_time_sure = !TimeIsInDoubt(store_, "archive");
  for (;;) {
    const auto files = store_.List("", passed_, kFilesAtOnce);
    if (!files.ok()) {
      // As where a cell is handed over: its files are another server's in a moment.
      const bool is_passing = absl::IsUnavailable(files.status());
      spdlog::log(is_passing ? spdlog::level::info : spdlog::level::err,
                  "archive: files cannot be listed: {}", files.status().ToString());
      PassAgainIn(std::min(is_passing ? kFirstRetry : kRetryMax, every_));
      return;
    }
    if (files->empty()) break;
    if (!TendAll(*files, is_time_sure)) return;
  }
  passed_.clear();
  const bool was_well = std::exchange(all_well_, true);
  if (was_well) archive_->ForgetChanges();
  // A part of the archive that is another root's waits for the next pass, too.
  const Trouble trouble = TroubleOf(archive_->Standing());
  const bool is_refused = trouble == Trouble::kPart || trouble == Trouble::kRefused;
  if (is_refused || !was_well) waits_for_ = trouble;
  retry_ = kFirstRetry;
  PassAgainIn(every_);
}

bool ArchiveKeeper::TendAll(absl::Span<const store::FileSummary> files, bool is_time_sure) {
  for (const store::FileSummary& file : files) {
    const absl::Status status = Tend(file.name, is_time_sure);
    // Before the next round an order comes first, and then this file again.
    if (stopping() || absl::IsCancelled(status)) return false;
    passed_ = file.name;
    const bool is_told = status.ok() || absl::IsNotFound(status) || IsGivenAway(file.name);
    if (is_told) continue;
    all_well_ = false;
    const bool is_away = IsAway(status);
    const bool is_known = is_away && !archive_->Standing().error.empty();
    // Else another job has it, and it comes to its turn again.
    if (!is_known && !absl::IsFailedPrecondition(status)) {
      spdlog::warn("archive: file={} cannot be archived now: {}", Quoted(file.name),
                   status.ToString());
    }
    if (!is_away) continue;
    TryLater();
    return false;
  }
  return true;
}

bool ArchiveKeeper::IsAtRest(const store::FileInfo& info, bool is_time_sure) {
  if (after_ == absl::ZeroDuration()) return true;
  return is_time_sure && clock_.Now() - info.newest_version.server_time >= after_;
}

absl::Status ArchiveKeeper::Tend(const std::string& name, bool is_time_sure) {
  H5M_ASSIGN_OR_RETURN(const auto file, store_.OpenFile(name));
  H5M_ASSIGN_OR_RETURN(const store::FileInfo info, file->Info());
  if (info.newest_version.version == 0) return absl::OkStatus();
  // Its account has enough there: what `usage` and an event tell of.
  if (!MayArchive(name).ok()) return absl::OkStatus();
  store::ArchiveRequest request{store::SealSegment::kNo, local_bytes_, copies_};
  if (IsAtRest(info, is_time_sure)) request = {store::SealSegment::kYes, 0, copies_};
  return Run(name, request, [this](const store::ArchiveProgress&) {
    return FirstOrder() == nullptr ? absl::OkStatus() : MakeWay();
  });
}

absl::Status ArchiveKeeper::MayArchive(const std::string& name) const {
  return counter_ == nullptr ? absl::OkStatus() : counter_->ledger().MayArchive(name);
}

absl::Status ArchiveKeeper::Run(
    const std::string& name, const store::ArchiveRequest& request,
    absl::FunctionRef<absl::Status(const store::ArchiveProgress&)> after_step) {
  H5M_ASSIGN_OR_RETURN(const auto file, store_.OpenFile(name));
  H5M_RETURN_IF_ERROR(MayArchive(name));
  H5M_ASSIGN_OR_RETURN(const auto job, file->StartArchive(request));
  store::ArchiveProgress counted;
  // The next file of its account is to see what went to the archive.
  const absl::Cleanup recount = [&] {
    if (counter_ == nullptr) return;
    if (counted.segments_archived > 0 && counter_->ledger().LimitsArchived(name)) {
      counter_->Measure(name);
    } else if (counted.freed_bytes > 0) {
      counter_->Changed(name);
    }
  };
  for (;;) {
    if (stopping()) return Stops();
    const auto progress = job->Step();
    if (!progress.ok()) return progress.status();
    Count(*progress, counted);
    H5M_RETURN_IF_ERROR(after_step(*progress));
    if (!progress->done) continue;
    if (!progress->left.empty()) {
      spdlog::warn("archive: file={} {}", Quoted(name), progress->left);
    }
    if (counted.segments_archived + counted.freed_bytes > 0) {
      spdlog::info("archive: file={} segments archived: {}, {}; {} of disk given back",
                   Quoted(name), counted.segments_archived, HumanBytes(counted.archived_bytes),
                   HumanBytes(counted.freed_bytes));
    }
    if (progress->copied_version > 0) {
      spdlog::info("archive: file={} copied at version {}, {}", Quoted(name),
                   progress->copied_version, HumanBytes(progress->copied_bytes));
    }
    return absl::OkStatus();
  }
}

void ArchiveKeeper::Count(const store::ArchiveProgress& progress, store::ArchiveProgress& counted) {
  const absl::MutexLock lock(&mutex_);
  counts_.segments_archived += progress.segments_archived - counted.segments_archived;
  counts_.archived_bytes += progress.archived_bytes - counted.archived_bytes;
  counts_.archived_bytes += progress.copied_bytes - counted.copied_bytes;
  counts_.freed_bytes += progress.freed_bytes - counted.freed_bytes;
  counted = progress;
}

bool ArchiveKeeper::IsGivenAway(const std::string& name) const {
  const absl::Status opened = store_.OpenFile(name).status();
  return rpc::IsNobodyServes(opened) || rpc::ElsewhereOf(opened).has_value();
}

bool ArchiveKeeper::IsAway(const absl::Status& status) const {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return true;
    case absl::StatusCode::kFailedPrecondition:  // also where another job has the file
      return archive_->IsAway();
    default:
      return false;
  }
}

ArchiveKeeper::Trouble ArchiveKeeper::TroubleOf(const archive::ArchiveStanding& standing) const {
  if (standing.error.empty()) return Trouble::kNone;
  if (archive_->IsAway()) return Trouble::kAway;
  return archive_->IsRefused() ? Trouble::kRefused : Trouble::kPart;
}

void ArchiveKeeper::TellStanding() {
  if (stopping()) return;
  const archive::ArchiveStanding standing = archive_->Standing();
  const Trouble trouble = TroubleOf(standing);
  TellReceivers(standing, trouble);
  if (std::exchange(logged_, trouble) == trouble) return;
  switch (trouble) {
    case Trouble::kAway:
      spdlog::warn(
          "archive: {} fails ({}); writers go on, and so do reads of what is on the disk; the "
          "server tries again",
          archive_->Describe(), standing.error);
      break;
    case Trouble::kRefused:
      spdlog::warn(
          "archive: nothing is archived in {} ({}); writers go on, and so do reads; the server "
          "tries again",
          archive_->Describe(), standing.error);
      break;
    case Trouble::kPart:
      spdlog::warn("archive: a part of {} fails ({}); the others are archived",
                   archive_->Describe(), standing.error);
      break;
    case Trouble::kNone:
      spdlog::info("archive: {} is well again", archive_->Describe());
      break;
  }
}

void ArchiveKeeper::TellReceivers(const archive::ArchiveStanding& standing, Trouble trouble) {
  if (trouble == Trouble::kNone) waits_for_ = trouble;
  if (told_ == trouble || waits_for_ != trouble) return;
  told_ = trouble;
  const bool is_well = trouble == Trouble::kNone;
  Event event;
  event.kind = is_well ? EventKind::kArchiveWell : EventKind::kArchiveFailed;
  event.text = is_well ? StrCat("the archive ", archive_->Describe(), " is well again")
                       : StrCat("the archive ", archive_->Describe(), " fails: ", standing.error);
  if (!is_well) event.numbers["failed_calls"] = static_cast<int64_t>(standing.failed_calls);
  Notify(events_, std::move(event));
}

}  // namespace h5mirror::server
