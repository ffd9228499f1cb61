// Finds and loads libh5mirror_session.so and libh5mirror_embedded.so, each once, when it is needed.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_HOST_SESSION_LOADER_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_HOST_SESSION_LOADER_H_

#include <string>

#include "client_vfd/api/embedded_api.h"
#include "client_vfd/api/session_api.h"

namespace h5mirror::vfd {

// Null when the module cannot be loaded; `error` then says why. The answer is remembered: a
// program is not slowed down again and again by a broken installation. Thread-safe.
const H5mSessionApi* LoadSession(std::string* error);

const H5mEmbeddedApi* LoadEmbedded(std::string* error);

// The module if it is loaded already.
const H5mSessionApi* LoadedSession();
const H5mEmbeddedApi* LoadedEmbedded();

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_HOST_SESSION_LOADER_H_
