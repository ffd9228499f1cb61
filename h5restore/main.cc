// h5mirror-restore, the helper of `h5mirror restore`: a program with HDF5 and the driver, which
// takes one job (cli/restore/restore_job.h) and tells its result.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/standard_streams.h"
#include "h5restore/run.h"

namespace h5mirror::restore {
namespace {

constexpr absl::Duration kBetweenLines = absl::Milliseconds(500);

int64_t SizeOf(const std::string& path) {
  struct stat st {};
  return stat(path.c_str(), &st) == 0 ? st.st_size : 0;
}

// Tells how far a file has grown, while it lives.
class GrowthTold {
 public:
  explicit GrowthTold(const std::string& path) {
    if (path.empty()) return;
    thread_ = std::thread([this, path, before = SizeOf(path)] {
      while (!is_over_.WaitForNotificationWithTimeout(kBetweenLines)) {
        const int64_t grown = SizeOf(path) - before;
        if (grown > 0) std::cout << tools::kProgressLine << grown << std::endl;
      }
    });
  }
  ~GrowthTold() {
    is_over_.Notify();
    if (thread_.joinable()) thread_.join();
  }

 private:
  absl::Notification is_over_;
  std::thread thread_;
};

// The CLI may be killed, and nobody hears of the result then. But the last flush is not broken off.
class EndOfCli {
 public:
  // The terminal's signals go to the CLI too, whose end is seen here by that of standard input.
  static void Watch() {
    for (const int number : {SIGINT, SIGHUP, SIGPIPE}) signal(number, SIG_IGN);
    std::thread([] {
      char bytes[64];
      ssize_t got = 0;
      do got = read(STDIN_FILENO, bytes, sizeof(bytes));
      while (got > 0 || (got < 0 && errno == EINTR));
      Phase works = Phase::kWorks;
      if (!phase_.compare_exchange_strong(works, Phase::kEnds)) return;
      if (const char* const path = unfinished_.load(); path != nullptr) unlink(path);
      _exit(1);
    }).detach();
  }
  // A new file, which goes with the process unless it is whole. The path outlives the process.
  static void Unfinished(const char* path) { unfinished_ = path; }
  static void HoldUp() {
    signal(SIGTERM, SIG_IGN);
    Phase works = Phase::kWorks;
    if (phase_.compare_exchange_strong(works, Phase::kCloses)) return;
    for (;;) pause();  // The thread ends the process.
  }

 private:
  enum class Phase { kWorks, kCloses, kEnds };
  static inline std::atomic<Phase> phase_ = Phase::kWorks;
  static inline std::atomic<const char*> unfinished_ = nullptr;
};

absl::StatusOr<tools::RestoreResult> Run(const char* job_file) {
  std::ifstream file(job_file);
  std::ostringstream text;
  text << file.rdbuf();
  const absl::StatusOr<tools::RestoreJob> job = tools::DecodeJob(text.str());
  if (!job.ok()) return job.status();
  if (job->makes_target && !job->dry_run) {
    EndOfCli::Unfinished((new std::string(job->target.path))->c_str());
  }
  const GrowthTold told(job->grows);
  return RunJob(*job, EndOfCli::HoldUp);
}

}  // namespace
}  // namespace h5mirror::restore

int main(int argc, char** argv) {
  h5mirror::HoldStandardStreams();
  if (argc != 2) {
    std::cerr << "h5mirror-restore is a part of `h5mirror restore`, which see\n";
    return 2;
  }
  h5mirror::restore::EndOfCli::Watch();
  const auto result = h5mirror::restore::Run(argv[1]);
  std::cout << h5mirror::tools::kResultLine << h5mirror::tools::EncodeResult(result) << std::endl;
  return result.ok() ? 0 : 1;
}
