// Session: a file that was renamed where it is written follows here.
#include "absl/cleanup/cleanup.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "server/calls/own_file.h"
#include "server/mirror/relation.h"
#include "server/mirror/session.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {

// Whether the caller may write the session's name also as that of the owner of `from`.
bool Session::MayGetNewName(const std::string& from) const {
  const Authenticator* const authenticator = environment_.authenticator;
  if (authenticator == nullptr || !authenticator->asks_owners()) return true;
  const auto owner = environment_.store.OwnerOf(from);
  return owner.ok() && authenticator->RightsTo(principal_, name_, &*owner).Has(Right::kWrite);
}

// Gives a file that was renamed where it is written its new name here too. Where it cannot be that,
// all stays as it is, and the open goes on as that of a file that is not there. `writer`: the
// session that writes the file under its old name.
absl::Status Session::FollowRename(const v1::OpenSession& open, const LeaseHolder& holder,
                                   std::optional<LeaseHolder>* writer) {
  if (open.renamed_from().empty() || open.intent() != v1::INTENT_CONTINUE) return absl::OkStatus();
  if (!absl::IsNotFound(environment_.store.OpenFile(open.name()).status())) {
    return absl::OkStatus();
  }
  // Without the right to write it, nothing is told of the old name, nor is its lease held.
  if (!RightsTo(open.renamed_from()).Has(Right::kWrite)) return absl::OkStatus();
  const auto claim = environment_.leases.Claim(open.renamed_from(), holder, nullptr);
  if (claim.lease == 0) {
    *writer = claim.holder;
    return absl::OkStatus();
  }
  const absl::Cleanup release = [&] {
    environment_.leases.Release(open.renamed_from(), claim.lease);
  };
  {
    const auto file = environment_.store.OpenFile(open.renamed_from());
    if (absl::IsNotFound(file.status())) return absl::OkStatus();
    H5M_RETURN_IF_ERROR(file.status());
    H5M_ASSIGN_OR_RETURN(const store::FileInfo info, (*file)->Info());
    if (!IsRenamed(open, info)) return absl::OkStatus();
    if (const absl::Status own = CheckOwnFile(principal_, RightsTo(open.renamed_from()), **file);
        !own.ok()) {
      spdlog::warn("move refused: file={} to {}, as if renamed on {}: {}",
                   Quoted(open.renamed_from()), Quoted(open.name()), LogValue(open.origin().host()),
                   ToStd(own.message()));
      return absl::OkStatus();
    }
  }
  if (!MayGetNewName(open.renamed_from())) return absl::OkStatus();
  // For the audit log: the rights to it were looked at above.
  H5M_RETURN_IF_ERROR(Require({.right = Right::kWrite, .shown = open.renamed_from()}, ""));
  if (environment_.quotas != nullptr) {
    H5M_RETURN_IF_ERROR(environment_.quotas->MayMove(open.renamed_from(), open.name()));
  }
  H5M_RETURN_IF_ERROR(environment_.store.Move(open.renamed_from(), open.name()));
  if (environment_.quotas != nullptr) environment_.quotas->Moved(open.renamed_from(), open.name());
  environment_.metrics.checks().Renamed(open.renamed_from(), open.name());
  spdlog::info("move: file={} to {}, as it was renamed on {} to {} ({})",
               Quoted(open.renamed_from()), Quoted(open.name()), LogValue(open.origin().host()),
               Quoted(open.origin().path()), CallerName(principal_));
  return absl::OkStatus();
}

}  // namespace h5mirror::server
