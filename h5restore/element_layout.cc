#include "h5restore/element_layout.h"

#include <array>
#include <cstring>
#include <utility>

#include "base/status_macros.h"

namespace h5mirror::restore {
namespace {

using hdf5::Handle;
using hdf5::Own;

constexpr char kWhat[] = "look at a type";

absl::StatusOr<Layout> OfReference(hid_t type) {
  Layout layout;
  layout.kind = Layout::Kind::kReference;
  layout.size = H5Tget_size(type);
  if (layout.size == sizeof(hobj_ref_t)) {
    layout.form = ReferenceForm::kObject;
  } else if (layout.size == sizeof(hdset_reg_ref_t)) {
    layout.form = ReferenceForm::kRegion;
  } else if (layout.size == sizeof(H5R_ref_t)) {
    layout.form = ReferenceForm::kStandard;
  } else {
    return absl::InternalError("look at a type: it has references of a form that is not known");
  }
  return layout;
}

absl::StatusOr<Layout> OfCompound(hid_t type) {
  Layout layout;
  layout.size = H5Tget_size(type);
  const int count = H5Tget_nmembers(type);
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<unsigned>(i);
    H5M_ASSIGN_OR_RETURN(const Handle member, Own(H5Tget_member_type(type, index), kWhat));
    if (H5Tdetect_class(member.get(), H5T_REFERENCE) <= 0) continue;
    H5M_ASSIGN_OR_RETURN(Layout part, LayoutOf(member.get()));
    part.offset = H5Tget_member_offset(type, index);
    layout.parts.push_back(std::move(part));
  }
  return layout;
}

// Of an array or a sequence.
absl::StatusOr<Layout> OfElements(hid_t type) {
  H5M_ASSIGN_OR_RETURN(const Handle element, Own(H5Tget_super(type), kWhat));
  return LayoutOf(element.get());
}

absl::StatusOr<Layout> OfArray(hid_t type) {
  H5M_ASSIGN_OR_RETURN(Layout element, OfElements(type));
  std::array<hsize_t, H5S_MAX_RANK> dims{};
  const int rank = H5Tget_array_dims2(type, dims.data());
  if (rank < 0) return hdf5::ErrorOf(kWhat);
  Layout layout;
  layout.size = element.size * element.count;
  for (int d = 0; d < rank; ++d) layout.count *= dims[static_cast<size_t>(d)];
  layout.parts.push_back(std::move(element));
  return layout;
}

absl::StatusOr<Layout> OfSequence(hid_t type) {
  H5M_ASSIGN_OR_RETURN(Layout element, OfElements(type));
  Layout layout;
  layout.kind = Layout::Kind::kSequence;
  layout.size = sizeof(hvl_t);
  layout.parts.push_back(std::move(element));
  return layout;
}

size_t BytesOf(const Layout& layout) { return layout.size * layout.count; }

}  // namespace

absl::StatusOr<Layout> LayoutOf(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_REFERENCE:
      return OfReference(type);
    case H5T_COMPOUND:
      return OfCompound(type);
    case H5T_ARRAY:
      return OfArray(type);
    case H5T_VLEN:
      return OfSequence(type);
    default:
      return absl::InternalError("look at a type: it has references where none can be");
  }
}

absl::Status ForEachReference(const Layout& layout, char* bytes,
                              absl::FunctionRef<absl::Status(ReferenceForm, char*)> visit) {
  char* at = bytes + layout.offset;
  for (size_t i = 0; i < layout.count; ++i, at += layout.size) {
    if (layout.kind == Layout::Kind::kReference) {
      H5M_RETURN_IF_ERROR(visit(layout.form, at));
    } else if (layout.kind == Layout::Kind::kParts) {
      for (const Layout& part : layout.parts) {
        H5M_RETURN_IF_ERROR(ForEachReference(part, at, visit));
      }
    } else {
      hvl_t sequence;
      std::memcpy(&sequence, at, sizeof sequence);
      const Layout& element = layout.parts[0];
      for (size_t k = 0; k < sequence.len; ++k) {
        H5M_RETURN_IF_ERROR(ForEachReference(
            element, static_cast<char*>(sequence.p) + k * BytesOf(element), visit));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::restore
