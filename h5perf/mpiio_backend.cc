// The datasets one behind the other in a file of MPI-IO.
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5perf/backend.h"

namespace h5mirror::pperf {
namespace {

// Owns a derived type.
class Type {
 public:
  Type() = default;
  // `count` runs of `bytes`, `stride` bytes from one to the next; one run where count is 1.
  Type(int count, int bytes, uint64_t stride) {
    if (count == 1) {
      MPI_Type_contiguous(bytes, MPI_BYTE, &type_);
    } else {
      MPI_Type_create_hvector(count, bytes, static_cast<MPI_Aint>(stride), MPI_BYTE, &type_);
    }
    MPI_Type_commit(&type_);
  }
  Type(Type&& other) noexcept : type_(std::exchange(other.type_, MPI_DATATYPE_NULL)) {}
  Type& operator=(Type&& other) noexcept {
    std::swap(type_, other.type_);
    return *this;
  }
  ~Type() {
    if (type_ != MPI_DATATYPE_NULL) MPI_Type_free(&type_);
  }

  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

class MpiioBackend : public Backend {
 public:
  MpiioBackend(const Group& group, const Workload& work)
      : group_(group),
        work_(work),
        uses_view_(work.collective && (work.two_d || work.interleaved)) {}

  absl::Status Open(const std::string& file, bool creates) override {
    name_ = file;
    // A create does not truncate what an earlier run left.
    if (creates) MPI_File_delete(file.c_str(), group_.info);
    const int mode = creates ? MPI_MODE_CREATE | MPI_MODE_RDWR : MPI_MODE_RDONLY;
    H5M_RETURN_IF_ERROR(
        CheckMpi(MPI_File_open(group_.comm, file.c_str(), mode, group_.info, &file_),
                 StrCat(creates ? "create " : "open ", file)));
    return creates ? Check(MPI_File_set_size(file_, 0), "truncate") : absl::OkStatus();
  }

  absl::Status Prepare(const Pattern& pattern) override {
    pattern_ = &pattern;
    // In one dimension blocks are what is counted.
    unit_bytes_ = work_.two_d ? 1 : work_.block;
    unit_ = Type(1, static_cast<int>(unit_bytes_), 0);
    const Pieces pieces = pattern.PiecesOf(0, 0);
    if (uses_view_) {
      view_ = Type(static_cast<int>(pieces.count), static_cast<int>(pieces.bytes), pieces.stride);
    }
    return absl::OkStatus();
  }

  absl::Status BeginDataset(uint64_t number) override {
    dataset_ = number;
    return absl::OkStatus();
  }

  absl::Status Write(uint64_t number, const unsigned char* buffer) override {
    return Transfer(number, const_cast<unsigned char*>(buffer), "write",
                    [this](uint64_t offset, unsigned char* from, int count, MPI_Status* status) {
                      const auto at = static_cast<MPI_Offset>(offset);
                      return work_.collective
                                 ? MPI_File_write_at_all(file_, at, from, count, unit_.get(),
                                                         status)
                                 : MPI_File_write_at(file_, at, from, count, unit_.get(), status);
                    });
  }

  absl::Status Read(uint64_t number, unsigned char* buffer) override {
    return Transfer(number, buffer, "read",
                    [this](uint64_t offset, unsigned char* to, int count, MPI_Status* status) {
                      const auto at = static_cast<MPI_Offset>(offset);
                      return work_.collective
                                 ? MPI_File_read_at_all(file_, at, to, count, unit_.get(), status)
                                 : MPI_File_read_at(file_, at, to, count, unit_.get(), status);
                    });
  }

  absl::Status EndDataset() override { return absl::OkStatus(); }
  absl::Status Close() override { return Check(MPI_File_close(&file_), "close"); }
  void Remove(const std::string& file) override { MPI_File_delete(file.c_str(), group_.info); }
  bool is_open() const override { return file_ != MPI_FILE_NULL; }

 private:
  absl::Status Check(int code, const char* what) const {
    if (code == MPI_SUCCESS) return absl::OkStatus();
    return CheckMpi(code, StrCat(what, " ", name_));
  }

  // Calls `move` once for each piece, or once for all where the file shows only these.
  template <typename Move>
  absl::Status Transfer(uint64_t number, unsigned char* buffer, const char* what,
                        const Move& move) {
    Pieces pieces = pattern_->PiecesOf(dataset_, number);
    if (uses_view_) {
      H5M_RETURN_IF_ERROR(Check(MPI_File_set_view(file_, static_cast<MPI_Offset>(pieces.offset),
                                                  unit_.get(), view_.get(), "native", group_.info),
                                "set the view of"));
      return Moved(0, buffer, pattern_->transfer_bytes(), what, move);
    }
    for (; pieces.count > 0; --pieces.count, pieces.offset += pieces.stride) {
      H5M_RETURN_IF_ERROR(Moved(pieces.offset, buffer, pieces.bytes, what, move));
      buffer += pieces.bytes;
    }
    return absl::OkStatus();
  }

  template <typename Move>
  absl::Status Moved(uint64_t offset, unsigned char* buffer, uint64_t bytes, const char* what,
                     const Move& move) {
    const int count = static_cast<int>(bytes / unit_bytes_);
    MPI_Status status;
    H5M_RETURN_IF_ERROR(Check(move(offset, buffer, count, &status), what));
    int moved = 0;
    MPI_Get_count(&status, unit_.get(), &moved);
    if (moved == count) return absl::OkStatus();
    return absl::DataLossError(ToAbsl(StrCat(what, " ", name_, ": ", moved, " of ", count,
                                             " blocks of ", unit_bytes_, " bytes were moved")));
  }

  const Group& group_;
  const Workload& work_;
  // Collective transfers of several pieces go by a view: the pieces are all that the file shows.
  const bool uses_view_;
  std::string name_;
  MPI_File file_ = MPI_FILE_NULL;
  Type unit_, view_;
  uint64_t unit_bytes_ = 1;
  const Pattern* pattern_ = nullptr;
  uint64_t dataset_ = 0;
};

}  // namespace

std::unique_ptr<Backend> MakeMpiioBackend(const Group& group, const Options& options) {
  return std::make_unique<MpiioBackend>(group, options.workload);
}

}  // namespace h5mirror::pperf
