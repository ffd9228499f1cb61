#include "base/name_service.h"

#include <string.h>

#include "base/strings.h"

namespace h5mirror {

absl::Status NameServiceFailed(std::string_view what, int error) {
  return absl::UnavailableError(
      StrCat("the name service failed for ", what, ": ", strerror(error), "; try again"));
}

}  // namespace h5mirror
