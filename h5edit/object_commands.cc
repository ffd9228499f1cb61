// Commands for whole objects: groups, datasets, links.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "h5edit/executor.h"
#include "h5edit/h5_types.h"

namespace h5mirror::edit {

using hdf5::Check;
using hdf5::Handle;
using hdf5::Own;

namespace {

// Without what means nothing to HDF5: "/a//./b/" is "/a/b".
std::string Plain(const std::string& path) {
  std::string plain;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (!part.empty() && part != ".") plain += "/" + part;
    begin = end + 1;
  }
  return plain.empty() ? "/" : plain;
}

std::string ParentOf(const std::string& path) {
  const std::string plain = Plain(path);
  const size_t slash = plain.rfind('/');
  return slash == 0 ? "/" : plain.substr(0, slash);
}

// Of a layout message: 65535 bytes, rounded down to whole words, less those before the data. In old
// headers HDF5 (1.14.5) writes a little more, which it cannot read.
constexpr uint64_t kCompactMax = 65'524;
constexpr uint64_t kFillValueMax = 65'520;  // Alike.

// To make a link at the path.
absl::StatusOr<Handle> LinkList(const std::string& path) {
  const std::string plain = Plain(path);
  return NameList(H5P_LINK_CREATE, plain.substr(plain.rfind('/') + 1));
}

// Looks for an object among those that hard links lead to.
struct Search {
  hid_t file;
  H5O_token_t wanted;
};

herr_t FindObject(hid_t, const char*, const H5O_info2_t* found, void* data) {
  const Search& search = *static_cast<const Search*>(data);
  int order = 0;
  if (H5Otoken_cmp(search.file, &found->token, &search.wanted, &order) < 0) return -1;
  return order == 0 ? 1 : 0;
}

}  // namespace

absl::StatusOr<Handle> Executor::DatasetList(const Definition& definition, hid_t type) {
  constexpr char kWhat[] = "make a property list";
  H5M_ASSIGN_OR_RETURN(Handle list, Own(H5Pcreate(H5P_DATASET_CREATE), kWhat));
  const LayoutSpec& layout = *definition.layout;
  if (layout.kind == LayoutSpec::Kind::kCompact)
    H5M_RETURN_IF_ERROR(Check(H5Pset_layout(list.get(), H5D_COMPACT), kWhat));
  if (layout.kind == LayoutSpec::Kind::kChunked) {
    const std::vector<hsize_t> chunk(layout.chunk.begin(), layout.chunk.end());
    uint64_t count = 1;  // What the script alone shows was checked: it does not overflow.
    for (const hsize_t size : chunk) count *= size;
    if (IsLargeChunk(count, H5Tget_size(type))) return Fail(layout.chunk_at, kLargeChunk);
    H5M_RETURN_IF_ERROR(
        Check(H5Pset_chunk(list.get(), static_cast<int>(chunk.size()), chunk.data()), kWhat));
  }
  for (const LayoutSpec::Filter& filter : layout.filters) {
    const herr_t set = filter.kind == LayoutSpec::Filter::Kind::kShuffle
                           ? H5Pset_shuffle(list.get())
                       : filter.kind == LayoutSpec::Filter::Kind::kDeflate
                           ? H5Pset_deflate(list.get(), filter.level)
                           : H5Pset_fletcher32(list.get());
    H5M_RETURN_IF_ERROR(Check(set, kWhat));
  }
  if (!definition.fill_value.has_value()) return list;
  ValueList fill;
  fill.values = {*definition.fill_value};
  const size_t fill_at = definition.fill_value->at;
  H5M_ASSIGN_OR_RETURN(const ElementType element, ElementTypeOf(type));
  if (PointsElsewhere(element)) return Fail(fill_at, kNoFillValue);
  if (H5Tget_size(type) > kFillValueMax)
    return Fail(fill_at, StrCat("a fill value has at most ", kFillValueMax, " bytes"));
  H5M_ASSIGN_OR_RETURN(const MemoryValues value, ValuesOf(type, fill, 1, fill_at));
  H5M_RETURN_IF_ERROR(Check(H5Pset_fill_value(list.get(), value.type(), value.data()), kWhat));
  return list;
}

