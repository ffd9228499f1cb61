#include <fcntl.h>
#include <unistd.h>

#include <optional>

#include "base/status_macros.h"
#include "h5perf/backend.h"
#include "h5perf_serial/posix_file.h"

namespace h5mirror::pperf {
namespace {

class PosixBackend : public Backend {
 public:
  explicit PosixBackend(const Group& group) : group_(group) {}

  absl::Status Open(const std::string& file, bool creates) override {
    file_.emplace(file, creates ? O_CREAT | O_TRUNC | O_RDWR : O_RDONLY);
    if (!file_->ok()) {
      const absl::Status why = file_->Error(creates ? "create" : "open");
      file_.reset();
      return why;
    }
    group_.Wait();  // Nobody truncates what another one has written.
    return absl::OkStatus();
  }

  absl::Status Prepare(const Pattern& pattern) override {
    pattern_ = &pattern;
    return absl::OkStatus();
  }
  absl::Status BeginDataset(uint64_t number) override {
    dataset_ = number;
    return absl::OkStatus();
  }

  absl::Status Write(uint64_t number, const unsigned char* buffer) override {
    Pieces pieces = pattern_->PiecesOf(dataset_, number);
    for (; pieces.count > 0; --pieces.count, pieces.offset += pieces.stride) {
      H5M_RETURN_IF_ERROR(file_->Write(pieces.offset, buffer, pieces.bytes));
      buffer += pieces.bytes;
    }
    return absl::OkStatus();
  }

  absl::Status Read(uint64_t number, unsigned char* buffer) override {
    Pieces pieces = pattern_->PiecesOf(dataset_, number);
    for (; pieces.count > 0; --pieces.count, pieces.offset += pieces.stride) {
      H5M_RETURN_IF_ERROR(file_->Read(pieces.offset, buffer, pieces.bytes));
      buffer += pieces.bytes;
    }
    return absl::OkStatus();
  }

  absl::Status EndDataset() override { return absl::OkStatus(); }
  absl::Status Close() override {
    H5M_RETURN_IF_ERROR(file_->Close());
    file_.reset();
    return absl::OkStatus();
  }
  void Remove(const std::string& file) override { unlink(file.c_str()); }
  // Its close waits for nobody.
  bool is_open() const override { return false; }

 private:
  const Group& group_;
  std::optional<perf::PosixFile> file_;
  const Pattern* pattern_ = nullptr;
  uint64_t dataset_ = 0;
};

}  // namespace

std::unique_ptr<Backend> MakePosixBackend(const Group& group, const Options&) {
  return std::make_unique<PosixBackend>(group);
}

}  // namespace h5mirror::pperf
