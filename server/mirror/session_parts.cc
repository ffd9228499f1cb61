// Parts of a cut: a stream that joins another one's session (JoinSession of mirror.proto), and what
// that session does with its bytes.
//
//   joined stream   join, writes ..., half-close --> part_taken
//   session         open, writes ..., barrier(part_bytes) --> cut_visible
//
// The session orders both: a write of a part and a barrier exclude each other (work_mutex_). A
// barrier ends all parts that were begun before it, since their bytes are those of its cut.
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/store.h"
#include "openssl/crypto.h"
#include "server/mirror/check_open.h"
#include "server/mirror/session.h"
#include "server/state/convert.h"

namespace h5mirror::server {
namespace {

absl::Status IsOver(const std::string& name) {
  return absl::AbortedError(
      StrCat(name, ": no stream to join: it has ended, or a barrier has come since"));
}

bool IsSame(const std::string& secret, const std::string& shown) {
  return secret.size() == shown.size() &&
         CRYPTO_memcmp(secret.data(), shown.data(), secret.size()) == 0;
}

}  // namespace

absl::Status Session::Join(const v1::JoinSession& join) {
  {
    absl::MutexLock lock(&mutex_);
    phase_ = Phase::kOpening;
    heard_ = environment_.clock.Monotonic();
  }
  H5M_RETURN_IF_ERROR(CheckJoin(join));
  H5M_ASSIGN_OR_RETURN(session_id_, FromByteString(join.session_id()));
  name_ = join.name();
  H5M_RETURN_IF_ERROR(Require({Right::kWrite, name_}, ""));
  H5M_RETURN_IF_ERROR(CheckOwner());
  Part part{environment_.memory.FindOpen(MemoryKey()), join.token(), join.after_cuts()};
  if (part.lead == nullptr || !part.lead->MayJoin(join)) return IsOver(name_);
  absl::MutexLock lock(&mutex_);
  part_ = std::move(part);
  phase_ = Phase::kWriting;
  return absl::OkStatus();
}

bool Session::MayJoin(const v1::JoinSession& join) {
  const absl::MutexLock work(&work_mutex_);
  return !join_secret_.empty() && IsSame(join_secret_, join.join_secret()) &&
         IsNext(join.token(), join.after_cuts());
}

// Of a session that has begun: the place is that of its next cut.
bool Session::IsNext(store::Token token, uint64_t after_cuts) const {
  const absl::MutexLock lock(&mutex_);
  return phase_ == Phase::kWriting && token == token_ && after_cuts == cut_count_;
}

absl::Status Session::WritePart(const Part& part, const rpc::WritesView& writes) {
  const absl::MutexLock work(&work_mutex_);
  if (!IsNext(part.token, part.after_cuts)) return IsOver(name_);
  environment_.leases.Renew(name_, lease_);
  return WriteNow(writes);
}

absl::Status Session::EndPart(const Part& part) {
  const absl::MutexLock work(&work_mutex_);
  if (!IsNext(part.token, part.after_cuts)) return IsOver(name_);
  part_bytes_ += part.bytes;
  return absl::OkStatus();
}

absl::Status Session::HandlePart(const rpc::DecodedRequest& request) {
  const auto* writes = std::get_if<rpc::WritesView>(&request);
  if (writes == nullptr) {
    return absl::InvalidArgumentError("a stream behind `join` has `writes` only");
  }
  H5M_RETURN_IF_ERROR(rpc::CheckPayload(*writes));
  H5M_RETURN_IF_ERROR(part_->lead->WritePart(*part_, *writes));
  part_->bytes += writes->data_bytes;
  absl::MutexLock lock(&mutex_);
  heard_ = environment_.clock.Monotonic();
  return absl::OkStatus();
}

// All of it has come, or what came of it does not count.
absl::Status Session::FinishPart() {
  H5M_RETURN_IF_ERROR(part_->lead->EndPart(*part_));
  v1::MirrorFileResponse response;
  response.mutable_part_taken()->set_bytes(part_->bytes);
  absl::MutexLock lock(&mutex_);
  Send(std::move(response));
  return absl::OkStatus();
}

// A part has no lease that ends when its client says nothing.
bool Session::IsIdlePart() const {
  absl::MutexLock lock(&mutex_);
  return part_.has_value() && phase_ == Phase::kWriting && !in_hand_ && !held_back_ &&
         environment_.clock.Monotonic() - heard_ > environment_.leases.ttl();
}

}  // namespace h5mirror::server
