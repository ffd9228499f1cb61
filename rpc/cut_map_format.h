// The metadata of one cut in shared memory, from h5mirror-agent to the readers of its host, and the
// messages between the two: docs/design/011-metadata-in-shared-memory.md. The two sides may be of
// different releases: another layout gets another magic.
#ifndef H5MIRROR_RPC_CUT_MAP_FORMAT_H_
#define H5MIRROR_RPC_CUT_MAP_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace h5mirror::rpc {

inline constexpr uint64_t kMapBlockBytes = 64 << 10;
inline constexpr uint64_t kMapPageBytes = 4 << 10;
// The most parts: memories with pages. The index is one more.
inline constexpr size_t kMapPartsMax = 16;
inline constexpr size_t kMapDescriptorsMax = kMapPartsMax + 1;

// The index: this header, and then the entries, whose blocks rise.
struct CutMapHeader {
  char magic[8];        // kMapMagic
  uint64_t size_bytes;  // of the cut
  uint32_t entry_count;
  uint32_t part_count;
  uint64_t has_all;  // 1: it has all pages that the agent knows to be metadata
};
static_assert(sizeof(CutMapHeader) == 32);
inline constexpr char kMapMagic[9] = "H5MMAP01";

// Pages of one block: those of `known` (bit i: page i), one after the other.
struct CutMapEntry {
  uint64_t block;   // at block * kMapBlockBytes of the cut
  uint64_t offset;  // in its part
  uint16_t known;
  uint16_t part;
  uint32_t unused;
};
static_assert(sizeof(CutMapEntry) == 24);

// One question for each connection. The connection stays open as long as the memory is mapped.
struct CutMapQuestion {
  enum class Kind : uint8_t {
    kMap,     // the metadata of a cut: CutMapAnswer
    kBlocks,  // its raw data: rpc/shared_blocks_format.h
    kOpen,    // the newest cut, and its metadata: rpc/agent_open.h
  };

  std::string target;  // the server, as ClientOptions has it
  std::string name;
  std::string file_id;  // 16 bytes; empty: not known
  int64_t cut = 0;
  int64_t version = 0;  // above 0: this version
  // When the server made that version (ns since 1970). It tells the version from one of the same
  // number of a file that had the name before.
  int64_t version_time_ns = 0;
  Kind kind = Kind::kMap;
  std::string reader_id = {};  // of kOpen, in place of `file_id`: 16 bytes
};
std::string EncodeQuestion(const CutMapQuestion& question);
// The length of the question that begins with `bytes`; 0: not known yet. Unset: it is no question.
std::optional<size_t> QuestionBytes(std::string_view bytes);
inline constexpr size_t kQuestionBytesMax = 16 << 10;
std::optional<CutMapQuestion> DecodeQuestion(std::string_view bytes);

// The answer. The descriptors come with it: the index, and its parts.
struct CutMapAnswer {
  char magic[8];              // kAnswerMagic
  uint32_t descriptor_count;  // 0: there is no map
  uint32_t unused;
};
static_assert(sizeof(CutMapAnswer) == 16);
inline constexpr char kAnswerMagic[9] = "H5MGOT01";

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_CUT_MAP_FORMAT_H_
