// Finds and loads libh5mirror_session.so and libh5mirror_embedded.so, each once, when needed.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_HOST_SESSION_LOADER_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_HOST_SESSION_LOADER_H_

#include <string>

#include "client_vfd/api/embedded_api.h"
#include "client_vfd/api/session_api.h"

namespace h5mirror::vfd {

// Null: the module cannot be loaded, and `error` says why. The answer is remembered, so that a
// broken installation costs a program time only once. One failure is not remembered: too few free
// descriptors, without which the module would abort the program. Thread-safe.
const H5mSessionApi* LoadSession(std::string* error);

const H5mEmbeddedApi* LoadEmbedded(std::string* error);

// The module; null: it is not loaded yet.
const H5mSessionApi* LoadedSession();
const H5mEmbeddedApi* LoadedEmbedded();

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_HOST_SESSION_LOADER_H_
