#include "server/live/linked_files.h"

#include <iterator>
#include <utility>

namespace h5mirror::server {
namespace {

// In the place of a reader's id, which has 16 bytes.
constexpr char kHolder[] = "linked files";

}  // namespace

void LinkedFiles::Note(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  if (stopped_ || (files_.size() >= kFilesMax && !files_.contains(name))) return;
  const auto [at, added] = files_.try_emplace(name);
  at->second.until = clock_.Monotonic() + kRemember;
  if (added) PinSoon(name, at->second);
}

void LinkedFiles::OnCut(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  const auto found = files_.find(name);
  if (found != files_.end()) PinSoon(name, found->second);
}

void LinkedFiles::PinSoon(const std::string& name, Entry& entry) {
  if (stopped_ || std::exchange(entry.is_scheduled, true)) return;
  ++scheduled_;
  worker_.Schedule([this, name] { PinNewest(name); });
}

void LinkedFiles::PinNewest(const std::string& name) {
  store::CutNumber cut = 0;
  bool stopped = false;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = files_.find(name);
    if (found != files_.end()) found->second.is_scheduled = false;  // A newer cut is another task.
    stopped = stopped_ || found == files_.end();
  }
  if (!stopped) {
    const auto file = open_file_(name);
    const auto snapshot = file.ok() ? table_.Open(**file, kHolder) : file.status();
    // A version is there without being held.
    if (snapshot.ok() && (*snapshot)->info().version == 0) cut = (*snapshot)->info().cut;
  }
  if (cut != 0) Pinned(name, cut);
  absl::MutexLock lock(&mutex_);
  ++done_;
}

void LinkedFiles::Pinned(const std::string& name, store::CutNumber cut) {
  store::CutNumber oldest = 0;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = files_.find(name);
    if (found == files_.end()) {
      oldest = cut;
    } else {
      std::deque<store::CutNumber>& cuts = found->second.cuts;
      if (cuts.empty() || cuts.back() != cut) cuts.push_back(cut);
      if (cuts.size() > kCutsMax) {
        oldest = cuts.front();
        cuts.pop_front();
      }
    }
  }
  if (oldest != 0) table_.Close(name, oldest, kHolder);
}

void LinkedFiles::Settle() {
  absl::MutexLock lock(&mutex_);
  const auto are_done = [this, upto = scheduled_]()
                            ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_ >= upto; };
  mutex_.AwaitWithTimeout(absl::Condition(&are_done), kSettleMax);
}

void LinkedFiles::OnTimer() {
  std::map<std::string, Entry> over;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Duration now = clock_.Monotonic();
    for (auto at = files_.begin(); at != files_.end();) {
      const auto next = std::next(at);
      if (at->second.until <= now && !at->second.is_scheduled) over.insert(files_.extract(at));
      at = next;
    }
  }
  for (const auto& [name, entry] : over) {
    for (const store::CutNumber cut : entry.cuts) table_.Close(name, cut, kHolder);
  }
}

void LinkedFiles::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  files_.clear();
  const auto are_done = [this]()
                            ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_ == scheduled_; };
  mutex_.Await(absl::Condition(&are_done));
}

}  // namespace h5mirror::server
