// The dataset in an HDF5 file, by one H5Dwrite or H5Dread for each buffer.
#include <algorithm>

#include "base/status_macros.h"
#include "base/strings.h"
#include "h5perf_serial/data_file.h"
#include "h5perf_serial/job.h"
#include "h5perf_serial/property_lists.h"

namespace h5mirror::perf {
namespace {

using hdf5::Check;
using hdf5::Handle;
using hdf5::Own;

std::vector<hsize_t> Dimensions(const Sizes& sizes) { return {sizes.begin(), sizes.end()}; }

// One selection in the file, of the buffer's size, that is moved by an offset.
class Selection {
 public:
  static absl::StatusOr<Selection> Make(const Shape& shape, hid_t dataset) {
    Selection selection;
    const std::vector<hsize_t> buffer = Dimensions(shape.buffer);
    selection.offset_.resize(shape.rank());
    H5M_ASSIGN_OR_RETURN(selection.memory_, Own(H5Screate_simple(static_cast<int>(shape.rank()),
                                                                 buffer.data(), nullptr),
                                                "the transfer buffer's dataspace"));
    H5M_RETURN_IF_ERROR(selection.Renew(shape, dataset));
    return selection;
  }

  // The dataset's extent has changed.
  absl::Status Renew(const Shape& shape, hid_t dataset) {
    const std::vector<hsize_t> start(shape.rank(), 0);
    const std::vector<hsize_t> buffer = Dimensions(shape.buffer);
    H5M_ASSIGN_OR_RETURN(file_, Own(H5Dget_space(dataset), "the dataset's dataspace"));
    return Check(H5Sselect_hyperslab(file_.get(), H5S_SELECT_SET, start.data(), nullptr,
                                     buffer.data(), nullptr),
                 "select in the dataset");
  }

  absl::Status MoveTo(const Sizes& offset) {
    std::copy(offset.begin(), offset.end(), offset_.begin());
    return Check(H5Soffset_simple(file_.get(), offset_.data()), "move the selection");
  }

  hid_t memory() const { return memory_.get(); }
  hid_t file() const { return file_.get(); }

 private:
  Handle memory_, file_;
  std::vector<hssize_t> offset_;
};

absl::Status Extend(hid_t dataset, const Extent& extent) {
  const std::vector<hsize_t> size = Dimensions(extent.size());
  return Check(H5Dset_extent(dataset, size.data()), "extend the dataset");
}

class Hdf5Backend : public Backend {
 public:
  explicit Hdf5Backend(const Driver& driver) : driver_(driver) {}

  absl::Status Write(const Job& job) override {
    const Hdf5Settings& settings = job.options.settings;
    H5M_ASSIGN_OR_RETURN(const Handle fapl, MakeFapl(settings, driver_, job.base));
    H5M_ASSIGN_OR_RETURN(const Handle fcpl, MakeFcpl(settings));
    const std::string name = FileName(job.base);
    job.clock.Start(Phase::kWriteOpenClose);
    H5M_ASSIGN_OR_RETURN(Handle file,
                         Own(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, fcpl.get(), fapl.get()),
                             StrCat("create ", name)));
    job.clock.Start(Phase::kWrite);
    H5M_RETURN_IF_ERROR(WriteDataset(job, file.get()));
    job.clock.Stop(Phase::kWrite);
    const auto since = PhaseClock::Clock::now();
    complaint_ = MirrorComplaint(driver_, file.get());
    job.clock.Exclude(since);
    H5M_RETURN_IF_ERROR(Check(H5Fclose(file.release()), StrCat("close ", name)));
    if (job.options.fsync) H5M_RETURN_IF_ERROR(SyncFiles(Files(job.base)));
    job.clock.Stop(Phase::kWriteOpenClose);
    if (complaint_.empty()) complaint_ = ClosedMirrorComplaint(driver_, job.base);
    return absl::OkStatus();
  }

  absl::Status Read(const Job& job) override {
    H5M_ASSIGN_OR_RETURN(const Handle fapl, MakeFapl(job.options.settings, driver_, job.base));
    const std::string name = FileName(job.base);
    Bytes wanted(job.options.debug.verify ? job.options.shape.buffer_bytes() : 0);
    FillBuffer(job.options.contents, wanted);
    job.clock.Start(Phase::kReadOpenClose);
    H5M_ASSIGN_OR_RETURN(
        Handle file, Own(H5Fopen(name.c_str(), H5F_ACC_RDONLY, fapl.get()), StrCat("open ", name)));
    job.clock.Start(Phase::kRead);
    H5M_RETURN_IF_ERROR(ReadDataset(job, file.get(), wanted));
    job.clock.Stop(Phase::kRead);
    H5M_RETURN_IF_ERROR(Check(H5Fclose(file.release()), StrCat("close ", name)));
    job.clock.Stop(Phase::kReadOpenClose);
    return absl::OkStatus();
  }

