// APPEND: an attribute or a dataset becomes longer, and what it held stays bit by bit.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "h5edit/executor.h"

namespace h5mirror::edit {

using hdf5::Check;
using hdf5::Handle;
using hdf5::Own;

namespace {

std::vector<hsize_t> DimsOf(hid_t space) {
  std::vector<hsize_t> dims(static_cast<size_t>(std::max(H5Sget_simple_extent_ndims(space), 0)));
  H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  return dims;
}

// The same command as a MODIFY of what is new between the two.
Statement ModifyOfNew(const Statement& append, const std::vector<hsize_t>& old_dims,
                      const std::vector<uint64_t>& new_dims) {
  Statement modify = append;
  for (const uint64_t size : new_dims) modify.ranges.push_back({append.values.at, 0, size});
  modify.ranges[0].start = old_dims[0];
  modify.ranges[0].count = new_dims[0] - old_dims[0];
  return modify;
}

// Gives an attribute of the same type the values of a shorter one. The rest are zeros.
absl::Status CopyValues(hid_t from, hid_t to, hid_t type, hid_t old_space, hid_t new_space) {
  std::string bytes(
      static_cast<size_t>(H5Sget_simple_extent_npoints(new_space)) * H5Tget_size(type), '\0');
  H5M_RETURN_IF_ERROR(Check(H5Aread(from, type, bytes.data()), "read the attribute"));
  absl::Status written = Check(H5Awrite(to, type, bytes.data()), "write the attribute");
  hdf5::Reclaim(type, old_space, bytes.data()).IgnoreError();
  return written;
}

}  // namespace

// The dimensions with the values of the statement, which must be whole rows: all but the first
// dimension stay.
absl::StatusOr<std::vector<uint64_t>> Executor::GrownBy(hid_t space, const Statement& statement) {
  const Target& target = statement.target;
  const std::string name = target.attribute.empty() ? target.object : target.attribute;
  const size_t at = target.attribute.empty() ? target.object_at : target.attribute_at;
  const std::vector<hsize_t> dims = DimsOf(space);
  if (dims.empty()) {
    return Fail(at, StrCat(name, " has no dimension that could become longer: its space is ",
                           H5Sget_simple_extent_type(space) == H5S_NULL ? "NULL" : "SCALAR"));
  }
  uint64_t row = 1;
  for (size_t d = 1; d < dims.size(); ++d) row *= dims[d];
  const uint64_t count = statement.values.values.size();
  if (count == 0) return Fail(statement.values.end, "too few values: expected at least 1, found 0");
  if (row == 0 || count % row != 0) {
    return Fail(statement.values.end, StrCat("APPEND takes whole rows, which have ", row,
                                             " values in ", name, "; found ", count));
  }
  std::vector<uint64_t> grown(dims.begin(), dims.end());
  grown[0] += count / row;
  return grown;
}

// Attributes have one size for good: the longer one is another of that name.
absl::Status Executor::AppendAttribute(const Statement& statement) {
  const Target& target = statement.target;
  H5M_ASSIGN_OR_RETURN(const Handle object, OpenTarget(target, KindRule::kAny));
  H5M_RETURN_IF_ERROR(CheckIsOurs(object.get(), target.object, target.object_at));
  H5M_RETURN_IF_ERROR(CheckThere(object.get(), target));
  const std::string what = StrCat("append to attribute ", target.attribute);
  H5M_ASSIGN_OR_RETURN(Handle old,
                       Own(H5Aopen(object.get(), target.attribute.c_str(), H5P_DEFAULT), what));
  H5M_ASSIGN_OR_RETURN(const Handle type, Own(H5Aget_type(old.get()), what));
  H5M_ASSIGN_OR_RETURN(const Handle space, Own(H5Aget_space(old.get()), what));
  H5M_ASSIGN_OR_RETURN(const Handle list, Own(H5Aget_create_plist(old.get()), what));
  H5M_ASSIGN_OR_RETURN(const std::vector<uint64_t> grown, GrownBy(space.get(), statement));
  const std::vector<hsize_t> dims(grown.begin(), grown.end());
  std::vector<hsize_t> most(dims.size());
  H5Sget_simple_extent_dims(space.get(), nullptr, most.data());
  most[0] = std::max(most[0], dims[0]);  // H5S_UNLIMITED is the largest.
  H5M_ASSIGN_OR_RETURN(
      const Handle new_space,
      Own(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), most.data()), what));
  H5M_ASSIGN_OR_RETURN(const std::string beside, NameBeside(object.get(), target));
  H5M_ASSIGN_OR_RETURN(Handle made,
                       NewAttribute({object.get(), beside, type.get(), new_space.get(), list.get()},
                                    target.attribute_at, what));
  absl::Status written =
      CopyValues(old.get(), made.get(), type.get(), space.get(), new_space.get());
  if (written.ok()) {
    written =
        ModifyElements(ModifyOfNew(statement, DimsOf(space.get()), grown), made.get(), type.get());
  }
  made = Handle();
  old = Handle();
  if (!written.ok()) {
    H5Adelete(object.get(), beside.c_str());
    H5Eclear2(H5E_DEFAULT);
    return written;
  }
  H5M_RETURN_IF_ERROR(Check(H5Adelete(object.get(), target.attribute.c_str()), what));
  return Check(H5Arename(object.get(), beside.c_str(), target.attribute.c_str()), what);
}

absl::Status Executor::AppendDataset(const Statement& statement) {
  const Target& target = statement.target;
  const std::string what = StrCat("append to dataset ", target.object);
  H5M_ASSIGN_OR_RETURN(const Handle dataset, OpenTarget(target, KindRule::kAny));
  H5M_RETURN_IF_ERROR(CheckIsOurs(dataset.get(), target.object, target.object_at));
  H5M_RETURN_IF_ERROR(CheckHoldsItsValues(dataset.get(), target));
  H5M_ASSIGN_OR_RETURN(const Handle space, Own(H5Dget_space(dataset.get()), what));
  H5M_ASSIGN_OR_RETURN(const std::vector<uint64_t> grown, GrownBy(space.get(), statement));
  const std::vector<hsize_t> old_dims = DimsOf(space.get());
  std::vector<hsize_t> most(old_dims.size());
  H5Sget_simple_extent_dims(space.get(), nullptr, most.data());
  if (most[0] != H5S_UNLIMITED && grown[0] > most[0]) {
    return Fail(target.object_at, StrCat(target.object, " has ", old_dims[0], " rows and can have ",
                                         most[0], ": it was made so (h5dump -H shows both)"));
  }
  const std::vector<hsize_t> dims(grown.begin(), grown.end());
  const absl::Status extended = Check(H5Dset_extent(dataset.get(), dims.data()), what);
  if (!extended.ok()) return Fail(target.object_at, extended);
  absl::Status written = ModifyDataset(ModifyOfNew(statement, old_dims, grown));
  if (written.ok()) return written;
  const size_t reason_at = blame_;
  H5Dset_extent(dataset.get(), old_dims.data());
  H5Eclear2(H5E_DEFAULT);
  blame_ = reason_at;
  return written;
}

}  // namespace h5mirror::edit
