// metadata=memory: the metadata buffer over a file that is being opened.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_METADATA_LAYER_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_METADATA_LAYER_H_

#include "client_vfd/plugin/modes/writable_mode.h"
#include "client_vfd/plugin/open/open_facts.h"

namespace h5mirror::vfd {

// Lays a buffer over `file`.
enum class HasMirror { kNo, kYes };
void AddMetadataBuffer(const OpenCall& call, HasMirror has_mirror, WritableMode& file);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_METADATA_LAYER_H_
