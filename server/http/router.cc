#include "server/http/router.h"

#include <string_view>

#include "server/http/openapi.h"

namespace h5mirror::server {
namespace {

constexpr std::string_view kFilePrefix = "/f/";
constexpr std::string_view kList = "/v1/files";
constexpr std::string_view kOpenApi = "/v1/openapi.json";
constexpr std::string_view kStatusPrefix = "/v1/files/";

}  // namespace

HttpAnswer Router::Answer(const HttpRequest& request) {
  const std::string_view path = request.path;
  if (path.starts_with(kFilePrefix)) {
    return files_.Answer(request, path.substr(kFilePrefix.size()));
  }
  if (path == kList) return json_.List(request);
  if (path.starts_with(kStatusPrefix)) {
    return json_.OfFile(request, path.substr(kStatusPrefix.size()));
  }
  if (path == kOpenApi) {
    HttpAnswer answer;
    answer.text = OpenApiDocument();
    answer.headers.emplace_back("Content-Type", "application/json");
    return answer;
  }
  return ErrorAnswer(
      absl::NotFoundError("no such path: files are at /v1/files, the bytes of one at /f/NAME"));
}

}  // namespace h5mirror::server
