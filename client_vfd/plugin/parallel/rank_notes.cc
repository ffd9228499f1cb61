#include "client_vfd/plugin/parallel/rank_notes.h"

#include <cstring>

namespace h5mirror::vfd {
namespace {

enum Word : size_t { kFlags, kRawCount, kMetadataCount, kHeaderWords };
constexpr uint64_t kFailed = 1;
constexpr uint64_t kIncomplete = 2;

}  // namespace

std::string ToBytes(const RankNotes& notes) {
  std::vector<uint64_t> words(kHeaderWords);
  words[kFlags] = (notes.has_failed ? kFailed : 0) | (notes.is_incomplete ? kIncomplete : 0);
  words[kRawCount] = notes.raw.size();
  words[kMetadataCount] = notes.metadata.size();
  for (const std::vector<NotedPages::Run>* runs : {&notes.raw, &notes.metadata}) {
    for (const NotedPages::Run& run : *runs) words.insert(words.end(), {run.offset, run.end});
  }
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint64_t)};
}

std::optional<RankNotes> NotesFromBytes(std::string_view bytes) {
  std::vector<uint64_t> words(bytes.size() / sizeof(uint64_t));
  if (words.size() * sizeof(uint64_t) != bytes.size() || words.size() < kHeaderWords) {
    return std::nullopt;
  }
  std::memcpy(words.data(), bytes.data(), bytes.size());
  const uint64_t runs_max = (words.size() - kHeaderWords) / 2;
  const uint64_t raw = words[kRawCount], metadata = words[kMetadataCount];
  if (raw > runs_max || metadata > runs_max ||
      kHeaderWords + 2 * (raw + metadata) != words.size()) {
    return std::nullopt;
  }
  RankNotes notes;
  notes.has_failed = (words[kFlags] & kFailed) != 0;
  notes.is_incomplete = (words[kFlags] & kIncomplete) != 0;
  for (uint64_t i = 0; i < raw + metadata; ++i) {
    const NotedPages::Run run{words[kHeaderWords + 2 * i], words[kHeaderWords + 2 * i + 1]};
    if (run.offset >= run.end) return std::nullopt;
    (i < raw ? notes.raw : notes.metadata).push_back(run);
  }
  return notes;
}

}  // namespace h5mirror::vfd