// A virtual dataset, and one of external files, has its values elsewhere: HDF5 would write them
// there at once, whatever becomes of the file.
absl::Status Executor::CheckHoldsItsValues(hid_t dataset, const Target& target) {
  const std::string what = StrCat("look at ", target.object);
  H5M_ASSIGN_OR_RETURN(const Handle list, Own(H5Dget_create_plist(dataset), what));
  const int file_count = H5Pget_external_count(list.get());
  const H5D_layout_t layout = H5Pget_layout(list.get());
  if (file_count < 0 || layout < 0) return Fail(target.object_at, hdf5::ErrorOf(what));
  if (file_count == 0 && layout != H5D_VIRTUAL) return absl::OkStatus();
  return Fail(target.object_at,
              StrCat(target.object, " has its values in other ",
                     file_count > 0 ? "files (EXTERNAL), which h5edit does not change"
                                    : "datasets (VIRTUAL): modify those"));
}

// Where a new link goes: its group is there, and nothing else has the name.
absl::Status Executor::CheckNewLink(const Target& target) {
  if (Plain(target.object) == "/")
    return Fail(target.object_at, absl::AlreadyExistsError("the root group exists already"));
  const std::string plain = Plain(target.object);
  if (plain.size() - plain.rfind('/') - 1 > kLinkNameMax)
    return Fail(target.object_at, StrCat("a name in a group has at most ", kLinkNameMax, " bytes"));
  H5M_ASSIGN_OR_RETURN(const Handle parent, Open(ParentOf(target.object), target.object_at));
  if (H5Iget_type(parent.get()) != H5I_GROUP)
    return Fail(target.object_at, StrCat(ParentOf(target.object), " is not a group"));
  H5M_RETURN_IF_ERROR(CheckIsOurs(parent.get(), ParentOf(target.object), target.object_at));
  const htri_t exists = H5Lexists(file_, target.object.c_str(), access_.get());
  if (exists < 0) return Fail(target.object_at, hdf5::ErrorOf(target.object));
  return exists == 0 ? absl::OkStatus()
                     : Fail(target.object_at,
                            absl::AlreadyExistsError(StrCat(target.object, " exists already")));
}

// Where a link is that is moved or removed.
absl::Status Executor::CheckLink(const Target& target) {
  if (Plain(target.object) == "/")
    return Fail(target.object_at, "the root group can neither be removed nor moved");
  H5M_ASSIGN_OR_RETURN(const Handle parent, Open(ParentOf(target.object), target.object_at));
  H5M_RETURN_IF_ERROR(CheckIsOurs(parent.get(), ParentOf(target.object), target.object_at));
  const htri_t exists = H5Iget_type(parent.get()) == H5I_GROUP
                            ? H5Lexists(file_, target.object.c_str(), access_.get())
                            : 0;
  if (exists > 0) return absl::OkStatus();
  H5Eclear2(H5E_DEFAULT);
  return Fail(target.object_at, absl::NotFoundError(StrCat("no such object ", target.object)));
}

absl::Status Executor::CreateGroup(const Statement& statement) {
  const std::string& path = statement.target.object;
  H5M_RETURN_IF_ERROR(CheckNewLink(statement.target));
  H5M_ASSIGN_OR_RETURN(const Handle named, LinkList(path));
  return Own(H5Gcreate2(file_, path.c_str(), named.get(), H5P_DEFAULT, H5P_DEFAULT),
             StrCat("create group ", path))
      .status();
}

