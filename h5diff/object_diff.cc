#include "h5diff/object_diff.h"

#include <H5VLnative.h>

#include <algorithm>
#include <optional>

#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/output/text.h"
#include "h5diff/value.h"

namespace h5mirror::tools {
namespace {

using hdf5::Handle;

constexpr size_t kValueTextMax = 60;
constexpr size_t kWholeValueTextMax = 64 << 10;
constexpr uint64_t kAttributeBytesMax = 256 << 20;

// An error of the source ends the comparison; what HDF5 cannot read is a finding.
absl::Status ReportUnknown(DiffContext& context, const std::string& path, const std::string& what,
                           const std::string& name, const absl::Status& status) {
  H5M_RETURN_IF_ERROR(context.pages.error());
  Change change;
  change.kind = ChangeKind::kUnknown;
  change.path = path;
  change.object = "object";
  change.what = what;
  change.name = name;
  change.note = ToStd(status.message());
  context.sink(std::move(change));
  return absl::OkStatus();
}

herr_t TakeName(hid_t, const char* name, const H5A_info_t*, void* out) {
  static_cast<std::vector<std::string>*>(out)->push_back(name);
  return 0;
}

absl::StatusOr<std::vector<std::string>> AttributeNames(hid_t object) {
  std::vector<std::string> names;
  hsize_t at = 0;
  H5M_RETURN_IF_ERROR(
      hdf5::Check(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, &at, TakeName, &names),
                  "list the attributes"));
  // The other index, if there is one, belongs to the object too.
  std::vector<std::string> ignored;
  at = 0;
  H5Aiterate2(object, H5_INDEX_CRT_ORDER, H5_ITER_NATIVE, &at, TakeName, &ignored);
  H5Eclear2(H5E_DEFAULT);
  std::sort(names.begin(), names.end());
  return names;
}

// An attribute with its value in memory.
struct Attribute {
  Handle id, file_type, type, space;
  std::optional<Values> values;  // gone before its type and space
  bool scalar = false;

