#include "client_vfd/plugin/parallel/selections.h"

#include <array>
#include <limits>

namespace h5mirror::vfd {
namespace {

// Sequences of bytes that are asked for at once.
constexpr size_t kSequences = 1024;

// The bytes of one selection, from `offset` on.
bool AddSelection(const HostApi& api, hid_t space, haddr_t offset, size_t element_bytes,
                  NotedPages* pages) {
  const hssize_t points = api.s_get_select_npoints(space);
  if (points == 0) return true;
  const hid_t iterator = points > 0 ? api.s_sel_iter_create(space, element_bytes, 0) : -1;
  if (iterator < 0) return false;
  std::array<hsize_t, kSequences> offsets;
  std::array<size_t, kSequences> lengths;
  bool is_told = true;
  for (auto left = static_cast<uint64_t>(points); left > 0 && is_told;) {
    size_t sequences = 0, elements = 0;
    is_told =
        api.s_sel_iter_get_seq_list(iterator, kSequences, std::numeric_limits<size_t>::max(),
                                    &sequences, &elements, offsets.data(), lengths.data()) >= 0 &&
        sequences <= kSequences && elements > 0 && elements <= left;
    if (!is_told) break;
    for (size_t i = 0; i < sequences; ++i) pages->Add(offset + offsets[i], lengths[i]);
    left -= elements;
  }
  api.s_sel_iter_close(iterator);
  return is_told;
}

}  // namespace

bool AddSelections(const HostApi& api, size_t count, const hid_t* spaces, const haddr_t* offsets,
                   const size_t* element_sizes, NotedPages* pages) {
  const bool can_tell = api.s_get_select_npoints != nullptr && api.s_sel_iter_create != nullptr &&
                        api.s_sel_iter_get_seq_list != nullptr && api.s_sel_iter_close != nullptr;
  if (!can_tell) return false;
  size_t element_bytes = 0;
  bool repeats = false;
  for (size_t i = 0; i < count; ++i) {
    repeats = repeats || (i > 0 && element_sizes[i] == 0);
    if (!repeats) element_bytes = element_sizes[i];
    if (!AddSelection(api, spaces[i], offsets[i], element_bytes, pages)) return false;
  }
  return true;
}

}  // namespace h5mirror::vfd