absl::Status Executor::CreateDataset(const Statement& statement) {
  const std::string& path = statement.target.object;
  const Definition& definition = statement.definition;
  const std::string what = StrCat("create dataset ", path);
  H5M_RETURN_IF_ERROR(CheckNewLink(statement.target));
  const size_t type_at = definition.type.at;
  Scene scene = TheScene();
  auto type = MakeType(definition.type, scene);
  if (!type.ok()) return Fail(scene.blame.value_or(type_at), type.status());
  H5M_ASSIGN_OR_RETURN(const Handle space, MakeSpace(definition.space));
  if (definition.layout->kind == LayoutSpec::Kind::kCompact) {
    const auto count = static_cast<uint64_t>(H5Sget_simple_extent_npoints(space.get()));
    if (count > kCompactMax / H5Tget_size(type->get()))
      return Fail(definition.layout->at,
                  StrCat("a compact dataset has at most ", kCompactMax, " bytes"));
  }
  H5M_ASSIGN_OR_RETURN(const Handle list, DatasetList(definition, type->get()));
  const bool has_values = definition.values.has_value() && !definition.values->values.empty();
  std::optional<MemoryValues> values;
  if (has_values) {
    const auto count = static_cast<uint64_t>(H5Sget_simple_extent_npoints(space.get()));
    H5M_ASSIGN_OR_RETURN(values, ValuesOf(type->get(), *definition.values, count, type_at));
  }
  H5M_ASSIGN_OR_RETURN(const Handle named, LinkList(path));
  Handle dataset(H5Dcreate2(file_, path.c_str(), type->get(), space.get(), named.get(), list.get(),
                            H5P_DEFAULT));
  if (!dataset.valid()) return Fail(type_at, hdf5::ErrorOf(what));
  if (!has_values) return absl::OkStatus();
  const absl::Status written = Check(
      H5Dwrite(dataset.get(), values->type(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values->data()), what);
  if (written.ok()) return written;
  dataset = Handle();
  H5Ldelete(file_, path.c_str(), H5P_DEFAULT);
  H5Eclear2(H5E_DEFAULT);
  return Fail(type_at, written);
}

absl::Status Executor::ModifyDataset(const Statement& statement) {
  const Target& target = statement.target;
  const std::string what = StrCat("modify dataset ", target.object);
  H5M_ASSIGN_OR_RETURN(const Handle dataset, OpenTarget(target, KindRule::kAny));
  H5M_RETURN_IF_ERROR(CheckIsOurs(dataset.get(), target.object, target.object_at));
  H5M_RETURN_IF_ERROR(CheckHoldsItsValues(dataset.get(), target));
  H5M_ASSIGN_OR_RETURN(const Handle type, Own(H5Dget_type(dataset.get()), what));
  H5M_ASSIGN_OR_RETURN(const Handle space, Own(H5Dget_space(dataset.get()), what));
  const auto rank = static_cast<size_t>(std::max(H5Sget_simple_extent_ndims(space.get()), 0));
  std::vector<hsize_t> dims(rank), start(rank), count(rank);
  H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr);
  if (!statement.ranges.empty() && statement.ranges.size() != rank) {
    return Fail(statement.ranges[0].at, StrCat(target.object, " has ", rank, " dimensions"));
  }
  auto total =
      static_cast<uint64_t>(std::max<hssize_t>(H5Sget_simple_extent_npoints(space.get()), 0));
  if (!statement.ranges.empty()) {
    total = 1;
    for (size_t d = 0; d < rank; ++d) {
      const IndexRange& range = statement.ranges[d];
      if (range.start >= dims[d] || range.count > dims[d] - range.start) {
        return Fail(range.at, StrCat("beyond ", target.object, ", whose dimension ", d + 1,
                                     " has the size ", dims[d]));
      }
      start[d] = range.start;
      count[d] = range.count;
      total *= range.count;
    }
    H5M_RETURN_IF_ERROR(Check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(),
                                                  nullptr, count.data(), nullptr),
                              what));
  }
  H5M_ASSIGN_OR_RETURN(const MemoryValues values,
                       ValuesOf(type.get(), statement.values, total, target.object_at));
  if (total == 0) return absl::OkStatus();
  const hsize_t flat = total;
  H5M_ASSIGN_OR_RETURN(const Handle memory, Own(H5Screate_simple(1, &flat, nullptr), what));
  const absl::Status written = Check(
      H5Dwrite(dataset.get(), values.type(), memory.get(), space.get(), H5P_DEFAULT, values.data()),
      what);
  return written.ok() ? written : Fail(target.object_at, written);
}

