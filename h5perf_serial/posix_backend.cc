// The dataset as a plain row-major file, by one seek and one write or read for each contiguous run.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "base/status_macros.h"
#include "h5perf_serial/job.h"
#include "h5perf_serial/posix_file.h"

namespace h5mirror::perf {
namespace {

class PosixBackend : public Backend {
 public:
  absl::Status Write(const Job& job) override {
    const Shape& shape = job.options.shape;
    job.clock.Start(Phase::kWriteOpenClose);
    PosixFile file(FileName(job.base), O_CREAT | O_TRUNC | O_RDWR);
    if (!file.ok()) return file.Error("create");
    job.clock.Start(Phase::kWrite);
    Bytes buffer(shape.buffer_bytes());
    FillBuffer(job.options.contents, buffer);
    const Runs runs(shape);
    Sizes offset(shape.rank());
    job.clock.Start(Phase::kRawWrite);
    for (uint64_t number = 0; number < job.walk.count(); ++number) {
      job.walk.OffsetOf(number, offset);
      H5M_RETURN_IF_ERROR(runs.Visit(offset, [&](uint64_t in_file, uint64_t in_buffer) {
        return file.Write(in_file, buffer.data() + in_buffer, runs.run_bytes());
      }));
      H5M_RETURN_IF_ERROR(job.NoteDone(number + 1));
    }
    job.clock.Stop(Phase::kRawWrite);
    job.clock.Stop(Phase::kWrite);
    if (job.options.fsync) H5M_RETURN_IF_ERROR(file.Sync());
    H5M_RETURN_IF_ERROR(file.Close());
    job.clock.Stop(Phase::kWriteOpenClose);
    return absl::OkStatus();
  }

  absl::Status Read(const Job& job) override {
    const Shape& shape = job.options.shape;
    const bool verify = job.options.debug.verify;
    Bytes wanted(verify ? shape.buffer_bytes() : 0);
    FillBuffer(job.options.contents, wanted);
    job.clock.Start(Phase::kReadOpenClose);
    PosixFile file(FileName(job.base), O_RDONLY);
    if (!file.ok()) return file.Error("open");
    job.clock.Start(Phase::kRead);
    Bytes buffer(shape.buffer_bytes());
    const Runs runs(shape);
    Sizes offset(shape.rank());
    job.clock.Start(Phase::kRawRead);
    for (uint64_t number = 0; number < job.walk.count(); ++number) {
      job.walk.OffsetOf(number, offset);
      H5M_RETURN_IF_ERROR(runs.Visit(offset, [&](uint64_t in_file, uint64_t in_buffer) {
        return file.Read(in_file, buffer.data() + in_buffer, runs.run_bytes());
      }));
      if (verify) {
        const auto since = PhaseClock::Clock::now();
        H5M_RETURN_IF_ERROR(VerifyBuffer(shape, offset, wanted, buffer, FileName(job.base)));
        job.clock.Exclude(since);
      }
      H5M_RETURN_IF_ERROR(job.NoteDone(number + 1));
    }
    job.clock.Stop(Phase::kRawRead);
    job.clock.Stop(Phase::kRead);
    H5M_RETURN_IF_ERROR(file.Close());
    job.clock.Stop(Phase::kReadOpenClose);
    return absl::OkStatus();
  }

  std::string FileName(const std::string& base) const override { return base + ".posix"; }
  std::vector<std::string> Files(const std::string& base) const override {
    std::error_code error;
    if (!std::filesystem::exists(FileName(base), error)) return {};
    return {FileName(base)};
  }
  void Remove(const std::string& base) const override { unlink(FileName(base).c_str()); }
};

}  // namespace

std::unique_ptr<Backend> MakePosixBackend() { return std::make_unique<PosixBackend>(); }

}  // namespace h5mirror::perf
