#include "h5perf/failure.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <vector>

#include "base/strings.h"
#include "base/utf8.h"

namespace h5mirror::pperf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kOthersMayFail(1000);
constexpr std::chrono::milliseconds kTold(1000);
constexpr std::chrono::milliseconds kPause(5);

// The processes' shared knowledge of failures.
class Failures {
 public:
  explicit Failures(MPI_Comm comm) : comm_(comm) {
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &size_);
    MPI_Ibarrier(comm, &all_);
    // A later process leaves it to an earlier one to tell.
    for (int later = rank_ + 1; later < size_; ++later) {
      sends_.emplace_back();
      MPI_Isend(&token_, 0, MPI_INT, later, 0, comm, &sends_.back());
    }
  }

  // All have failed, by `deadline`.
  bool WaitForAll(Clock::time_point deadline) {
    for (int done = 0;;) {
      MPI_Test(&all_, &done, MPI_STATUS_IGNORE);
      if (done != 0 || Clock::now() > deadline) return done != 0;
      std::this_thread::sleep_for(kPause);
    }
  }

  bool IsFirst() {
    int earlier = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, comm_, &earlier, MPI_STATUS_IGNORE);
    return earlier == 0;
  }

  // All have failed: takes the messages, so that none is left at MPI's end.
  void Finish() {
    for (int earlier = 0; earlier < rank_; ++earlier) {
      MPI_Recv(&token_, 0, MPI_INT, earlier, 0, comm_, MPI_STATUS_IGNORE);
    }
    MPI_Waitall(static_cast<int>(sends_.size()), sends_.data(), MPI_STATUSES_IGNORE);
  }

  int rank() const { return rank_; }
  int size() const { return size_; }

 private:
  const MPI_Comm comm_;
  int rank_ = 0, size_ = 1, token_ = 0;
  MPI_Request all_ = MPI_REQUEST_NULL;
  std::vector<MPI_Request> sends_;
};

void Tell(const Failures& failures, bool all, const absl::Status& why) {
  std::cerr << "h5perf: "
            << Printable(StrCat(
                   all ? "" : StrCat("process ", failures.rank(), " of ", failures.size(), ": "),
                   ToStd(why.message())))
            << std::endl;
}

}  // namespace

void DataFiles::Add(const std::string& file) {
  const std::lock_guard lock(mutex_);
  files_.insert(file);
}

void DataFiles::RemoveAll() {
  const std::lock_guard lock(mutex_);
  std::error_code error;
  for (const std::string& file : files_) {
    std::filesystem::remove(file, error);
    std::filesystem::remove_all(file + ".h5m", error);
  }
}

StopWatch::StopWatch(DataFiles& files) : files_(files), thread_([this] { Watch(); }) {}

StopWatch::~StopWatch() {
  done_ = true;
  thread_.join();
}

void StopWatch::Watch() {
  while (!signal_.Wait(absl::Milliseconds(100))) {
    if (done_) return;
  }
  files_.RemoveAll();
  _exit(128 + signal_.number());
}

void EndRun(MPI_Comm comm, const absl::Status& why, bool ends_now, DataFiles& files) {
  Failures failures(comm);
  const bool all = failures.WaitForAll(Clock::now() + kOthersMayFail);
  const bool tells = all ? failures.rank() == 0 : failures.IsFirst();
  if (tells) {
    Tell(failures, all, why);
    files.RemoveAll();
  }
  if (all && !ends_now) return failures.Finish();
  // The one that tells ends the others.
  if (!tells) std::this_thread::sleep_for(kTold);
  files.RemoveAll();
  MPI_Abort(comm, 1);
}

}  // namespace h5mirror::pperf