absl::Status Executor::DeleteObject(const Statement& statement) {
  const Target& target = statement.target;
  const absl::Status there = CheckLink(target);
  if (statement.if_exists && absl::IsNotFound(there)) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(there);
  return Check(H5Ldelete(file_, target.object.c_str(), access_.get()),
               StrCat("delete ", target.object));
}

// HDF5 moves a group below itself, by whatever path or link that is, and then nothing leads to it.
absl::Status Executor::CheckIsOutside(const Target& from, const Target& to) {
  const std::string what = StrCat("move ", from.object);
  H5L_info2_t link;
  H5M_RETURN_IF_ERROR(Check(H5Lget_info2(file_, from.object.c_str(), &link, access_.get()), what));
  if (link.type != H5L_TYPE_HARD) return absl::OkStatus();  // The link goes, its object stays.
  H5M_ASSIGN_OR_RETURN(const Handle moved, Open(from.object, from.object_at));
  if (H5Iget_type(moved.get()) != H5I_GROUP) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const Handle parent, Open(ParentOf(to.object), to.object_at));
  H5O_info2_t info;
  H5M_RETURN_IF_ERROR(Check(H5Oget_info3(parent.get(), &info, H5O_INFO_BASIC), what));
  Search search{file_, info.token};
  const herr_t found =
      H5Ovisit3(moved.get(), H5_INDEX_NAME, H5_ITER_NATIVE, FindObject, &search, H5O_INFO_BASIC);
  if (found < 0) return Fail(from.object_at, hdf5::ErrorOf(what));
  return found == 0 ? absl::OkStatus()
                    : Fail(to.object_at, StrCat(from.object, " cannot be moved into itself"));
}

absl::Status Executor::MoveObject(const Statement& statement) {
  const Target &from = statement.target, &to = statement.destination;
  H5M_RETURN_IF_ERROR(CheckLink(from));
  H5M_RETURN_IF_ERROR(CheckNewLink(to));
  H5M_RETURN_IF_ERROR(CheckIsOutside(from, to));
  H5M_ASSIGN_OR_RETURN(const Handle named, LinkList(to.object));
  return Check(
      H5Lmove(file_, from.object.c_str(), file_, to.object.c_str(), named.get(), access_.get()),
      StrCat("move ", from.object));
}

absl::Status Executor::Link(const Statement& statement) {
  const Target& to = statement.destination;
  H5M_RETURN_IF_ERROR(CheckNewLink(to));
  const std::string what = StrCat("link ", to.object);
  H5M_ASSIGN_OR_RETURN(const Handle named, LinkList(to.object));
  if (statement.verb == Verb::kLinkSoft) {
    return Check(H5Lcreate_soft(statement.link_value.c_str(), file_, to.object.c_str(), named.get(),
                                access_.get()),
                 what);
  }
  if (statement.verb == Verb::kLinkExternal) {
    return Check(H5Lcreate_external(statement.link_file.c_str(), statement.link_value.c_str(),
                                    file_, to.object.c_str(), named.get(), access_.get()),
                 what);
  }
  H5M_ASSIGN_OR_RETURN(const Handle object,
                       Open(statement.target.object, statement.target.object_at));
  H5M_RETURN_IF_ERROR(
      CheckIsOurs(object.get(), statement.target.object, statement.target.object_at));
  return Check(H5Olink(object.get(), file_, to.object.c_str(), named.get(), access_.get()), what);
}

}  // namespace h5mirror::edit
