#include "h5restore/maps.h"

#include "base/status_macros.h"
#include "base/strings.h"
#include "h5restore/paths.h"

namespace h5mirror::restore {
namespace {

using hdf5::Check;
using hdf5::Handle;
using hdf5::Own;

Lead To(Handle object) {
  Lead lead;
  lead.to = Lead::To::kObject;
  lead.object = std::move(object);
  return lead;
}

Lead Simply(Lead::To to) {
  Lead lead;
  lead.to = to;
  return lead;
}

bool CanTake(const Referenced& from, const Handle& object) {
  return object.valid() && (from.region < 0 || Fits(from.region, object.get()));
}

// What HDF5 frees, found without freeing it.
class Removal {
 public:
  explicit Removal(std::string said) : said_(std::move(said)) {}

  absl::Status Unlink(hid_t object, const std::string& path) {
    H5M_ASSIGN_OR_RETURN(const H5O_info2_t info, InfoOf(object, said_));
    const std::string token = TokenOf(info);
    const unsigned left = --links_.try_emplace(token, info.rc).first->second;
    if (left > 0) return absl::OkStatus();
    gone_.emplace(token, path);
    return info.type == H5O_TYPE_GROUP ? UnlinkMembers(object, path) : absl::OkStatus();
  }
  absl::flat_hash_map<std::string, std::string> Take() && { return std::move(gone_); }

 private:
  static herr_t AddHardLink(hid_t, const char* name, const H5L_info2_t* info, void* names) {
    if (info->type == H5L_TYPE_HARD) {
      static_cast<std::vector<std::string>*>(names)->emplace_back(name);
    }
    return 0;
  }

  absl::Status UnlinkMembers(hid_t group, const std::string& path) {
    std::vector<std::string> names;
    hsize_t at = 0;
    H5M_RETURN_IF_ERROR(
        Check(H5Literate2(group, H5_INDEX_NAME, H5_ITER_NATIVE, &at, AddHardLink, &names), said_));
    for (const std::string& name : names) {
      H5M_ASSIGN_OR_RETURN(const Handle member,
                           Own(H5Oopen(group, name.c_str(), H5P_DEFAULT), said_));
      H5M_RETURN_IF_ERROR(Unlink(member.get(), path == "." ? name : Below(path, name)));
    }
    return absl::OkStatus();
  }

  const std::string said_;
  absl::flat_hash_map<std::string, unsigned> links_;  // that are left, by token
  absl::flat_hash_map<std::string, std::string> gone_;
};

}  // namespace

absl::StatusOr<std::string> PathsOfFile::Find(const std::string& token) {
  if (!survey_) {
    H5M_ASSIGN_OR_RETURN(survey_, TakeSurvey(file_, "/", Depth::kNames));
  }
  const auto found = survey_->paths.find(token);
  return found == survey_->paths.end() ? std::string() : Below("/", found->second);
}

absl::StatusOr<Lead> CopyMap::Inside(const std::string& below) const {
  if (dry_run_) return Simply(Lead::To::kSame);
  const std::string path = Below(copy_path_, below);
  H5M_ASSIGN_OR_RETURN(Handle object, Own(H5Oopen(target_, path.c_str(), H5P_DEFAULT), path));
  return To(std::move(object));
}

absl::StatusOr<Lead> CopyMap::Find(const Referenced& from) {
  if (from.object < 0) return Simply(Lead::To::kNowhere);  // It led nowhere there either.
  const std::string token = TokenOf(from.info);
  if (const auto inside = inside_.find(token); inside != inside_.end()) {
    return Inside(inside->second);
  }
  H5M_ASSIGN_OR_RETURN(const std::string path, source_.Find(token));
  if (path.empty()) return Lost("an object without a name");
  Handle object = OpenHere(target_, path, from.kind);
  return CanTake(from, object) ? To(std::move(object)) : Lost(path);
}

Lead CopyMap::Lost(std::string leads_to) {
  ++lost_[{object_, std::move(leads_to)}];
  return Simply(Lead::To::kNowhere);
}

std::vector<tools::LostReferences> CopyMap::lost() const {
  std::vector<tools::LostReferences> all;
  for (const auto& [key, count] : lost_) all.push_back({key.first, key.second, count});
  return all;
}

absl::StatusOr<Lead> ReplacedMap::Find(const Referenced& from) {
  if (from.object < 0) return Simply(Lead::To::kSame);
  const auto gone = gone_.find(TokenOf(from.info));
  if (gone == gone_.end()) return Simply(Lead::To::kSame);
  Handle object = OpenHere(target_, Below(new_path_, gone->second), from.kind);
  return CanTake(from, object) ? To(std::move(object)) : Simply(Lead::To::kSame);
}

absl::StatusOr<absl::flat_hash_map<std::string, std::string>> GoneWith(hid_t object,
                                                                       const std::string& said) {
  Removal removal(said);
  H5M_RETURN_IF_ERROR(removal.Unlink(object, "."));
  return std::move(removal).Take();
}

}  // namespace h5mirror::restore
