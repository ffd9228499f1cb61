#include "archive/archive_line.h"

#include <utility>

#include "absl/time/clock.h"
#include "base/steady_time.h"
#include "base/strings.h"

namespace h5mirror::archive {
namespace {

// No part has this name, and it sorts before the names of all parts.
constexpr char kWholeCluster[] = "*";

}  // namespace

void ArchiveLine::Join(std::atomic<bool>* flag) {
  const absl::MutexLock lock(&mutex_);
  flags_.insert(flag);
  if (stopped_) flag->store(true);
}

void ArchiveLine::Leave(std::atomic<bool>* flag) {
  const absl::MutexLock lock(&mutex_);
  flags_.erase(flag);
  own_.erase(flag);
}

void ArchiveLine::NoteOwn(std::atomic<bool>* flag, OwnPart own) {
  const absl::MutexLock lock(&mutex_);
  own_[flag] = std::move(own);
}

std::vector<ArchiveLine::OwnPart> ArchiveLine::OwnParts() {
  const absl::MutexLock lock(&mutex_);
  std::vector<OwnPart> all;
  for (const auto& [flag, own] : own_) all.push_back(own);
  return all;
}

void ArchiveLine::StopAll() {
  const absl::MutexLock lock(&mutex_);
  stopped_ = true;
  for (std::atomic<bool>* const flag : flags_) flag->store(true);
}

void ArchiveLine::SetBrokenOff(std::atomic<bool>* flag, bool is_broken_off) {
  const absl::MutexLock lock(&mutex_);
  flag->store(is_broken_off || stopped_);
}

void ArchiveLine::SetFault(const std::string& part, const absl::Status& why) {
  const absl::MutexLock lock(&mutex_);
  Fault& fault = faults_.try_emplace(part, Fault{"", absl::Now()}).first->second;
  fault.error = ToStd(why.message());
}

void ArchiveLine::ClearFault(const std::string& part) {
  const absl::MutexLock lock(&mutex_);
  faults_.erase(part);
}

void ArchiveLine::SetCluster(std::shared_ptr<ClusterMark> mark) {
  const absl::MutexLock lock(&mutex_);
  cluster_ = std::move(mark);
}

std::shared_ptr<ClusterMark> ArchiveLine::cluster() {
  const absl::MutexLock lock(&mutex_);
  return cluster_;
}

bool ArchiveLine::MustCheckCluster(absl::Duration every) {
  const absl::MutexLock lock(&mutex_);
  return SteadyNow() - cluster_checked_ >= every;
}

void ArchiveLine::NoteCluster(const absl::Status& checked, ClusterMark::Verdict verdict) {
  using Verdict = ClusterMark::Verdict;
  if (verdict == Verdict::kUnknown || verdict == Verdict::kNoMemory) return;
  if (!checked.ok()) return SetFault(kWholeCluster, checked);
  ClearFault(kWholeCluster);
  // While the cluster's object is missing, each call looks for it, until a part brings it back.
  if (verdict != Verdict::kOwn) return;
  const absl::MutexLock lock(&mutex_);
  cluster_checked_ = SteadyNow();
}

bool ArchiveLine::IsRefused() {
  const absl::MutexLock lock(&mutex_);
  return faults_.contains(kWholeCluster);
}

ArchiveStanding ArchiveLine::Standing() {
  ArchiveStanding standing = watch_.Standing();
  const absl::MutexLock lock(&mutex_);
  if (!standing.error.empty() || faults_.empty()) return standing;
  standing.error = faults_.begin()->second.error;
  standing.failing_since = faults_.begin()->second.since;
  return standing;
}

}  // namespace h5mirror::archive
