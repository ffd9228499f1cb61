#include "h5restore/paths.h"

#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5restore/survey.h"

namespace h5mirror::restore {

using hdf5::Check;
using hdf5::Handle;
using hdf5::Own;

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

namespace {

bool IsExternalLink(hid_t file, const std::string& path) {
  H5L_info2_t link{};
  return path != "/" && H5Lget_info2(file, path.c_str(), &link, H5P_DEFAULT) >= 0 &&
         link.type == H5L_TYPE_EXTERNAL;
}

Absence AbsenceOf(hid_t file, const std::string& path, H5I_type_t kind, const Handle& object) {
  if (!object.valid()) {
    return IsExternalLink(file, path) ? Absence::kOtherFile : Absence::kMissing;
  }
  const auto theirs = InfoOf(object.get(), path);
  const auto ours = InfoOf(file, "/");
  if (!theirs.ok() || !ours.ok()) return Absence::kMissing;
  if (theirs->fileno != ours->fileno) return Absence::kOtherFile;
  const bool fits = kind == H5I_BADID || H5Iget_type(object.get()) == kind;
  return fits ? Absence::kNone : Absence::kOtherKind;
}

}  // namespace

Handle OpenHere(hid_t file, const std::string& path, H5I_type_t kind, Absence* why) {
  Handle object(H5Oopen(file, path.c_str(), H5P_DEFAULT));
  const Absence absence = AbsenceOf(file, path, kind, object);
  H5Eclear2(H5E_DEFAULT);
  if (why != nullptr) *why = absence;
  if (absence != Absence::kNone) return {};
  return object;
}

absl::StatusOr<PathState> LookAtPath(hid_t file, const std::string& path, const std::string& said) {
  PathState state;
  if (path == "/") {
    state.is_there = true;
    return state;
  }
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
    const std::string parent = path.substr(0, end);
    const bool is_missing =
        !state.makes.empty() || H5Lexists(file, parent.c_str(), H5P_DEFAULT) <= 0;
    if (is_missing) {
      state.makes.push_back(parent);
    } else if (!OpenHere(file, parent, H5I_GROUP).valid()) {
      state.no_group = parent;
      return state;
    }
  }
  if (!state.makes.empty()) return state;
  const htri_t exists = H5Lexists(file, path.c_str(), H5P_DEFAULT);
  H5M_RETURN_IF_ERROR(Check(exists < 0 ? -1 : 0, StrCat(said, ": look for ", path)));
  state.is_there = exists > 0;
  if (!state.is_there) return state;
  H5M_RETURN_IF_ERROR(Check(H5Lget_info2(file, path.c_str(), &state.link, H5P_DEFAULT),
                            StrCat(said, ": look at ", path)));
  return state;
}

absl::StatusOr<HardLink> LinkAt(hid_t file, const std::string& path) {
  const std::string parent = ParentOf(path);
  H5M_ASSIGN_OR_RETURN(const Handle group, Own(H5Oopen(file, parent.c_str(), H5P_DEFAULT), parent));
  H5M_ASSIGN_OR_RETURN(const H5O_info2_t info, InfoOf(group.get(), parent));
  return HardLink{TokenOf(info), path.substr(path.rfind('/') + 1)};
}

std::string KindOfObject(hid_t object) {
  switch (H5Iget_type(object)) {
    case H5I_GROUP:
      return "group";
    case H5I_DATASET:
      return "dataset";
    default:
      return "datatype";
  }
}

bool IsAtOrBelow(const std::string& path, const std::string& top) {
  return path == top || absl::StartsWith(path, StrCat(top, "/"));
}

absl::StatusOr<Handle> LinkProperties(H5T_cset_t character_set) {
  constexpr char kWhat[] = "make a property list for links";
  H5M_ASSIGN_OR_RETURN(Handle list, Own(H5Pcreate(H5P_LINK_CREATE), kWhat));
  H5M_RETURN_IF_ERROR(Check(H5Pset_create_intermediate_group(list.get(), 1), kWhat));
  H5M_RETURN_IF_ERROR(Check(H5Pset_char_encoding(list.get(), character_set), kWhat));
  return list;
}

}  // namespace h5mirror::restore
