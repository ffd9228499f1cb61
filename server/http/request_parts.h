// Reads the parts of a request from libmicrohttpd, and answers in its place. Only for the library's
// thread of the connection.
#ifndef H5MIRROR_SERVER_HTTP_REQUEST_PARTS_H_
#define H5MIRROR_SERVER_HTTP_REQUEST_PARTS_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/preconditions.h"

struct MHD_Connection;

namespace h5mirror::server {

// -1: the library does not tell.
int DescriptorOf(MHD_Connection* connection);

// Sends `text` past the library, with TLS where the connection has it, or as much of it as goes
// without waiting. The connection must be of no use afterwards.
void SendNow(MHD_Connection* connection, std::string_view text);

// The first one of that name.
std::optional<std::string> HeaderOf(MHD_Connection* connection, const char* name);
Conditions ConditionsOf(MHD_Connection* connection);
// Decoded, in their order. A value that cannot be decoded stands as it was sent.
std::vector<std::pair<std::string, std::string>> QueryOf(MHD_Connection* connection);

// True: a header that must come once comes twice. A proxy might read the other one.
bool RepeatsAHeader(MHD_Connection* connection);
bool HasBody(MHD_Connection* connection);

// DER, the client's own first; empty: it has shown none.
std::vector<std::string> CertificatesOf(MHD_Connection* connection);

// The request's target: "/f/a", or "http://host/f/a" as a proxy gets it (RFC 9112, 3.2).
struct Target {
  std::optional<std::string> authority = std::nullopt;
  std::string path = {};
};
Target TargetOf(std::string_view url);

// "localhost:7448" -> "localhost", "[::1]:7448" -> "::1". Empty: it is neither.
std::string WithoutPort(std::string_view host);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HTTP_REQUEST_PARTS_H_
