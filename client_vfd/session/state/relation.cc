#include "client_vfd/session/state/relation.h"

#include "base/server_list.h"

namespace h5mirror::vfd {

namespace {

// The claim that the record allows. Unless `same_file`, only that the file differs.
void ClaimByRecord(const LocalRecord& record, bool same_file, Relation* relation) {
  relation->claim = Claim::kContinue;
  relation->base_cut = -1;
  if (!same_file) return;
  if (record.state == RecordState::kClean) {
    relation->base_cut = record.cut;
  } else if (record.state != RecordState::kDiverged && record.pending_seq != 0) {
    relation->base_cut = record.cut;
    relation->base_session = record.pending_session_id;
    relation->base_seq = record.pending_seq;
  }
}

// A file that was renamed, or whose directory was: its record came along, or was found where it
// was. Only one that is certain to be its mirror's newest state is: else it would be overwritten
// by, or stand in the way of, a file that merely has its name.
std::optional<Relation> RelationOfRenamed(const LocalFacts& facts, const LocalRecord& record) {
  if (facts.created || !IsSameServer(record.server, facts.server) || record.name == facts.name ||
      record.file_id == Bytes16{}) {
    return std::nullopt;
  }
  Relation relation;
  ClaimByRecord(record, record.stat.EqualsButName(facts.stat_at_open), &relation);
  if (relation.base_cut < 0) return std::nullopt;
  relation.file_id = ToByteString(record.file_id);
  relation.renamed_from = record.renamed_from.empty() ? record.name : record.renamed_from;
  return relation;
}

// The server may have another address now, its root another machine. The record's cut counts as
// level if the server now at that address confirms it.
std::optional<Relation> RelationOfMoved(const LocalFacts& facts, const LocalRecord& record) {
  if (facts.created || IsSameServer(record.server, facts.server) || record.name != facts.name ||
      record.state != RecordState::kClean || record.stat != facts.stat_at_open || record.cut <= 0 ||
      record.file_id == Bytes16{} || !record.renamed_from.empty()) {
    return std::nullopt;
  }
  Relation relation;
  relation.claim = Claim::kContinue;
  relation.base_cut = -1;
  relation.file_id = ToByteString(record.file_id);
  relation.moved_cut = record.cut;
  relation.moved_stat = record.stat;
  return relation;
}

}  // namespace

Relation RelationOf(const LocalFacts& facts, const std::optional<LocalRecord>& record) {
  Relation relation;
  if (record) {
    if (std::optional<Relation> renamed = RelationOfRenamed(facts, *record)) return *renamed;
    if (std::optional<Relation> moved = RelationOfMoved(facts, *record)) return *moved;
  }
  // Else a record of another server, or of another name on it, says nothing about this one.
  const bool known =
      record && IsSameServer(record->server, facts.server) && record->name == facts.name;
  if (known && record->file_id != Bytes16{}) relation.file_id = ToByteString(record->file_id);
  if (facts.created) {
    relation.claim = Claim::kCreate;
    return relation;
  }
  if (!known) return relation;  // Upload.
  ClaimByRecord(*record, record->stat == facts.stat_at_open, &relation);
  relation.renamed_from = record->renamed_from;
  return relation;
}

std::optional<Relation> RelationOfOutsideChange(const LocalFacts& facts,
                                                const LocalRecord& record) {
  const bool closed = record.state == RecordState::kClean || record.state == RecordState::kBehind;
  if (facts.created || !closed || record.stat == facts.stat_at_open || record.name != facts.name ||
      !IsSameServer(record.server, facts.server)) {
    return std::nullopt;
  }
  LocalFacts as_closed = facts;
  as_closed.stat_at_open = record.stat;
  return RelationOf(as_closed, record);
}

Relation RelationOfMap(const DirtyMap& map, const Relation& by_record) {
  Relation relation;
  relation.file_id = by_record.file_id;
  switch (map.claim) {
    case DirtyMap::Claim::kCreate:
      relation.claim = Claim::kCreate;
      break;
    case DirtyMap::Claim::kUpload:
      relation.claim = Claim::kUpload;
      break;
    case DirtyMap::Claim::kResume:
    case DirtyMap::Claim::kContinue:
      relation.claim = Claim::kContinue;
      relation.base_cut = map.base_cut;
      relation.renamed_from = by_record.renamed_from;
      if (map.claim == DirtyMap::Claim::kResume || map.barrier_seq == 0) break;
      relation.base_session = map.session_id;
      relation.base_seq = map.barrier_seq;
      break;
  }
  return relation;
}

int64_t FirstBase(const Relation& relation) {
  const bool goes_on = relation.claim == Claim::kContinue || relation.claim == Claim::kChange;
  return goes_on ? relation.base_cut : 0;
}

StreamClaim StreamClaimOf(const Relation& relation, const SessionProgress& progress) {
  StreamClaim claim;
  claim.base_cut = progress.base_cut;
  // A stream that never got as far as a barrier left nothing behind: begin as at first. So does a
  // re-creation that was never answered: it replaces whatever became of the first attempt.
  const bool replaces = relation.claim == Claim::kCreate || relation.claim == Claim::kReplace;
  claim.resume =
      progress.sends_inherited || (progress.last_seq > 0 && (progress.ever_opened || !replaces));
  if (progress.begins_again) claim.resume = false;
  if (!claim.resume) claim.base_cut = FirstBase(relation);
  // An upload, a file known to differ, a rename and an unanswered barrier are for the server to
  // judge first:
  // a resume could not ask the same question again.
  const bool plain_continue = relation.claim == Claim::kContinue && relation.base_cut >= 0 &&
                              relation.base_seq == 0 && relation.renamed_from.empty();
  claim.may_send_early = !claim.resume && (relation.claim == Claim::kCreate || plain_continue);
  return claim;
}

}  // namespace h5mirror::vfd
