#include "onion_store/file/state/open_history.h"

#include "base/status_macros.h"
#include "onion_store/disk/coding.h"

namespace h5mirror::store {

absl::Status OpenHistory::Make() {
  if (is_made_) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(files_.MakeDirectories());
  is_made_ = true;
  return absl::OkStatus();
}

void OpenHistory::RemoveEmpty() {
  files_.tree().RemoveDirectory(files_.directory()).IgnoreError();
  is_made_ = has_new_names_ = false;
}

void OpenHistory::SetMark() {
  if (has_mark_) return;
  auto file = files_.tree().Open(files_.OpenMarkName(), OpenKind::kCreateFresh, 0600);
  if (file.ok()) WriteAt(**file, 0, files_.name()).IgnoreError();
  has_mark_ = file.ok();
  // In such a store only the mark shows a program that reads just the head that a crash left the
  // head between two cuts. So the mark must survive whatever the cuts survive.
  if (kind_ == StoreKind::kOneFile) has_new_names_ = true;
}

void OpenHistory::ClearMark() {
  if (!has_mark_) return;
  files_.tree().Remove(files_.OpenMarkName()).IgnoreError();
  has_mark_ = false;
}

}  // namespace h5mirror::store
