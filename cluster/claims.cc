#include "cluster/claims.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::cluster {
namespace {

// FNV-1a of 64 bits, http://www.isthe.com/chongo/tech/comp/fnv/.
void Mix(std::string_view bytes, uint64_t* hash) {
  for (const char c : bytes) {
    *hash = (*hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
}

// FNV leaves the high bits of short names alike. This is the finalizer of MurmurHash3.
uint64_t Spread(uint64_t hash) {
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccd;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53;
  return hash ^ (hash >> 33);
}

}  // namespace

bool IsClaimable(const ClusterView& view, const CellRecord& record) {
  if (record.state == CellState::kFree) return true;
  const ServerRecord* const owner = view.FindServer(record.owner);
  if (owner == nullptr) return false;
  // A later life begins only after the one before is over.
  if (owner->epoch > record.owner_epoch) return true;
  return owner->epoch == record.owner_epoch && IsOver(owner->state);
}

CellRecord Claimed(const CellRecord& before, const std::string& owner, uint64_t owner_epoch) {
  CellRecord claimed = before;
  claimed.state = CellState::kOpening;
  claimed.owner = owner;
  claimed.owner_epoch = owner_epoch;
  claimed.is_clean = before.state == CellState::kFree && before.is_clean;
  RaiseEpoch(claimed);
  ++claimed.seq;
  return claimed;
}

uint64_t WeightOf(std::string_view cell, std::string_view id) {
  uint64_t hash = 0xcbf29ce484222325;
  Mix(cell, &hash);
  // No name has a NUL byte, so "ab" and "c" differ from "a" and "bc".
  Mix(std::string_view("\0", 1), &hash);
  Mix(id, &hash);
  return Spread(hash);
}

size_t PlaceOf(const std::string& cell, const std::string& id, const ClusterView& view) {
  const uint64_t own = WeightOf(cell, id);
  return static_cast<size_t>(
      std::count_if(view.servers.begin(), view.servers.end(), [&](const auto& each) {
        if (each.first == id || each.second.state != ServerState::kUp) return false;
        const uint64_t weight = WeightOf(cell, each.first);
        return weight > own || (weight == own && each.first < id);
      }));
}

bool Overlap(std::string_view cell, std::string_view other) {
  if (cell.size() > other.size()) std::swap(cell, other);
  return other.starts_with(cell) &&
         (cell.empty() || other.size() == cell.size() || other[cell.size()] == '/');
}

absl::Status CheckApart(const ClusterView& view, const std::string& cell) {
  for (const auto& [other, record] : view.cells) {
    if (other == cell || !Overlap(cell, other)) continue;
    return absl::FailedPreconditionError(
        StrCat("the cells \"", cell, "\" and \"", other, "\" lie in each other"));
  }
  return absl::OkStatus();
}

absl::Status CreateCell(Registry& registry, const std::string& cell) {
  H5M_RETURN_IF_ERROR(CheckCellDirectory(cell));
  H5M_ASSIGN_OR_RETURN(RegistryView texts, registry.ReadAll());
  H5M_ASSIGN_OR_RETURN(const ClusterView view, DecodeView(std::move(texts)));
  H5M_RETURN_IF_ERROR(CheckApart(view, cell));
  CellRecord record;
  record.seq = 1;
  record.is_clean = true;
  const absl::Status made =
      registry.CompareAndSet({{CellName(cell), std::nullopt}}, {{CellName(cell), Encode(record)}});
  if (!absl::IsAborted(made)) return made;
  return absl::AlreadyExistsError(StrCat("\"", cell, "\" is a cell already"));
}

}  // namespace h5mirror::cluster
