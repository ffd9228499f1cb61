#include "rpc/cut_map_format.h"

#include <cstring>

namespace h5mirror::rpc {
namespace {

using Kind = CutMapQuestion::Kind;

constexpr size_t kIdBytes = 16;
constexpr struct {
  Kind kind;
  char magic[9];
} kMagics[] = {{Kind::kMap, "H5MASK02"}, {Kind::kBlocks, "H5MASB01"}, {Kind::kOpen, "H5MASO01"}};

struct QuestionHeader {
  char magic[8];
  int64_t cut;
  int64_t version;
  int64_t version_time_ns;
  char id[kIdBytes];  // the file's, or the reader's
  uint32_t has_id;
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

std::optional<Kind> KindOf(const QuestionHeader& header) {
  for (const auto& [kind, magic] : kMagics) {
    if (std::memcmp(header.magic, magic, sizeof(header.magic)) == 0) return kind;
  }
  return std::nullopt;
}

void PutMagic(Kind asked, QuestionHeader* header) {
  for (const auto& [kind, magic] : kMagics) {
    if (kind == asked) std::memcpy(header->magic, magic, sizeof(header->magic));
  }
}

}  // namespace

std::string EncodeQuestion(const CutMapQuestion& question) {
  QuestionHeader header{};
  PutMagic(question.kind, &header);
  header.cut = question.cut;
  header.version = question.version;
  header.version_time_ns = question.version_time_ns;
  const std::string& id = question.kind == Kind::kOpen ? question.reader_id : question.file_id;
  if (id.size() == kIdBytes) {
    std::memcpy(header.id, id.data(), kIdBytes);
    header.has_id = 1;
  }
  header.target_bytes = static_cast<uint32_t>(question.target.size());
  header.name_bytes = static_cast<uint32_t>(question.name.size());
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  return bytes + question.target + question.name;
}

std::optional<size_t> QuestionBytes(std::string_view bytes) {
  const std::optional<QuestionHeader> header = HeaderOf(bytes);
  if (!header) return 0;
  if (!KindOf(*header)) return std::nullopt;
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
  question.kind = *KindOf(header);  // As QuestionBytes() has looked at it.
  std::string& id = question.kind == Kind::kOpen ? question.reader_id : question.file_id;
  if (header.has_id != 0) id.assign(header.id, kIdBytes);
  question.cut = header.cut;
  question.version = header.version;
  question.version_time_ns = header.version_time_ns;
  return question;
}

}  // namespace h5mirror::rpc
