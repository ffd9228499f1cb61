#include "onion_store/pages/listed_copies.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "base/strings.h"

namespace h5mirror::store {
namespace {

constexpr std::string_view kList = "-list";
constexpr std::string_view kData = "-data-";

}  // namespace

void ListedCopies::Note(const FileId& file_id, const ObjectInfo& object) {
  const std::string_view name = object.name;
  if (!name.starts_with(CopyPrefix(file_id))) return;
  if (name.ends_with(kList)) {
    const std::string prefix(name.substr(0, name.size() - kList.size()));
    const auto number = NumberOfCopy(prefix);
    if (number.ok()) lists_[*number] = prefix;
    return;
  }
  const size_t data = name.rfind(kData);
  uint64_t number = 0;
  if (data == name.npos || !absl::SimpleAtoi(ToAbsl(name.substr(data + kData.size())), &number)) {
    return;
  }
  auto& parts = parts_[std::string(name.substr(0, data))];
  parts.emplace_back(number, object.size_bytes);
  // From a million parts on the names are in another order than the numbers.
  if (parts.size() > 1 && parts[parts.size() - 2] > parts.back()) {
    std::sort(parts.begin(), parts.end());
  }
}

std::string ListedCopies::LostPart(const CopyLayer& layer) const {
  const auto found = parts_.find(layer.prefix);
  for (size_t i = 0; i < layer.parts.size(); ++i) {
    const bool is_there =
        found != parts_.end() &&
        std::binary_search(found->second.begin(), found->second.end(),
                           std::pair<uint64_t, uint64_t>(layer.first + i, layer.parts[i].length));
    if (!is_there) return layer.PartName(i);
  }
  return "";
}

std::string ListedCopies::LostPart(const FileCopy& copy) const {
  const std::string lost = LostPart(copy.index);
  return lost.empty() ? LostPart(copy.heads) : lost;
}

std::string ListedCopies::LostPart(absl::Span<const CopyHead> heads) const {
  std::string lost;
  for (const CopyHead& head : heads) {
    for (const CopyLayer& layer : head.layers) {
      if (lost.empty()) lost = LostPart(layer);
    }
  }
  return lost;
}

}  // namespace h5mirror::store
