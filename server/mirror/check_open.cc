#include "server/mirror/check_open.h"

#include <string>
#include <string_view>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/store.h"
#include "server/state/convert.h"

namespace h5mirror::server {
namespace {

absl::Status CheckIdSize(std::string_view field, const std::string& id) {
  if (id.size() == 16) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(field, " has ", id.size(), " bytes; it has 16"));
}

}  // namespace

absl::Status CheckOpen(const v1::OpenSession& open) {
  H5M_RETURN_IF_ERROR(store::CheckName(open.name()));
  H5M_RETURN_IF_ERROR(CheckIdSize("open.session_id", open.session_id()));
  if (!open.file_id().empty()) {
    H5M_RETURN_IF_ERROR(CheckIdSize("open.file_id", open.file_id()));
  }
  if (open.has_base_barrier()) {
    H5M_RETURN_IF_ERROR(
        CheckIdSize("open.base_barrier.session_id", open.base_barrier().session_id()));
  }
  if (!open.renamed_from().empty()) H5M_RETURN_IF_ERROR(store::CheckName(open.renamed_from()));
  if (!v1::Intent_IsValid(open.intent()) || open.intent() == v1::INTENT_UNSPECIFIED) {
    return absl::InvalidArgumentError(
        StrCat("open.intent ", static_cast<int>(open.intent()), " is not one of this protocol"));
  }
  if (!open.join_secret().empty()) {
    H5M_RETURN_IF_ERROR(CheckIdSize("open.join_secret", open.join_secret()));
  }
  if (open.size_bytes() < 0) {
    return absl::InvalidArgumentError(
        StrCat("open.size_bytes ", open.size_bytes(), " is negative"));
  }
  if (open.mode_bits() > 0777) {
    return absl::InvalidArgumentError(StrCat("open.mode_bits ", open.mode_bits(), " exceeds 0777"));
  }
  if (!open.predecessor_session_id().empty()) {
    H5M_RETURN_IF_ERROR(CheckIdSize("open.predecessor_session_id", open.predecessor_session_id()));
  }
  const uint32_t page = open.page_size_bytes();
  if (page != 0 && (page < 512 || page > 65536 || (page & (page - 1)) != 0)) {
    return absl::InvalidArgumentError(
        StrCat("open.page_size_bytes ", page, " is neither 0 nor a power of two in 512..65536"));
  }
  H5M_RETURN_IF_ERROR(CheckWriter(open.writer()));
  return CheckOrigin(open.origin());
}

absl::Status CheckJoin(const v1::JoinSession& join) {
  H5M_RETURN_IF_ERROR(store::CheckName(join.name()));
  H5M_RETURN_IF_ERROR(CheckIdSize("join.session_id", join.session_id()));
  return CheckIdSize("join.join_secret", join.join_secret());
}

}  // namespace h5mirror::server
