#include "h5restore/survey.h"

#include <algorithm>
#include <cstring>

#include "absl/container/flat_hash_set.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5restore/filters.h"

namespace h5mirror::restore {
namespace {

using hdf5::Check;
using hdf5::Handle;
using hdf5::Own;

// HDF5 calls back through C.
struct Visit {
  Survey survey;
  absl::flat_hash_set<std::string> types;
  absl::flat_hash_map<std::string, uint64_t> links;  // hard ones below, by token
  std::vector<uint64_t> counts;                      // of links anywhere, one an object
  std::string what;
  absl::Status status;
};

bool HasReferences(hid_t type) { return H5Tdetect_class(type, H5T_REFERENCE) > 0; }

absl::Status NoteType(hid_t type, Visit& visit) {
  if (H5Tcommitted(type) <= 0) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const H5O_info2_t info, InfoOf(type, "a committed type"));
  visit.types.insert(TokenOf(info));
  return absl::OkStatus();
}

herr_t AddName(hid_t, const char* name, const H5A_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

absl::Status LookAtAttributes(hid_t object, const std::string& what, Visit& visit,
                              Surveyed* found) {
  std::vector<std::string> names;
  hsize_t at = 0;
  H5M_RETURN_IF_ERROR(
      Check(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, &at, AddName, &names), what));
  for (std::string& name : names) {
    const std::string said = StrCat(what, ", attribute ", name);
    H5M_ASSIGN_OR_RETURN(const Handle attribute,
                         Own(H5Aopen(object, name.c_str(), H5P_DEFAULT), said));
    H5M_ASSIGN_OR_RETURN(const Handle type, Own(H5Aget_type(attribute.get()), said));
    H5M_RETURN_IF_ERROR(NoteType(type.get(), visit));
    if (HasReferences(type.get())) found->attributes_with_references.push_back(std::move(name));
  }
  return absl::OkStatus();
}

absl::Status LookAtData(hid_t dataset, const std::string& what, Visit& visit, Surveyed* found) {
  H5M_ASSIGN_OR_RETURN(const Handle type, Own(H5Dget_type(dataset), what));
  H5M_RETURN_IF_ERROR(NoteType(type.get(), visit));
  const hsize_t bytes = H5Dget_storage_size(dataset);
  visit.survey.bytes += bytes;
  found->bytes = bytes;
  found->data_has_references = bytes > 0 && HasReferences(type.get());
  if (bytes == 0 || !(found->data_has_references || HasVariableLength(type.get()))) {
    return absl::OkStatus();
  }
  H5M_ASSIGN_OR_RETURN(found->missing_filter, MissingFilter(dataset, what));
  return absl::OkStatus();
}

absl::Status LookAt(hid_t root, const char* name, const H5O_info2_t& info, Visit& visit) {
  Surveyed found;
  found.path = name;
  found.type = info.type;
  found.token = TokenOf(info);
  visit.survey.paths.emplace(found.token, found.path);
  const std::string what = Below(visit.what, name);
  H5M_ASSIGN_OR_RETURN(const Handle object, Own(H5Oopen(root, name, H5P_DEFAULT), what));
  visit.survey.attributes += info.num_attrs;
  H5M_RETURN_IF_ERROR(LookAtAttributes(object.get(), what, visit, &found));
  if (info.type == H5O_TYPE_DATASET) {
    H5M_RETURN_IF_ERROR(LookAtData(object.get(), what, visit, &found));
  }
  visit.survey.objects.push_back(std::move(found));
  visit.counts.push_back(info.rc);
  return absl::OkStatus();
}

herr_t OnObject(hid_t root, const char* name, const H5O_info2_t* info, void* context) {
  Visit& visit = *static_cast<Visit*>(context);
  visit.status = LookAt(root, name, *info, visit);
  return visit.status.ok() ? 0 : -1;
}

herr_t OnLink(hid_t, const char*, const H5L_info2_t* info, void* context) {
  Visit& visit = *static_cast<Visit*>(context);
  if (info->type == H5L_TYPE_HARD) {
    ++visit.links[TokenOf(info->u.token)];
  } else {
    ++visit.survey.links;
  }
  return 0;
}

// To the object itself one link leads from outside.
void NoteNamesOutside(Visit& visit) {
  std::vector<Surveyed>& objects = visit.survey.objects;
  for (size_t i = 0; i < objects.size(); ++i) {
    const auto inside = visit.links.find(objects[i].token);
    const uint64_t known = (inside == visit.links.end() ? 0 : inside->second) + (i == 0 ? 1 : 0);
    objects[i].has_names_outside = visit.counts[i] > known;
  }
}

}  // namespace

std::string TokenOf(const H5O_info2_t& info) { return TokenOf(info.token); }

std::string TokenOf(const H5O_token_t& token) {
  return {reinterpret_cast<const char*>(token.__data), sizeof token.__data};
}

absl::StatusOr<Handle> OpenToken(hid_t file, const std::string& token, std::string_view what) {
  H5O_token_t bytes{};
  std::memcpy(bytes.__data, token.data(), std::min(token.size(), sizeof bytes.__data));
  return Own(H5Oopen_by_token(file, bytes), what);
}

bool Survey::has_names_outside() const {
  return std::any_of(objects.begin(), objects.end(),
                     [](const Surveyed& each) { return each.has_names_outside; });
}

absl::StatusOr<H5O_info2_t> InfoOf(hid_t object, std::string_view what) {
  H5O_info2_t info{};
  H5M_RETURN_IF_ERROR(Check(H5Oget_info3(object, &info, H5O_INFO_BASIC), what));
  return info;
}

absl::StatusOr<Survey> TakeSurvey(hid_t object, std::string_view what) {
  Visit visit;
  visit.what = what;
  const herr_t visited = H5Ovisit3(object, H5_INDEX_NAME, H5_ITER_NATIVE, OnObject, &visit,
                                   H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS);
  H5M_RETURN_IF_ERROR(visit.status);
  H5M_RETURN_IF_ERROR(Check(visited, what));
  const H5I_type_t kind = H5Iget_type(object);
  if (kind == H5I_GROUP || kind == H5I_FILE) {
    H5M_RETURN_IF_ERROR(
        Check(H5Lvisit2(object, H5_INDEX_NAME, H5_ITER_NATIVE, OnLink, &visit), what));
  }
  NoteNamesOutside(visit);
  for (const std::string& token : visit.types) {
    if (!visit.survey.paths.contains(token)) visit.survey.types.push_back(token);
  }
  return std::move(visit.survey);
}

std::string Below(const std::string& path, std::string_view below) {
  if (below == ".") return path;
  return StrCat(path, path.ends_with('/') ? "" : "/", below);
}

}  // namespace h5mirror::restore
