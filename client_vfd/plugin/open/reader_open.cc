#include "client_vfd/plugin/open/reader_open.h"

#include <utility>

#include "client_vfd/plugin/config/name_rules.h"
#include "client_vfd/plugin/config/real_path.h"

namespace h5mirror::vfd {

std::optional<ReaderTarget> FindReaderTarget(const Config& config, const std::string& config_text,
                                             const std::string& given_name,
                                             const std::string& host_name, RootPtr root) {
  ReaderTarget target;
  target.given_name = given_name;
  target.real_path = RealPathOfMissing(given_name);
  std::optional<std::string> name = MirrorName(config, target.real_path, host_name);
  if (!name) return std::nullopt;
  target.name = std::move(*name);
  target.config_text = config_text;
  target.root = std::move(root);
  if (target.root != nullptr && !config.name.empty() &&
      target.real_path != target.root->real_path) {
    target.name = CarryOver(target.real_path, target.root->real_path, target.root->name);
  }
  if (config.IsEmbedded()) target.name = target.real_path;  // Whatever it would be on a server.
  return target;
}

}  // namespace h5mirror::vfd