  std::string Text(bool with_type) const {
    std::string text = with_type ? StrCat(TypeText(file_type.get()), " ") : "";
    if (!values) return text + "null";
    if (with_type && !scalar) StrAppend(&text, ShapeText(space.get()), " ");
    return text + (scalar ? ElementText(type.get(), values->element(0), kValueTextMax)
                          : ValuesText(type.get(), *values, kValueTextMax));
  }
};

absl::StatusOr<Attribute> ReadAttribute(hid_t object, const std::string& name) {
  Attribute attribute;
  H5M_ASSIGN_OR_RETURN(attribute.id, hdf5::Own(H5Aopen(object, name.c_str(), H5P_DEFAULT), "open"));
  H5M_ASSIGN_OR_RETURN(attribute.file_type, hdf5::Own(H5Aget_type(attribute.id.get()), "type"));
  H5M_ASSIGN_OR_RETURN(attribute.space, hdf5::Own(H5Aget_space(attribute.id.get()), "shape"));
  H5M_ASSIGN_OR_RETURN(
      attribute.type,
      hdf5::Own(H5Tget_native_type(attribute.file_type.get(), H5T_DIR_ASCEND), "type"));
  const H5S_class_t shape = H5Sget_simple_extent_type(attribute.space.get());
  if (shape == H5S_NULL) return attribute;
  attribute.scalar = shape == H5S_SCALAR;
  const auto count = static_cast<uint64_t>(
      std::max<hssize_t>(0, H5Sget_simple_extent_npoints(attribute.space.get())));
  if (count * H5Tget_size(attribute.type.get()) > kAttributeBytesMax) {
    return absl::ResourceExhaustedError("its value is larger than 256 MiB");
  }
  attribute.values.emplace(attribute.type.get(), attribute.space.get(), count);
  if (count == 0) return attribute;
  H5M_RETURN_IF_ERROR(hdf5::Check(
      H5Aread(attribute.id.get(), attribute.type.get(), attribute.values->data()), "read"));
  return attribute;
}

bool SameAttribute(const Attribute& one, const Attribute& other, const Tolerance& tolerance) {
  if (H5Tequal(one.file_type.get(), other.file_type.get()) <= 0) return false;
  if (H5Sextent_equal(one.space.get(), other.space.get()) <= 0) return false;
  if (!one.values || !other.values) return one.values.has_value() == other.values.has_value();
  for (size_t i = 0; i < one.values->count(); ++i) {
    if (!SameElement(one.type.get(), one.values->element(i), other.values->element(i), tolerance)) {
      return false;
    }
  }
  return true;
}

bool SameForm(const Attribute& one, const Attribute& other) {
  return H5Tequal(one.file_type.get(), other.file_type.get()) > 0 &&
         H5Sextent_equal(one.space.get(), other.space.get()) > 0;
}

Change AttributeChange(const std::string& path, const OpenObject& object, const std::string& name) {
  Change change;
  change.path = path;
  change.object = KindText(object.kind);
  change.what = "attribute";
  change.name = name;
  return change;
}

absl::Status CompareAttribute(DiffContext& context, const std::string& path, const OpenObject& one,
                              const OpenObject& other, const std::string& name) {
  auto before = ReadAttribute(one.id.get(), name);
  if (!before.ok()) return ReportUnknown(context, path, "attribute", name, before.status());
  auto after = ReadAttribute(other.id.get(), name);
  if (!after.ok()) return ReportUnknown(context, path, "attribute", name, after.status());
  NoteTypes(context, before->file_type.get(), after->file_type.get());
  if (SameAttribute(*before, *after, context.tolerance)) return absl::OkStatus();
  Change change = AttributeChange(path, other, name);
  const bool with_type = !SameForm(*before, *after);
  change.old_value = before->Text(with_type);
  change.new_value = after->Text(with_type);
  change.had_old = change.has_new = true;
  context.sink(std::move(change));
  return absl::OkStatus();
}

absl::Status ReportAttribute(DiffContext& context, Side side, const std::string& path,
                             const OpenObject& object, const std::string& name) {
  auto attribute = ReadAttribute(object.id.get(), name);
  if (!attribute.ok()) return ReportUnknown(context, path, "attribute", name, attribute.status());
  NoteTypes(context, attribute->file_type.get(), attribute->file_type.get());
  Change change = AttributeChange(path, object, name);
  (side == Side::kOld ? change.old_value : change.new_value) = attribute->Text(true);
  (side == Side::kOld ? change.had_old : change.has_new) = true;
  context.sink(std::move(change));
  return absl::OkStatus();
}

absl::Status CompareAttributes(DiffContext& context, const std::string& path, const OpenObject& one,
                               const OpenObject& other) {
  const auto before = AttributeNames(one.id.get());
  if (!before.ok()) return ReportUnknown(context, path, "attributes", "", before.status());
  const auto after = AttributeNames(other.id.get());
  if (!after.ok()) return ReportUnknown(context, path, "attributes", "", after.status());
  auto a = before->begin(), b = after->begin();
  while (a != before->end() || b != after->end()) {
    if (b == after->end() || (a != before->end() && *a < *b)) {
      H5M_RETURN_IF_ERROR(ReportAttribute(context, Side::kOld, path, one, *a++));
    } else if (a == before->end() || *b < *a) {
      H5M_RETURN_IF_ERROR(ReportAttribute(context, Side::kNew, path, other, *b++));
    } else {
      H5M_RETURN_IF_ERROR(CompareAttribute(context, path, one, other, *a));
      ++a, ++b;
    }
  }
  return absl::OkStatus();
}

herr_t TakeLink(hid_t, const char* name, const H5L_info2_t* info, void* out) {
  Link link;
  link.name = name;
  link.type = info->type;
  auto& [group, links] = *static_cast<std::pair<hid_t, std::vector<Link>*>*>(out);
  if (info->type == H5L_TYPE_HARD) {
    haddr_t address = 0;
    if (H5VLnative_token_to_addr(group, info->u.token, &address) < 0) return -1;
    link.address = address;
  } else {
    std::string value(info->u.val_size, '\0');
    if (!value.empty() && H5Lget_val(group, name, value.data(), value.size(), H5P_DEFAULT) < 0) {
      return -1;
    }
    const char *file = nullptr, *path = nullptr;
    if (info->type == H5L_TYPE_EXTERNAL &&
        H5Lunpack_elink_val(value.data(), value.size(), nullptr, &file, &path) >= 0) {
      link.value = StrCat(std::string_view(file), ":", std::string_view(path));
    } else {
      link.value = value.substr(0, value.find('\0'));
    }
  }
  links->push_back(std::move(link));
  return 0;
}

herr_t IgnoreLink(hid_t, const char*, const H5L_info2_t*, void*) { return 0; }

}  // namespace

