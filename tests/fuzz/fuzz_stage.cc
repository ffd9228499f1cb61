// The redo log as read from disk. The first byte says whether checksums are corrected, so that the
// code after those checks is reached too.
#include "base/crc32c.h"
#include "base/testing/fault_env.h"
#include "onion_store/disk/coding.h"
#include "onion_store/stage/stage_log.h"
#include "tests/fuzz/fuzz_input.h"

namespace h5mirror::store {
namespace {

// Of each record: the header's, and those of a write's extents.
void MendChecksums(std::string* log) {
  for (size_t at = 0; at + 64 <= log->size();) {
    const uint64_t entries = GetInt<uint32_t>(&(*log)[at + 12]);
    const uint64_t table_end = at + 64 + entries * 24;
    const uint64_t data_bytes = GetInt<uint64_t>(&(*log)[at + 56]);
    if (table_end > log->size()) return;
    uint64_t data_at = table_end;
    for (uint64_t entry = at + 64; entry < table_end; entry += 24) {
      const uint64_t length = GetInt<uint64_t>(&(*log)[entry + 8]);
      if (data_at > log->size() || length > log->size() - data_at) break;
      PutIntAt(log, entry + 16, Crc32c(std::string_view(*log).substr(data_at, length)));
      data_at += length;
    }
    PutIntAt(log, at + 4, Crc32c(std::string_view(*log).substr(at + 8, table_end - at - 8)));
    if (data_bytes > log->size()) return;
    at = table_end + data_bytes;
  }
}

void Replay(std::string log) {
  FaultEnv env;
  auto tree = *env.OpenTree("/");
  FuzzCheck(tree->MakeDirectory("d", 0700).ok());
  auto file = *tree->Open("d/stage-000001", OpenKind::kCreateFresh, 0600);
  FuzzCheck(WriteAt(*file, 0, log).ok());
  StageLog stage(*tree, "d", FileId{1});
  if (!stage.Open(1, {1, log.size()}).ok()) return;
  StageVisitor visitor;
  visitor.on_write = [&](Extent extent, StageLocation at) {
    std::string bytes(extent.length, '\0');  // No longer than the log.
    FuzzCheck(extent.length <= log.size());
    return ReadStaged(stage.segments(), at, absl::MakeSpan(bytes));
  };
  visitor.on_revert = [](const Revert& revert) {
    FuzzCheck(IsInPages(revert.at) && revert.extent.length <= kPageRunBytesMax);
    return absl::OkStatus();
  };
  visitor.on_truncate = [](uint64_t size_bytes) {
    FuzzCheck(size_bytes <= INT64_MAX);
    return absl::OkStatus();
  };
  visitor.on_cut = [](CutNumber, uint64_t size_bytes, absl::Span<const Extent>, StageEnd) {
    FuzzCheck(size_bytes <= INT64_MAX);
    return absl::OkStatus();
  };
  stage.Replay(visitor).IgnoreError();
}

}  // namespace
}  // namespace h5mirror::store

int h5mirror::LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const bool mends = input.Take<uint8_t>() % 2 == 1;
  std::string log(input.rest());
  if (mends) store::MendChecksums(&log);
  store::Replay(std::move(log));
  return 0;
}
