#include "rpc/cut_map_format.h"

#include <cstring>

namespace h5mirror::rpc {
namespace {

constexpr char kQuestionMagic[9] = "H5MASK02";
constexpr char kBlocksQuestionMagic[9] = "H5MASB01";
constexpr size_t kFileIdBytes = 16;

struct QuestionHeader {
  char magic[8];
  int64_t cut;
  int64_t version;
  int64_t version_time_ns;
  char file_id[kFileIdBytes];
  uint32_t has_file_id;
  uint32_t target_bytes;
  uint32_t name_bytes;
  uint32_t unused;
};
static_assert(sizeof(QuestionHeader) == 64);

std::optional<QuestionHeader> HeaderOf(std::string_view bytes) {
  QuestionHeader header;
  if (bytes.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

bool HasMagic(const QuestionHeader& header, const char* magic) {
  return std::memcmp(header.magic, magic, sizeof(header.magic)) == 0;
}

}  // namespace

std::string EncodeQuestion(const CutMapQuestion& question) {
  QuestionHeader header{};
  std::memcpy(header.magic, question.blocks ? kBlocksQuestionMagic : kQuestionMagic,
              sizeof(header.magic));
  header.cut = question.cut;
  header.version = question.version;
  header.version_time_ns = question.version_time_ns;
  if (question.file_id.size() == kFileIdBytes) {
    std::memcpy(header.file_id, question.file_id.data(), kFileIdBytes);
    header.has_file_id = 1;
  }
  header.target_bytes = static_cast<uint32_t>(question.target.size());
  header.name_bytes = static_cast<uint32_t>(question.name.size());
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  return bytes + question.target + question.name;
}

std::optional<size_t> QuestionBytes(std::string_view bytes) {
  const std::optional<QuestionHeader> header = HeaderOf(bytes);
  if (!header) return 0;
  if (!HasMagic(*header, kQuestionMagic) && !HasMagic(*header, kBlocksQuestionMagic)) {
    return std::nullopt;
  }
  if (header->target_bytes > kQuestionBytesMax || header->name_bytes > kQuestionBytesMax) {
    return std::nullopt;
  }
  const size_t length = sizeof(*header) + header->target_bytes + header->name_bytes;
  if (length > kQuestionBytesMax) return std::nullopt;
  return length;
}

std::optional<CutMapQuestion> DecodeQuestion(std::string_view bytes) {
  const std::optional<size_t> length = QuestionBytes(bytes);
  if (!length || *length == 0 || bytes.size() != *length) return std::nullopt;
  const QuestionHeader header = *HeaderOf(bytes);
  bytes.remove_prefix(sizeof(header));
  CutMapQuestion question;
  question.target = bytes.substr(0, header.target_bytes);
  question.name = bytes.substr(header.target_bytes);
  if (header.has_file_id != 0) question.file_id.assign(header.file_id, kFileIdBytes);
  question.cut = header.cut;
  question.version = header.version;
  question.version_time_ns = header.version_time_ns;
  question.blocks = HasMagic(header, kBlocksQuestionMagic);
  return question;
}

}  // namespace h5mirror::rpc
