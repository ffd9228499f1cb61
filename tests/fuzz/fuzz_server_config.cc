// The server's TOML file: read, made into settings, and shown again.
#include "server/settings/config.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/text_file.h"

namespace h5mirror::server {
namespace {

void Configure(std::string_view text) {
  const TextFile file(text);
  auto settings = ReadConfigFile(file.path());
  if (!settings.ok()) {
    FuzzCheck(!settings.status().message().empty());
    return;
  }
  auto config = MakeConfig(*settings);
  if (config.ok()) FuzzCheck(!DescribeConfig(*config).empty());
}

}  // namespace
}  // namespace h5mirror::server

int h5mirror::LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  h5mirror::server::Configure(h5mirror::FuzzInput(data, size).rest());
  return 0;
}
