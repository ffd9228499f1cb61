#include "h5restore/references.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5restore/element_layout.h"

namespace h5mirror::restore {
namespace {

using hdf5::Check;
using hdf5::Handle;
using hdf5::Own;

// Elements that are in memory at once; what sequences point to comes on top.
constexpr hsize_t kBytesAtOnce = 8 << 20;

// One buffer of elements, from one file into another. If nothing `is_written`, no reference is made
// either: one to a region lies in the heap of its file.
class Rewriter {
 public:
  Rewriter(hid_t from, const std::string& said, bool is_written, ReferenceMap& map)
      : from_(from), said_(said), is_written_(is_written), map_(map) {}

  absl::Status Rewrite(const Layout& layout, char* bytes, size_t count, size_t size) {
    for (size_t i = 0; i < count; ++i) {
      H5M_RETURN_IF_ERROR(
          ForEachReference(layout, bytes + i * size, [&](ReferenceForm form, char* at) {
            switch (form) {
              case ReferenceForm::kObject:
                return Object(at);
              case ReferenceForm::kRegion:
                return Region(at);
              case ReferenceForm::kStandard:
                break;
            }
            return Standard(at);
          }));
    }
    return absl::OkStatus();
  }
  bool changed() const { return changed_; }
  uint64_t led() const { return led_; }

 private:
  // Objects of the same address come again and again, in columns of references.
  absl::Status Object(char* at) {
    hobj_ref_t old = 0;
    std::memcpy(&old, at, sizeof old);
    if (old == 0) return absl::OkStatus();
    auto known = objects_.find(old);
    // Each that leads nowhere is told to the map, which counts them.
    if (known == objects_.end() || known->second.to == Lead::To::kNowhere) {
      H5M_ASSIGN_OR_RETURN(const Made made, NewObject(old));
      known = objects_.insert_or_assign(old, made).first;
    }
    if (known->second.to == Lead::To::kSame) return absl::OkStatus();
    if (known->second.to == Lead::To::kObject) ++led_;
    return Put(at, &known->second.reference, sizeof old);
  }

  struct Made {
    Lead::To to = Lead::To::kSame;
    hobj_ref_t reference = 0;
  };

  absl::StatusOr<Made> NewObject(hobj_ref_t old) {
    const Handle object(H5Rdereference2(from_, H5P_DEFAULT, H5R_OBJECT, &old));
    H5M_ASSIGN_OR_RETURN(const Lead lead, LeadOf(object.get(), H5I_INVALID_HID, false));
    Made made{lead.to, 0};
    if (lead.to != Lead::To::kObject || !is_written_) return made;
    H5M_RETURN_IF_ERROR(Check(
        H5Rcreate(&made.reference, lead.object.get(), ".", H5R_OBJECT, H5I_INVALID_HID), said_));
    return made;
  }

  absl::Status Region(char* at) {
    hdset_reg_ref_t old;
    std::memcpy(&old, at, sizeof old);
    const auto* bytes = reinterpret_cast<const char*>(&old);
    if (std::all_of(bytes, bytes + sizeof old, [](char byte) { return byte == 0; })) {
      return absl::OkStatus();
    }
    const Handle object(H5Rdereference2(from_, H5P_DEFAULT, H5R_DATASET_REGION, &old));
    const Handle region(object.valid() ? H5Rget_region(from_, H5R_DATASET_REGION, &old)
                                       : H5I_INVALID_HID);
    H5M_ASSIGN_OR_RETURN(const Lead lead, LeadOf(object.get(), region.get(), !region.valid()));
    if (lead.to == Lead::To::kSame) return absl::OkStatus();
    hdset_reg_ref_t made{};
    if (lead.to == Lead::To::kObject) ++led_;
    if (lead.to == Lead::To::kObject && is_written_) {
      H5M_RETURN_IF_ERROR(
          Check(H5Rcreate(&made, lead.object.get(), ".", H5R_DATASET_REGION, region.get()), said_));
    }
    return Put(at, &made, sizeof made);
  }

  // Of the type H5T_STD_REF. What it owns is freed, or handed on to the element.
  absl::Status Standard(char* at) {
    H5R_ref_t old;
    std::memcpy(&old, at, sizeof old);
    const H5R_type_t type = H5Rget_type(&old);
    if (type != H5R_OBJECT2 && type != H5R_DATASET_REGION2 && type != H5R_ATTR) {
      H5Eclear2(H5E_DEFAULT);
      return absl::OkStatus();
    }
    if (IsOfOtherFile(old)) return absl::OkStatus();  // Its name is all that it has of that.
    const Handle object(H5Ropen_object(&old, H5P_DEFAULT, H5P_DEFAULT));
    const Handle region(type == H5R_DATASET_REGION2 && object.valid()
                            ? H5Ropen_region(&old, H5P_DEFAULT, H5P_DEFAULT)
                            : H5I_INVALID_HID);
    const bool region_is_lost = type == H5R_DATASET_REGION2 && !region.valid();
    H5M_ASSIGN_OR_RETURN(const Lead lead, LeadOf(object.get(), region.get(), region_is_lost));
    if (lead.to == Lead::To::kSame) return absl::OkStatus();
    H5R_ref_t made{};
    if (lead.to == Lead::To::kObject) ++led_;
    if (lead.to == Lead::To::kObject && is_written_) {
      H5M_RETURN_IF_ERROR(MakeStandard(type, old, lead.object.get(), region.get(), &made));
    }
    H5Rdestroy(&old);
    return Put(at, &made, sizeof made);
  }

