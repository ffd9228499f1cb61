#include "onion_store/file/writer/writer_session.h"

#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::store {

void WriterSession::Lease(Token token) {
  End();
  token_ = token;
  phase_ = WriterPhase::kLeased;
}

absl::Status WriterSession::CheckLease(const std::string& name, Token token) const {
  if (token != 0 && token == token_) return absl::OkStatus();
  return absl::AbortedError(StrCat(name, ": token ", token, " is fenced"));
}

absl::Status WriterSession::CheckWriting(const std::string& name, Token token) const {
  if (token != 0 && token == token_ && is_writing()) return absl::OkStatus();
  return absl::AbortedError(StrCat(name, ": token ", token,
                                   " is fenced: another session was "
                                   "given the lease, or this one has ended"));
}

absl::Status WriterSession::CheckCanWrite(const std::string& name, Token token) const {
  H5M_RETURN_IF_ERROR(CheckWriting(name, token));
  return error_;
}

absl::Status WriterSession::Note(Token token, absl::Status status) {
  if (!status.ok() && token == token_) {
    error_ = status;
    phase_ = WriterPhase::kFailed;
  }
  return status;
}

void WriterSession::NoteCut(const Provenance& provenance) {
  ++cut_count_;
  if (provenance != Provenance()) provenance_ = provenance;
}

}  // namespace h5mirror::store
