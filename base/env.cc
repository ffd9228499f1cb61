#include "base/env.h"

#include <cstring>

#include "base/status_macros.h"

namespace h5mirror {

absl::Status ReadOrZeros(EnvFile& file, uint64_t offset, absl::Span<char> out) {
  if (out.empty()) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(size_t got, file.ReadAt(offset, out));
  std::memset(out.data() + got, 0, out.size() - got);
  return absl::OkStatus();
}

bool EnvTree::Exists(std::string_view name) { return !absl::IsNotFound(Stat(name).status()); }

}  // namespace h5mirror
