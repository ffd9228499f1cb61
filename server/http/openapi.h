// The description of the HTTP door for tools, in OpenAPI's form.
#ifndef H5MIRROR_SERVER_HTTP_OPENAPI_H_
#define H5MIRROR_SERVER_HTTP_OPENAPI_H_

#include <string_view>

namespace h5mirror::server {

// OpenAPI 3.0, JSON. docs/reference/http.md says the same for people.
std::string_view OpenApiDocument();

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HTTP_OPENAPI_H_
