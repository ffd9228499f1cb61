// Shared by both parts of the module's C face.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_C_FACE_H_
#define H5MIRROR_CLIENT_VFD_SESSION_C_FACE_H_

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client_vfd/api/errno_of.h"
#include "client_vfd/session/token_reader.h"
#include "rpc/client_options.h"

namespace h5mirror::vfd {

// Writes the message to `error`, cut off at its size. Returns the errno.
inline int Tell(const absl::Status& status, char* error, size_t error_size) {
  std::snprintf(error, error_size, "%s", std::string(status.message()).c_str());
  return ErrnoOf(status, Done::kByServer);
}

// Returns the errno of `body`. If `body` throws, returns ENOMEM and writes a message to `error`.
template <typename Body>
int Guarded(char* error, size_t error_size, Body body) {
  try {
    return body();
  } catch (const std::exception& thrown) {
    std::snprintf(error, error_size, "%s", thrown.what());
    return ENOMEM;
  }
}

// "": from the client's own configuration.
inline absl::StatusOr<rpc::ClientOptions> ServerOf(const char* server, const char* ca,
                                                   const char* token) {
  rpc::ClientSettings settings;
  if (*server != '\0') settings.server = server;
  if (*ca != '\0') settings.ca = ca;
  if (*token != '\0') settings.token = token;
  settings.may_miss_munge = true;  // The session gets its credential when there is one.
  absl::StatusOr<rpc::ClientOptions> options = rpc::ResolveClientOptions(settings);
  if (options.ok()) TokenReader::Get().Note(*options);
  return options;
}

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_C_FACE_H_