const char* KindText(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kGroup:
      return "group";
    case ObjectKind::kDataset:
      return "dataset";
    case ObjectKind::kType:
      return "type";
    default:
      return "object";
  }
}

const char* LinkText(H5L_type_t type) {
  return type == H5L_TYPE_SOFT ? "soft link" : type == H5L_TYPE_EXTERNAL ? "external link" : "link";
}

absl::StatusOr<uint64_t> AddressOf(hid_t id) {
  H5O_info2_t info;
  haddr_t address = 0;
  if (H5Oget_info3(id, &info, H5O_INFO_BASIC) < 0 ||
      H5VLnative_token_to_addr(id, info.token, &address) < 0) {
    return hdf5::ErrorOf("find an object");
  }
  return address;
}

void NoteTypes(DiffContext& context, hid_t one, hid_t other) {
  const bool committed = H5Tcommitted(one) > 0;
  context.met_type = context.met_type || committed || H5Tcommitted(other) > 0;
  if (!committed || H5Tcommitted(other) <= 0) return;
  const auto before = AddressOf(one), after = AddressOf(other);
  if (before.ok() && after.ok()) context.types.emplace_back(*before, *after);
}

absl::StatusOr<OpenObject> OpenAt(hid_t file, uint64_t address, const std::string& path) {
  H5O_token_t token;
  OpenObject object;
  object.address = address;
  const std::string what = StrCat("open ", path);
  H5M_RETURN_IF_ERROR(hdf5::Check(H5VLnative_addr_to_token(file, address, &token), what));
  H5M_ASSIGN_OR_RETURN(object.id, hdf5::Own(H5Oopen_by_token(file, token), what));
  H5O_info2_t info;
  H5M_RETURN_IF_ERROR(hdf5::Check(H5Oget_info3(object.id.get(), &info, H5O_INFO_BASIC), what));
  object.link_count = info.rc;
  switch (H5Iget_type(object.id.get())) {
    case H5I_GROUP:
      object.kind = ObjectKind::kGroup;
      break;
    case H5I_DATASET:
      object.kind = ObjectKind::kDataset;
      break;
    case H5I_DATATYPE:
      object.kind = ObjectKind::kType;
      break;
    default:
      break;
  }
  return object;
}

std::string DescribeObject(const OpenObject& object) {
  switch (object.kind) {
    case ObjectKind::kDataset:
      return StrCat("dataset ", DatasetText(object.id.get()));
    case ObjectKind::kType:
      return StrCat("type ", TypeText(object.id.get()));
    default:
      return KindText(object.kind);
  }
}

absl::Status CompareObjects(DiffContext& context, const std::string& path, const OpenObject& one,
                            const OpenObject& other) {
  H5M_RETURN_IF_ERROR(CompareAttributes(context, path, one, other));
  if (other.kind == ObjectKind::kDataset) {
    const absl::Status compared = CompareDatasets(context, path, one.id.get(), other.id.get());
    if (!compared.ok()) {
      H5M_RETURN_IF_ERROR(ReportUnknown(context, path, "dataset", "", compared));
    }
  }
  if (other.kind == ObjectKind::kType && H5Tequal(one.id.get(), other.id.get()) <= 0) {
    Change change;
    change.path = path;
    change.object = "type";
    change.what = "type";
    change.old_value = TypeText(one.id.get());
    change.new_value = TypeText(other.id.get());
    change.had_old = change.has_new = true;
    context.sink(std::move(change));
  }
  return absl::OkStatus();
}

