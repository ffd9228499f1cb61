// mode=reader: whether an open is for a file on a server, and its name there.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_READER_OPEN_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_READER_OPEN_H_

#include <optional>
#include <string>

#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/modes/linked_open.h"
#include "client_vfd/plugin/modes/reader_file.h"

namespace h5mirror::vfd {

// Unset: the rules leave the file out, and it is opened locally. `host_name` as in MirrorName().
// With `name=` the targets of links have names that lie to it as the local paths lie to each other.
std::optional<ReaderTarget> FindReaderTarget(const Config& config, const std::string& config_text,
                                             const std::string& given_name,
                                             const std::string& host_name, RootPtr root);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_READER_OPEN_H_
