// Datasets of an HDF5 file, by one H5Dwrite or H5Dread for each transfer.
#include <filesystem>

#include "base/status_macros.h"
#include "base/strings.h"
#include "h5perf/backend.h"
#include "h5perf/hdf5_driver.h"

namespace h5mirror::pperf {
namespace {

using hdf5::Check;
using hdf5::Handle;
using hdf5::Own;

using Dimensions = std::array<hsize_t, 2>;

Dimensions ToDimensions(const std::array<uint64_t, 2>& values) { return {values[0], values[1]}; }

class Hdf5Backend : public Backend {
 public:
  Hdf5Backend(const Group& group, const Options& options, const Driver& driver)
      : group_(group), options_(options), work_(options.workload), driver_(driver) {}

  absl::Status Open(const std::string& file, bool creates) override {
    name_ = file;
    creates_ = creates;
    H5M_ASSIGN_OR_RETURN(const Handle fapl, MakeFapl(options_, driver_, group_));
    file_ = creates ? H5Fcreate(file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, fapl.get())
                    : H5Fopen(file.c_str(), H5F_ACC_RDONLY, fapl.get());
    return file_ < 0 ? hdf5::ErrorOf(StrCat(creates ? "create " : "open ", file))
                     : absl::OkStatus();
  }

  absl::Status Prepare(const Pattern& pattern) override {
    pattern_ = &pattern;
    const int rank = work_.two_d ? 2 : 1;
    const Dimensions size = {pattern.side(), pattern.side()};
    H5M_ASSIGN_OR_RETURN(space_,
                         Own(H5Screate_simple(rank, size.data(), nullptr), "the dataset's space"));
    const Slab slab = pattern.FirstSlab();
    const Dimensions start = ToDimensions(slab.start), stride = ToDimensions(slab.stride);
    const Dimensions count = ToDimensions(slab.count), block = ToDimensions(slab.block);
    H5M_RETURN_IF_ERROR(Check(H5Sselect_hyperslab(space_.get(), H5S_SELECT_SET, start.data(),
                                                  stride.data(), count.data(), block.data()),
                              "select in the dataset"));
    const Dimensions buffer = ToDimensions(pattern.BufferShape());
    H5M_ASSIGN_OR_RETURN(memory_, Own(H5Screate_simple(rank, buffer.data(), nullptr),
                                      "the transfer buffer's space"));
    H5M_ASSIGN_OR_RETURN(dxpl_, Own(H5Pcreate(H5P_DATASET_XFER), "H5Pcreate"));
    if (!work_.collective) return absl::OkStatus();
    return Check(H5Pset_dxpl_mpio(dxpl_.get(), H5FD_MPIO_COLLECTIVE), "-C");
  }

  absl::Status BeginDataset(uint64_t number) override {
    const std::string name = StrCat("Dataset_", number + 1);
    if (!creates_) {
      dataset_ = H5Dopen2(file_, name.c_str(), H5P_DEFAULT);
      return CheckDataset("open");
    }
    H5M_ASSIGN_OR_RETURN(const Handle dcpl, Own(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate"));
    if (work_.chunked) {
      const Dimensions chunk = {work_.block, work_.block};
      H5M_RETURN_IF_ERROR(
          Check(H5Pset_chunk(dcpl.get(), work_.two_d ? 2 : 1, chunk.data()), "-c with -B"));
    }
    dataset_ = H5Dcreate2(file_, name.c_str(), H5T_NATIVE_UCHAR, space_.get(), H5P_DEFAULT,
                          dcpl.get(), H5P_DEFAULT);
    return CheckDataset("create");
  }

  absl::Status Write(uint64_t number, const unsigned char* buffer) override {
    H5M_RETURN_IF_ERROR(MoveTo(number));
    return CheckIo(
        H5Dwrite(dataset_, H5T_NATIVE_UCHAR, memory_.get(), space_.get(), dxpl_.get(), buffer),
        "write ");
  }

  absl::Status Read(uint64_t number, unsigned char* buffer) override {
    H5M_RETURN_IF_ERROR(MoveTo(number));
    return CheckIo(
        H5Dread(dataset_, H5T_NATIVE_UCHAR, memory_.get(), space_.get(), dxpl_.get(), buffer),
        "read ");
  }

  absl::Status EndDataset() override {
    H5M_RETURN_IF_ERROR(CheckIo(H5Dclose(dataset_), "close a dataset of "));
    dataset_ = H5I_INVALID_HID;
    return absl::OkStatus();
  }

  absl::Status Close() override {
    H5M_RETURN_IF_ERROR(CheckIo(H5Fclose(file_), "close "));
    file_ = H5I_INVALID_HID;
    return absl::OkStatus();
  }

  void Remove(const std::string& file) override {
    MPI_File_delete(file.c_str(), group_.info);
    std::error_code error;
    if (driver_.name == perf::kMirrorDriver) std::filesystem::remove_all(file + ".h5m", error);
  }
  bool is_open() const override { return file_ >= 0; }

  std::string Complaint(const std::string& file) const override {
    std::error_code error;
    if (driver_.name != perf::kMirrorDriver ||
        !std::filesystem::exists(file + ".h5m/dirty", error)) {
      return "";
    }
    return "degraded: the server lacks what is noted in its .h5m/dirty";
  }

 private:
  absl::Status MoveTo(uint64_t number) {
    const auto move = pattern_->MoveOf(number);
    const std::array<hssize_t, 2> offset = {static_cast<hssize_t>(move[0]),
                                            static_cast<hssize_t>(move[1])};
    return Check(H5Soffset_simple(space_.get(), offset.data()), "move the selection");
  }

  absl::Status CheckDataset(const char* what) const {
    return dataset_ < 0 ? hdf5::ErrorOf(StrCat(what, " a dataset of ", name_)) : absl::OkStatus();
  }
  // The message is made only where it is needed: this is called after each transfer.
  absl::Status CheckIo(herr_t code, const char* what) const {
    return code < 0 ? hdf5::ErrorOf(what + name_) : absl::OkStatus();
  }

  const Group& group_;
  const Options& options_;
  const Workload& work_;
  const Driver driver_;
  std::string name_;
  bool creates_ = false;
  const Pattern* pattern_ = nullptr;
  // Without owners: see Backend.
  hid_t file_ = H5I_INVALID_HID, dataset_ = H5I_INVALID_HID;
  Handle space_, memory_, dxpl_;
};

}  // namespace

std::unique_ptr<Backend> MakeHdf5Backend(const Group& group, const Options& options,
                                         const Driver& driver) {
  return std::make_unique<Hdf5Backend>(group, options, driver);
}

}  // namespace h5mirror::pperf