absl::Status ExplainObject(DiffContext& context, Side side, const OpenObject& object) {
  if (!context.evidence.known()) return absl::OkStatus();
  const auto names = AttributeNames(object.id.get());
  // Unreadable bytes stay unexplained: then everything is looked at.
  if (names.ok()) {
    for (const std::string& name : *names) {
      const auto attribute = ReadAttribute(object.id.get(), name);
      if (attribute.ok() && H5Tcommitted(attribute->file_type.get()) > 0) context.met_type = true;
    }
  }
  if (object.kind == ObjectKind::kDataset) {
    const Handle type(H5Dget_type(object.id.get()));
    if (H5Tcommitted(type.get()) > 0) context.met_type = true;
    ExplainDataset(context, side, object.id.get()).IgnoreError();
  }
  H5Eclear2(H5E_DEFAULT);
  return context.pages.error();
}

absl::StatusOr<std::vector<AttributeText>> ReadAttributeTexts(hid_t object) {
  H5M_ASSIGN_OR_RETURN(const std::vector<std::string> names, AttributeNames(object));
  std::vector<AttributeText> texts;
  for (const std::string& name : names) {
    const auto attribute = ReadAttribute(object, name);
    texts.push_back({name, attribute.ok() ? attribute->Text(true)
                                          : StrCat("? ", ToStd(attribute.status().message()))});
  }
  return texts;
}

absl::StatusOr<std::string> ReadAttributeValue(hid_t object, const std::string& name) {
  H5M_ASSIGN_OR_RETURN(const Attribute attribute, ReadAttribute(object, name));
  if (!attribute.values || attribute.values->count() == 0) {
    return absl::NotFoundError(StrCat(name, " has no value"));
  }
  if (attribute.values->count() > 1) {
    return ValuesText(attribute.type.get(), *attribute.values, kWholeValueTextMax);
  }
  return PlainText(attribute.type.get(), attribute.values->element(0), kWholeValueTextMax);
}

void TakeFootprint(const OpenObject& object, uint64_t base_offset, Footprint& footprint) {
  const auto names = AttributeNames(object.id.get());
  bool all_read = names.ok();
  for (size_t i = 0; all_read && i < names->size(); ++i) {
    all_read = ReadAttribute(object.id.get(), (*names)[i]).ok();
  }
  if (object.kind == ObjectKind::kGroup) all_read = ReadLinks(object.id.get()).ok() && all_read;
  if (object.kind == ObjectKind::kDataset) {
    all_read = TakeDataFootprint(object.id.get(), base_offset, footprint).ok() && all_read;
  }
  if (!all_read || object.kind == ObjectKind::kOther) footprint.SetUnbounded();
  H5Eclear2(H5E_DEFAULT);
}

absl::StatusOr<Link> ReadLink(hid_t group, const std::string& name) {
  H5L_info2_t info;
  const std::string what = StrCat("look at ", name);
  H5M_RETURN_IF_ERROR(hdf5::Check(H5Lget_info2(group, name.c_str(), &info, H5P_DEFAULT), what));
  std::vector<Link> links;
  std::pair<hid_t, std::vector<Link>*> out(group, &links);
  H5M_RETURN_IF_ERROR(hdf5::Check(TakeLink(group, name.c_str(), &info, &out), what));
  return std::move(links.front());
}

absl::StatusOr<std::vector<Link>> ReadLinks(hid_t group) {
  std::vector<Link> links;
  std::pair<hid_t, std::vector<Link>*> out(group, &links);
  hsize_t at = 0;
  H5M_RETURN_IF_ERROR(hdf5::Check(
      H5Literate2(group, H5_INDEX_NAME, H5_ITER_NATIVE, &at, TakeLink, &out), "list the links"));
  // The other index, if there is one, belongs to the group too.
  at = 0;
  H5Literate2(group, H5_INDEX_CRT_ORDER, H5_ITER_NATIVE, &at, IgnoreLink, nullptr);
  H5Eclear2(H5E_DEFAULT);
  std::sort(links.begin(), links.end(),
            [](const Link& a, const Link& b) { return a.name < b.name; });
  return links;
}

}  // namespace h5mirror::tools