  bool IsOfOtherFile(const H5R_ref_t& reference) const {
    const auto text = [](auto get) {
      std::string name(static_cast<size_t>(std::max<ssize_t>(get(nullptr, 0), 0)) + 1, '\0');
      get(name.data(), name.size());
      return name;
    };
    return text([&](char* out, size_t size) { return H5Rget_file_name(&reference, out, size); }) !=
           text([&](char* out, size_t size) { return H5Fget_name(from_, out, size); });
  }

  absl::Status MakeStandard(H5R_type_t type, const H5R_ref_t& old, hid_t object, hid_t region,
                            H5R_ref_t* made) {
    if (type == H5R_OBJECT2) {
      return Check(H5Rcreate_object(object, ".", H5P_DEFAULT, made), said_);
    }
    if (type == H5R_DATASET_REGION2) {
      return Check(H5Rcreate_region(object, ".", region, H5P_DEFAULT, made), said_);
    }
    const ssize_t length = std::max<ssize_t>(H5Rget_attr_name(&old, nullptr, 0), 0);
    std::string name(static_cast<size_t>(length) + 1, '\0');
    H5Rget_attr_name(&old, name.data(), name.size());
    return Check(H5Rcreate_attr(object, ".", name.c_str(), H5P_DEFAULT, made), said_);
  }

  absl::StatusOr<Lead> LeadOf(hid_t object, hid_t region, bool region_is_lost) {
    if (region_is_lost) H5Eclear2(H5E_DEFAULT);
    Referenced from;
    if (object >= 0) {
      from.object = object;
      from.kind = H5Iget_type(object);
      from.region = region;
      from.region_is_lost = region_is_lost;
      H5M_ASSIGN_OR_RETURN(from.info, InfoOf(object, said_));
    } else {
      H5Eclear2(H5E_DEFAULT);  // Its object is gone.
    }
    return map_.Find(from);
  }

  absl::Status Put(char* at, const void* made, size_t size) {
    changed_ = true;
    std::memcpy(at, made, size);
    return absl::OkStatus();
  }

  const hid_t from_;
  const std::string& said_;
  const bool is_written_;
  ReferenceMap& map_;
  absl::flat_hash_map<hobj_ref_t, Made> objects_;
  bool changed_ = false;
  uint64_t led_ = 0;
};

absl::StatusOr<Handle> MemoryType(hid_t type, const std::string& said) {
  return Own(H5Tcopy(type), said);
}

}  // namespace

bool Fits(hid_t region, hid_t dataset) {
  const Handle space(H5Dget_space(dataset));
  const int rank = H5Sget_simple_extent_ndims(region);
  if (rank <= 0 || H5Sget_simple_extent_ndims(space.get()) != rank) return false;
  if (H5Sget_select_npoints(region) <= 0) return true;
  std::array<hsize_t, H5S_MAX_RANK> first{}, last{}, dims{};
  if (H5Sget_select_bounds(region, first.data(), last.data()) < 0) return false;
  H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr);
  for (size_t d = 0; d < static_cast<size_t>(rank); ++d) {
    if (last[d] >= dims[d]) return false;
  }
  return true;
}

absl::StatusOr<uint64_t> CopyAttribute(hid_t from, const std::string& name, hid_t to,
                                       const std::string& to_name, const std::string& said,
                                       Writes writes, ReferenceMap& map) {
  const std::string what = StrCat(said, ", attribute ", name);
  H5M_ASSIGN_OR_RETURN(const Handle source, Own(H5Aopen(from, name.c_str(), H5P_DEFAULT), what));
  H5M_ASSIGN_OR_RETURN(const Handle space, Own(H5Aget_space(source.get()), what));
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  if (count <= 0) return 0;
  H5M_ASSIGN_OR_RETURN(const Handle file_type, Own(H5Aget_type(source.get()), what));
  H5M_ASSIGN_OR_RETURN(const Handle type, MemoryType(file_type.get(), what));
  const size_t size = H5Tget_size(type.get());
  std::vector<char> values(static_cast<size_t>(count) * size);
  H5M_RETURN_IF_ERROR(Check(H5Aread(source.get(), type.get(), values.data()), what));
  const absl::Cleanup reclaim = [&] {
    hdf5::Reclaim(type.get(), space.get(), values.data()).IgnoreError();
  };
  Rewriter rewriter(from, what, to >= 0, map);
  if (H5Tdetect_class(type.get(), H5T_REFERENCE) > 0) {
    H5M_ASSIGN_OR_RETURN(const Layout layout, LayoutOf(type.get()));
    H5M_RETURN_IF_ERROR(rewriter.Rewrite(layout, values.data(), static_cast<size_t>(count), size));
  }
  if (to < 0 || (writes == Writes::kWhereChanged && !rewriter.changed())) return rewriter.led();
  H5M_ASSIGN_OR_RETURN(const Handle target, Own(H5Aopen(to, to_name.c_str(), H5P_DEFAULT), what));
  H5M_ASSIGN_OR_RETURN(const Handle target_type, Own(H5Aget_type(target.get()), what));
  H5M_ASSIGN_OR_RETURN(const Handle written, MemoryType(target_type.get(), what));
  H5M_RETURN_IF_ERROR(Check(H5Awrite(target.get(), written.get(), values.data()), what));
  return rewriter.led();
}

