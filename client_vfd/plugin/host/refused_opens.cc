#include "client_vfd/plugin/host/refused_opens.h"

#include <functional>
#include <utility>

namespace h5mirror::vfd {
namespace {

constexpr int kOfAppend = 2;

size_t HashOf(std::string_view name) { return std::hash<std::string_view>()(name); }

}  // namespace

void RefusedOpens::OnRefused(std::string_view name) {
  const size_t hash = HashOf(name);
  count_ = name_hash_ == hash ? count_ + 1 : 1;
  name_hash_ = hash;
}

void RefusedOpens::OnRefusedRead(std::string_view name) {
  name_hash_ = HashOf(name);
  count_ = kOfAppend;
}

bool RefusedOpens::TakeIsAppend(std::string_view name) {
  const RefusedOpens before = std::exchange(*this, RefusedOpens());
  return before.name_hash_ == HashOf(name) && before.count_ >= kOfAppend;
}

RefusedOpens& RefusedOpensOfThread() {
  thread_local RefusedOpens refused;
  return refused;
}

}  // namespace h5mirror::vfd
