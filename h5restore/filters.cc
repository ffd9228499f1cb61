#include "h5restore/filters.h"

#include <array>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::restore {
namespace {

using hdf5::Handle;
using hdf5::Own;

bool CanRun(H5Z_filter_t filter) {
  constexpr unsigned kBothWays =
      H5Z_FILTER_CONFIG_ENCODE_ENABLED | H5Z_FILTER_CONFIG_DECODE_ENABLED;
  unsigned config = 0;
  const bool can = H5Zfilter_avail(filter) > 0 && H5Zget_filter_info(filter, &config) >= 0 &&
                   (config & kBothWays) == kBothWays;
  H5Eclear2(H5E_DEFAULT);
  return can;
}

}  // namespace

bool HasVariableLength(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_VLEN:
      return true;
    case H5T_STRING:
      return H5Tis_variable_str(type) > 0;
    case H5T_ARRAY:
      return HasVariableLength(Handle(H5Tget_super(type)).get());
    case H5T_COMPOUND:
      for (int i = 0; i < H5Tget_nmembers(type); ++i) {
        const Handle member(H5Tget_member_type(type, static_cast<unsigned>(i)));
        if (HasVariableLength(member.get())) return true;
      }
      return false;
    default:
      return false;
  }
}

absl::StatusOr<std::string> MissingFilter(hid_t dataset, std::string_view what) {
  H5M_ASSIGN_OR_RETURN(const Handle how, Own(H5Dget_create_plist(dataset), what));
  if (H5Pget_layout(how.get()) != H5D_CHUNKED) return std::string();
  const int count = H5Pget_nfilters(how.get());
  for (int i = 0; i < count; ++i) {
    std::array<char, 64> name{};
    unsigned flags = 0;
    size_t values = 0;
    const H5Z_filter_t filter = H5Pget_filter2(how.get(), static_cast<unsigned>(i), &flags, &values,
                                               nullptr, name.size() - 1, name.data(), nullptr);
    if (filter < 0) return hdf5::ErrorOf(what);
    if (CanRun(filter)) continue;
    const std::string number = StrCat(static_cast<int>(filter));
    return name[0] == '\0' ? number : StrCat(name.data(), " (", number, ")");
  }
  return std::string();
}

absl::Status FilterIsMissing(std::string_view dataset, std::string_view filter) {
  return absl::FailedPreconditionError(
      StrCat(dataset, " is packed by the filter ", filter,
             ", which HDF5 cannot load, and it has values that must be unpacked; nothing was "
             "changed: set HDF5_PLUGIN_PATH to the directory of that filter's plugin"));
}

}  // namespace h5mirror::restore