namespace {

// Blocks that cover an extent, each of at most kBytesAtOnce unless one element has more.
class Blocks {
 public:
  Blocks(std::vector<hsize_t> dims, hsize_t element_bytes)
      : dims_(std::move(dims)), size_(dims_.size()), at_(dims_.size()) {
    hsize_t room = std::max<hsize_t>(kBytesAtOnce / std::max<hsize_t>(element_bytes, 1), 1);
    for (size_t d = dims_.size(); d-- > 0;) {
      size_[d] = std::max<hsize_t>(std::min(dims_[d], room), 1);
      room = std::max<hsize_t>(room / size_[d], 1);
    }
  }
  // Selects the next one; its count of elements, 0: there is none.
  hsize_t Select(hid_t space) {
    if (is_done_) return 0;
    hsize_t elements = 1;
    std::vector<hsize_t> count(dims_.size());
    for (size_t d = 0; d < dims_.size(); ++d) {
      count[d] = std::min(size_[d], dims_[d] - at_[d]);
      elements *= count[d];
    }
    if (dims_.empty()) {
      H5Sselect_all(space);
    } else {
      H5Sselect_hyperslab(space, H5S_SELECT_SET, at_.data(), nullptr, count.data(), nullptr);
    }
    Step();
    return elements;
  }

 private:
  void Step() {
    for (size_t d = dims_.size(); d-- > 0;) {
      at_[d] += size_[d];
      if (at_[d] < dims_[d]) return;
      at_[d] = 0;
    }
    is_done_ = true;
  }

  const std::vector<hsize_t> dims_;
  std::vector<hsize_t> size_, at_;
  bool is_done_ = false;
};

absl::StatusOr<uint64_t> RewriteDataset(hid_t from, hid_t to, const std::string& said,
                                        ReferenceMap& map) {
  H5M_ASSIGN_OR_RETURN(const Handle space, Own(H5Dget_space(from), said));
  if (H5Sget_simple_extent_npoints(space.get()) <= 0) return 0;
  H5M_ASSIGN_OR_RETURN(const Handle file_type, Own(H5Dget_type(from), said));
  H5M_ASSIGN_OR_RETURN(const Handle type, MemoryType(file_type.get(), said));
  Handle written;
  if (to >= 0) {
    H5M_ASSIGN_OR_RETURN(const Handle target_type, Own(H5Dget_type(to), said));
    H5M_ASSIGN_OR_RETURN(written, MemoryType(target_type.get(), said));
  }
  H5M_ASSIGN_OR_RETURN(const Layout layout, LayoutOf(type.get()));
  const size_t size = H5Tget_size(type.get());
  std::vector<hsize_t> dims(
      static_cast<size_t>(std::max(H5Sget_simple_extent_ndims(space.get()), 0)));
  H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr);
  Blocks blocks(dims, size);
  uint64_t led = 0;
  while (const hsize_t count = blocks.Select(space.get())) {
    H5M_ASSIGN_OR_RETURN(const Handle memory, Own(H5Screate_simple(1, &count, nullptr), said));
    std::vector<char> values(count * size);
    H5M_RETURN_IF_ERROR(Check(
        H5Dread(from, type.get(), memory.get(), space.get(), H5P_DEFAULT, values.data()), said));
    const absl::Cleanup reclaim = [&] {
      hdf5::Reclaim(type.get(), memory.get(), values.data()).IgnoreError();
    };
    Rewriter rewriter(from, said, to >= 0, map);
    H5M_RETURN_IF_ERROR(rewriter.Rewrite(layout, values.data(), count, size));
    led += rewriter.led();
    if (to < 0 || !rewriter.changed()) continue;
    H5M_RETURN_IF_ERROR(Check(
        H5Dwrite(to, written.get(), memory.get(), space.get(), H5P_DEFAULT, values.data()), said));
  }
  return led;
}

}  // namespace

absl::StatusOr<uint64_t> RewriteReferences(hid_t from, hid_t to, const Surveyed& what,
                                           const std::string& said, ReferenceMap& map) {
  uint64_t led = 0;
  for (const std::string& name : what.attributes_with_references) {
    H5M_ASSIGN_OR_RETURN(const uint64_t more,
                         CopyAttribute(from, name, to, name, said, Writes::kWhereChanged, map));
    led += more;
  }
  if (!what.data_has_references) return led;
  H5M_ASSIGN_OR_RETURN(const uint64_t more, RewriteDataset(from, to, said, map));
  return led + more;
}

}  // namespace h5mirror::restore
