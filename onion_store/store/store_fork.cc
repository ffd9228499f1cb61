// A new file from another one's version: docs/design/044-forks.md.
#include <memory>
#include <string>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/shared/new_name.h"
#include "onion_store/store/store_impl.h"

namespace h5mirror::store {

absl::StatusOr<VersionInfo> StoreImpl::Fork(File& source, VersionNumber version,
                                            std::string_view new_name, const ForkRequest& request) {
  H5M_RETURN_IF_ERROR(CheckNewName(new_name));
  auto* const from = dynamic_cast<FileImpl*>(&source);
  if (from == nullptr) {
    return absl::InvalidArgumentError(StrCat(source.name(), " is no file of this store"));
  }
  const auto taken = Find(new_name, FileImpl::IfMissing::kFail, 0);
  if (taken.ok()) return FindFork(**taken, request);
  if (!absl::IsNotFound(taken.status())) return taken.status();
  H5M_ASSIGN_OR_RETURN(const bool has_head, context_->tree->Exists(new_name));
  if (has_head) return absl::AlreadyExistsError(StrCat(new_name, " exists: choose another name"));
  H5M_ASSIGN_OR_RETURN(const std::shared_ptr<FileImpl> fork,
                       Find(new_name, FileImpl::IfMissing::kCreate, from->page_size_bytes()));
  return fork->BecomeFork(*from, version, request);
}

absl::StatusOr<VersionInfo> StoreImpl::FindFork(FileImpl& taken, const ForkRequest& request) {
  const auto done = taken.FindRequest(request.request_id);
  if (done.ok()) return taken.GetVersion(done->version);
  if (!absl::IsNotFound(done.status())) return done.status();
  return absl::AlreadyExistsError(StrCat(taken.name(), " exists: choose another name"));
}

}  // namespace h5mirror::store
