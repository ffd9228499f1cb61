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

}  // namespace h5mirror::vfd
