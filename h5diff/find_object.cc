#include "h5diff/find_object.h"

#include <deque>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::tools {
namespace {

// As HDF5's own (H5L_NUM_LINKS).
constexpr int kSoftLinksMax = 16;

std::deque<std::string> PartsOf(const std::string& path) {
  std::deque<std::string> parts;
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (!part.empty() && part != ".") parts.emplace_back(part);
  }
  return parts;
}

absl::StatusOr<OpenObject> OpenRoot(hid_t file) {
  H5M_ASSIGN_OR_RETURN(const hdf5::Handle root,
                       hdf5::Own(H5Oopen(file, "/", H5P_DEFAULT), "open the root group"));
  H5M_ASSIGN_OR_RETURN(const uint64_t address, AddressOf(root.get()));
  return OpenAt(file, address, "/");
}

// Unset: the group has no link of this name.
absl::StatusOr<std::optional<Link>> FindLink(const OpenObject& group, const std::string& name) {
  const std::string what = StrCat("look for ", name);
  const htri_t exists = H5Lexists(group.id.get(), name.c_str(), H5P_DEFAULT);
  H5M_RETURN_IF_ERROR(hdf5::Check(exists < 0 ? -1 : 0, what));
  if (exists == 0) return std::nullopt;
  H5M_ASSIGN_OR_RETURN(Link link, ReadLink(group.id.get(), name));
  return link;
}

}  // namespace

std::string FoundObject::Text() const { return object ? DescribeObject(*object) : link; }

absl::StatusOr<FoundObject> FindObject(hid_t file, const std::string& path) {
  H5M_ASSIGN_OR_RETURN(OpenObject at, OpenRoot(file));
  std::deque<std::string> left = PartsOf(path);
  FoundObject dangling;  // the result if the last link of the path leads nowhere
  for (int soft_links = 0; !left.empty();) {
    if (at.kind != ObjectKind::kGroup) return dangling;
    const std::string name = std::move(left.front());
    left.pop_front();
    H5M_ASSIGN_OR_RETURN(const std::optional<Link> link, FindLink(at, name));
    if (!link) return dangling;
    if (link->type == H5L_TYPE_HARD) {
      H5M_ASSIGN_OR_RETURN(at, OpenAt(file, link->address, path));
      continue;
    }
    const bool is_last = left.empty() && dangling.link.empty();
    if (is_last) dangling.link = StrCat(LinkText(link->type), " to ", link->value);
    if (link->type != H5L_TYPE_SOFT || ++soft_links > kSoftLinksMax) return dangling;
    if (link->value.starts_with('/')) {
      H5M_ASSIGN_OR_RETURN(at, OpenRoot(file));
    }
    std::deque<std::string> parts = PartsOf(link->value);
    left.insert(left.begin(), parts.begin(), parts.end());
  }
  FoundObject found;
  found.object = std::move(at);
  return found;
}

}  // namespace h5mirror::tools
