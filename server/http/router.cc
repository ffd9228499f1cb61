#include "server/http/router.h"

#include <string_view>

namespace h5mirror::server {
namespace {

constexpr std::string_view kFilePrefix = "/f/";

}  // namespace

HttpAnswer Router::Answer(const HttpRequest& request) {
  const std::string_view path = request.path;
  if (path.starts_with(kFilePrefix)) {
    return files_.Answer(request, path.substr(kFilePrefix.size()));
  }
  return ErrorAnswer(absl::NotFoundError("no such path: a file is at /f/NAME"));
}

}  // namespace h5mirror::server
