#include "onion_store/shared/token_source.h"

#include <string>

#include "base/crc32c.h"
#include "base/status_macros.h"
#include "onion_store/disk/coding.h"

namespace h5mirror::store {
namespace {
constexpr const char* kName = TokenSource::kFileName;
constexpr char kFresh[] = ".h5mirror/tokens.new";
constexpr uint64_t kBlock = 1000;
}  // namespace

absl::Status TokenSource::Load() {
  absl::MutexLock lock(&mutex_);
  auto file = tree_.Open(kName, OpenKind::kRead, 0);
  if (absl::IsNotFound(file.status())) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(file.status());
  char bytes[12];
  H5M_ASSIGN_OR_RETURN(size_t got, (*file)->ReadAt(0, absl::MakeSpan(bytes)));
  if (got != sizeof(bytes) || Crc32c({bytes, 8}) != GetInt<uint32_t>(bytes + 8)) {
    return absl::DataLossError(
        ".h5mirror/tokens is damaged; write a number larger than every token ever given");
  }
  next_ = mark_ = GetInt<uint64_t>(bytes);
  return absl::OkStatus();
}

absl::StatusOr<Token> TokenSource::Next() {
  absl::MutexLock lock(&mutex_);
  if (keeping_ == Keeping::kDurable && next_ >= mark_) H5M_RETURN_IF_ERROR(Reserve(next_ + kBlock));
  return next_++;
}

absl::Status TokenSource::Reserve(uint64_t mark) {
  std::string bytes;
  PutInt<uint64_t>(&bytes, mark);
  PutInt<uint32_t>(&bytes, Crc32c(bytes));
  {
    H5M_ASSIGN_OR_RETURN(auto file, tree_.Open(kFresh, OpenKind::kCreateFresh, 0600));
    H5M_RETURN_IF_ERROR(WriteAt(*file, 0, bytes));
    H5M_RETURN_IF_ERROR(file->Sync());
  }
  H5M_RETURN_IF_ERROR(tree_.Rename(kFresh, kName));
  H5M_RETURN_IF_ERROR(tree_.SyncDirectory(".h5mirror"));
  mark_ = mark;
  return absl::OkStatus();
}

}  // namespace h5mirror::store
