// A user's configuration of the driver: the config string, or with a '@' in front the text of a
// TOML file.
#include "client_vfd/plugin/config/config.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/text_file.h"

namespace h5mirror::vfd {
namespace {

void Configure(std::string_view text) {
  std::vector<KeyValue> items;
  Problem problem;
  if (text.substr(0, 1) == "@") {
    problem = ReadConfigFile(TextFile(text.substr(1)).path(), Missing::kRefused, &items);
  } else {
    problem = SplitConfigString(text, &items);
  }
  FuzzCheck(!problem || !problem->empty());
  Config config;
  for (const auto& [key, value] : items) {
    problem = SetConfigKey(key, value, &config);
    FuzzCheck(!problem || !problem->empty());
  }
}

}  // namespace
}  // namespace h5mirror::vfd

int h5mirror::LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vfd::Configure(FuzzInput(data, size).rest());
  return 0;
}
