#include "onion_store/shared/history_files.h"

#include <utility>

#include "base/hex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"
#include "onion_store/shared/head_access.h"

namespace h5mirror::store {

HistoryFiles::HistoryFiles(std::shared_ptr<StoreContext> context, std::string name)
    : context_(std::move(context)), name_(std::move(name)), directory_(StrCat(name_, ".h5m")) {}

void HistoryFiles::Identify(const FileId& file_id, uint32_t page_size_bytes) {
  file_id_ = file_id;
  page_size_bytes_ = page_size_bytes;
}

uint64_t HistoryFiles::PagesIn(uint64_t size_bytes) const {
  return RoundUp(size_bytes, page_size_bytes_) / page_size_bytes_;
}

std::string HistoryFiles::HistoryName(std::string_view file) const {
  return StrCat(directory_, "/", file);
}
std::string HistoryFiles::GenerationName(int64_t number) const {
  return HistoryName(StrCat("gen-", number));
}
std::string HistoryFiles::OldHeadName(int64_t number) const {
  return HistoryName(StrCat("head-", number));
}
std::string HistoryFiles::OpenMarkName() const {
  return context_->kind == StoreKind::kOneFile ? HistoryName("open") : MarkName(".h5mirror/open");
}
std::string HistoryFiles::MarkName(std::string_view directory) const {
  return StrCat(directory, "/", HexOf(file_id_));
}

void HistoryFiles::SetMark(std::string_view directory) const {
  if (context_->kind != StoreKind::kRoot) return;
  tree().MakeDirectory(directory, 0700).IgnoreError();
  auto file = tree().Open(MarkName(directory), OpenKind::kCreateFresh, 0600);
  if (!file.ok() || !WriteAt(**file, 0, name_).ok() || !(*file)->Sync().ok()) return;
  tree().SyncDirectory(directory).IgnoreError();
}

void HistoryFiles::RemoveMark(std::string_view directory) const {
  if (context_->kind != StoreKind::kRoot) return;
  tree().Remove(MarkName(directory)).IgnoreError();
}

absl::Status HistoryFiles::MakeDirectories() const {
  // The use ends once the history's directory exists: it keeps the directories above from being
  // empty.
  NameDirectories::Use use(context_->name_directories, name_);
  H5M_RETURN_IF_ERROR(use.Make(DirectoryMode(context_->options)));
  absl::Status made = tree().MakeDirectory(directory_, 0700);
  return absl::IsAlreadyExists(made) ? absl::OkStatus() : made;
}

absl::Status HistoryFiles::SyncNamesAbove() const {
  for (size_t slash = name_.find('/'); slash != std::string::npos;
       slash = name_.find('/', slash + 1)) {
    H5M_RETURN_IF_ERROR(context_->durable_names.Sync(tree(), name_.substr(0, slash)));
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::store
