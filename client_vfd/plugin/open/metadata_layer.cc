#include "client_vfd/plugin/open/metadata_layer.h"

#include <memory>
#include <string>

#include "client_vfd/plugin/host/session_loader.h"
#include "client_vfd/plugin/metadata_buffer/buffer_fork.h"
#include "client_vfd/plugin/metadata_buffer/buffered_file.h"

namespace h5mirror::vfd {

void AddMetadataBuffer(const OpenCall& call, HasMirror has_mirror, WritableMode& file) {
  std::string load_error;  // Told at the first write that is to be mirrored.
  const bool loads = has_mirror == HasMirror::kYes && LoadSession(&load_error) != nullptr;
  RegisterBufferFork(loads ? SessionLoaded::kYes : SessionLoaded::kNo);
  const auto gathers = has_mirror == HasMirror::kYes ? BufferedFile::Gathers::kNothing
                                                     : BufferedFile::Gathers::kRawData;
  file.AddLayer(std::make_unique<BufferedFile>(
      BufferedFile::Target{&call.host, &file.under(), &file.bytes(), gathers, call.request.name,
                           call.config->metadata_memory_bytes}));
}

}  // namespace h5mirror::vfd
