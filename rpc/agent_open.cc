#include "rpc/agent_open.h"

#include <array>
#include <cstring>
#include <utility>

#include "base/status_macros.h"
#include "rpc/agent_question.h"

namespace h5mirror::rpc {
namespace {

absl::Status Nonsense() {
  return absl::InvalidArgumentError("open a file at the agent: its answer makes no sense");
}

}  // namespace

std::string EncodeOpenAnswer(const v1::Snapshot* snapshot, size_t descriptor_count) {
  AgentOpenAnswer answer{};
  std::string bytes = snapshot == nullptr ? "" : snapshot->SerializeAsString();
  if (bytes.size() > kOpenAnswerBytesMax - sizeof(answer)) bytes.clear();
  std::memcpy(answer.magic, kOpenAnswerMagic, sizeof(answer.magic));
  answer.descriptor_count = static_cast<uint32_t>(descriptor_count);
  answer.snapshot_bytes = static_cast<uint32_t>(bytes.size());
  return std::string(reinterpret_cast<const char*>(&answer), sizeof(answer)) + bytes;
}

absl::StatusOr<OpenedAtAgent> OpenAtAgent(const std::string& socket_path,
                                          const CutMapQuestion& question, absl::Time deadline) {
  std::array<char, kOpenAnswerBytesMax> bytes;
  H5M_ASSIGN_OR_RETURN(AgentAnswer got,
                       AskAgent(socket_path, question, deadline, absl::MakeSpan(bytes)));
  AgentOpenAnswer answer;
  if (got.length_bytes < sizeof(answer)) return Nonsense();
  std::memcpy(&answer, bytes.data(), sizeof(answer));
  if (std::memcmp(answer.magic, kOpenAnswerMagic, sizeof(answer.magic)) != 0 ||
      answer.descriptor_count != got.memories.size() ||
      answer.snapshot_bytes != got.length_bytes - sizeof(answer)) {
    return Nonsense();
  }
  if (answer.snapshot_bytes == 0) return absl::NotFoundError("the agent does not open the file");
  OpenedAtAgent opened;
  const bool is_cut = opened.snapshot.ParseFromArray(bytes.data() + sizeof(answer),
                                                     static_cast<int>(answer.snapshot_bytes)) &&
                      opened.snapshot.cut() > 0 && opened.snapshot.size_bytes() >= 0;
  if (!is_cut) return Nonsense();
  if (got.memories.empty()) return opened;
  H5M_ASSIGN_OR_RETURN(
      opened.map, CutMap::Map(got.memories, static_cast<uint64_t>(opened.snapshot.size_bytes()),
                              std::move(got.connection)));
  return opened;
}

}  // namespace h5mirror::rpc