  std::string FileName(const std::string& base) const override { return Hdf5Name(driver_, base); }
  std::vector<std::string> Files(const std::string& base) const override {
    return DataFiles(driver_, base);
  }
  void Remove(const std::string& base) const override { RemoveDataFiles(driver_, base); }
  std::string complaint() const override { return complaint_; }

 private:
  static std::string DatasetName(const Shape& shape) {
    return StrCat("Dataset_", shape.dataset_bytes());
  }

  absl::Status WriteDataset(const Job& job, hid_t file) {
    const Shape& shape = job.options.shape;
    const bool extendable = job.options.settings.extendable;
    Bytes buffer(shape.buffer_bytes());
    FillBuffer(job.options.contents, buffer);
    Extent extent(shape, extendable ? shape.buffer : shape.dataset);
    const std::vector<hsize_t> size = Dimensions(extent.size());
    const std::vector<hsize_t> unlimited(shape.rank(), H5S_UNLIMITED);
    H5M_ASSIGN_OR_RETURN(const Handle space,
                         Own(H5Screate_simple(static_cast<int>(shape.rank()), size.data(),
                                              extendable ? unlimited.data() : nullptr),
                             "the dataset's dataspace"));
    H5M_ASSIGN_OR_RETURN(const Handle dcpl, MakeDcpl(job.options.settings));
    H5M_ASSIGN_OR_RETURN(Handle dataset,
                         Own(H5Dcreate2(file, DatasetName(shape).c_str(), H5T_NATIVE_UCHAR,
                                        space.get(), H5P_DEFAULT, dcpl.get(), H5P_DEFAULT),
                             "create the dataset"));
    H5M_ASSIGN_OR_RETURN(Selection selection, Selection::Make(shape, dataset.get()));
    Sizes offset(shape.rank());
    job.clock.Start(Phase::kRawWrite);
    for (uint64_t number = 0; number < job.walk.count(); ++number) {
      job.walk.OffsetOf(number, offset);
      if (extent.Cover(offset)) {
        H5M_RETURN_IF_ERROR(Extend(dataset.get(), extent));
        H5M_RETURN_IF_ERROR(selection.Renew(shape, dataset.get()));
      }
      H5M_RETURN_IF_ERROR(selection.MoveTo(offset));
      if (H5Dwrite(dataset.get(), H5T_NATIVE_UCHAR, selection.memory(), selection.file(),
                   H5P_DEFAULT, buffer.data()) < 0) {
        return hdf5::ErrorOf("write the dataset");
      }
      H5M_RETURN_IF_ERROR(job.NoteDone(number + 1));
    }
    job.clock.Stop(Phase::kRawWrite);
    return Check(H5Dclose(dataset.release()), "close the dataset");
  }

  absl::Status ReadDataset(const Job& job, hid_t file, const Bytes& wanted) {
    const Shape& shape = job.options.shape;
    H5M_ASSIGN_OR_RETURN(
        Handle dataset,
        Own(H5Dopen2(file, DatasetName(shape).c_str(), H5P_DEFAULT), "open the dataset"));
    Bytes buffer(shape.buffer_bytes());
    H5M_ASSIGN_OR_RETURN(Selection selection, Selection::Make(shape, dataset.get()));
    Sizes offset(shape.rank());
    job.clock.Start(Phase::kRawRead);
    for (uint64_t number = 0; number < job.walk.count(); ++number) {
      job.walk.OffsetOf(number, offset);
      H5M_RETURN_IF_ERROR(selection.MoveTo(offset));
      if (H5Dread(dataset.get(), H5T_NATIVE_UCHAR, selection.memory(), selection.file(),
                  H5P_DEFAULT, buffer.data()) < 0) {
        return hdf5::ErrorOf("read the dataset");
      }
      if (!wanted.empty()) {
        const auto since = PhaseClock::Clock::now();
        H5M_RETURN_IF_ERROR(VerifyBuffer(shape, offset, wanted, buffer, FileName(job.base)));
        job.clock.Exclude(since);
      }
      H5M_RETURN_IF_ERROR(job.NoteDone(number + 1));
    }
    job.clock.Stop(Phase::kRawRead);
    return Check(H5Dclose(dataset.release()), "close the dataset");
  }

  const Driver driver_;
  std::string complaint_;
};

}  // namespace

std::unique_ptr<Backend> MakeHdf5Backend(const Driver& driver) {
  return std::make_unique<Hdf5Backend>(driver);
}

}  // namespace h5mirror::perf
