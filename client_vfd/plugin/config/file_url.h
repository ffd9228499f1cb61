// The URLs by which programs name a file on a server.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_CONFIG_FILE_URL_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_CONFIG_FILE_URL_H_

#include <optional>
#include <string>
#include <string_view>

namespace h5mirror::vfd {

struct FileUrl {
  std::string server;  // HOST[:PORT] or unix:PATH; empty: that of the client's own configuration
  std::string name;    // under the server's root
};

// h5mirror://HOST[:PORT]/NAME, h5mirror:///NAME or h5mirror+unix:///SOCKET?name=NAME, as in the
// Python package (client_vfd/python/h5mirror/_url.py); %XX is a byte. Nullopt: `text` is no such
// URL.
std::optional<FileUrl> ParseFileUrl(std::string_view text);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_CONFIG_FILE_URL_H_
