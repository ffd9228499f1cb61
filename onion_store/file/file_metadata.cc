// Keeps on the disk where a file's metadata is, as far as known: docs/reference/format.md,
// "Metadata".
#include <string>

#include "onion_store/disk/coding.h"
#include "onion_store/file/file_impl.h"

namespace h5mirror::store {
namespace {

constexpr std::string_view kName = "metadata";
constexpr uint64_t kBytesMax = uint64_t{2} << 20;

}  // namespace

void FileImpl::LoadMetadata() {
  const auto file = context_->tree->Open(files_.HistoryName(kName), OpenKind::kRead, 0);
  if (!file.ok()) return;
  const auto size = (*file)->Size();
  if (!size.ok() || *size > kBytesMax) return;
  std::string bytes(*size, '\0');
  const auto read = (*file)->ReadAt(0, absl::MakeSpan(bytes));
  if (read.ok() && *read == bytes.size()) metadata_.Load(bytes);
}

void FileImpl::SaveMetadata() {
  const std::optional<std::string> bytes = metadata_.TakeChanged();
  if (!bytes) return;
  auto file = context_->tree->Open(files_.HistoryName(kName), OpenKind::kCreateFresh, 0600);
  if (file.ok()) WriteAt(**file, 0, *bytes).IgnoreError();
}

}  // namespace h5mirror::store
