#include "client_vfd/session/relation.h"

namespace h5mirror::vfd {

Relation RelationOf(const LocalFacts& facts, const std::optional<LocalRecord>& record) {
  Relation relation;
  // A record of another server, or of another name on it, says nothing about this one.
  const bool known = record && record->server == facts.server && record->name == facts.name;
  if (known && record->file_id != Bytes16{}) relation.file_id = ToByteString(record->file_id);
  if (facts.created) {
    relation.claim = Claim::kCreate;
    return relation;
  }
  if (!known) return relation;  // Upload.
  relation.claim = Claim::kContinue;
  relation.base_cut = -1;
  if (record->stat != facts.stat_at_open) return relation;
  if (record->state == RecordState::kClean) {
    relation.base_cut = record->cut;
  } else if (record->state != RecordState::kDiverged && record->pending_seq != 0) {
    relation.base_cut = record->cut;
    relation.base_session = record->pending_session_id;
    relation.base_seq = record->pending_seq;
  }
  return relation;
}

int64_t FirstBase(const Relation& relation) {
  return relation.claim == Claim::kContinue ? relation.base_cut : 0;
}

StreamClaim StreamClaimOf(const Relation& relation, const SessionProgress& progress) {
  StreamClaim claim;
  claim.base_cut = progress.base_cut;
  // A stream that never got as far as a barrier left nothing behind: begin as at first. So does a
  // re-creation that was never answered: it replaces whatever became of the first attempt.
  claim.resume =
      progress.sends_inherited ||
      (progress.last_seq > 0 && (progress.ever_opened || relation.claim != Claim::kCreate));
  if (!claim.resume) claim.base_cut = FirstBase(relation);
  // An upload, a file known to differ and an unanswered barrier are for the server to judge first:
  // a resume could not ask the same question again.
  const bool plain_continue =
      relation.claim == Claim::kContinue && relation.base_cut >= 0 && relation.base_seq == 0;
  claim.may_send_early = !claim.resume && (relation.claim == Claim::kCreate || plain_continue);
  return claim;
}

}  // namespace h5mirror::vfd
