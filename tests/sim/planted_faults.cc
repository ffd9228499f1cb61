#include "tests/sim/planted_faults.h"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "base/dirty_map.h"
#include "base/local_record.h"
#include "client_vfd/session/state/cut_queue.h"
#include "client_vfd/session/state/relation.h"
#include "onion_store/file.h"
#include "onion_store/index/version_index.h"
#include "onion_store/shared/token_source.h"
#include "server/mirror/relation.h"
#include "server/state/lease_table.h"
#include "tests/sim/planted.h"

// For each function: the product's own, and the one that is called instead, by their linker names.
#define H5M_WRAPPED(result, name, symbol, ...)              \
  result Real##name(__VA_ARGS__) __asm__("__real_" symbol); \
  result Faulty##name(__VA_ARGS__) __asm__("__wrap_" symbol)

namespace h5mirror {
namespace sim {
namespace {

std::atomic<Fault> planted{Fault::kNone};

bool Is(Fault fault) { return planted == fault; }

// Two measures stop a stream that has lost its lease: the stream is ended, and its token is fenced.
// This fault removes the first.
bool RevocationIsLost() {
  return Is(Fault::kRevocationLost) || Is(Fault::kFenceDropped) || Is(Fault::kTokenReused);
}

bool IsIgnored(const std::string& name, const FaultChange& change) {
  if (change.kind != FaultChange::Kind::kSync) return false;
  const std::string base = name.substr(name.rfind('/') + 1);
  if (Is(Fault::kStageNotSynced)) return absl::StartsWith(base, "stage-");
  if (Is(Fault::kIndexNotSynced)) return absl::StartsWith(base, "index");
  return Is(Fault::kHeadNotSynced) &&
         (absl::EndsWith(base, ".h5") || absl::StartsWith(base, "gen-"));
}

FaultEnv::Lie Lie() {
  return [](const FaultDisk& disk, const FaultChange& change) {
    return IsIgnored(disk.NameOf(change.node), change);
  };
}

void TamperWith(rpc::DecodedRequest* request) {
  auto* const message = std::get_if<v1::MirrorFileRequest>(request);
  if (message != nullptr && message->has_open()) message->mutable_open()->set_stream(0);
}

}  // namespace

void Plant(Fault fault) {
  planted = fault;
  Hooks() = {};
  const bool lies =
      Is(Fault::kStageNotSynced) || Is(Fault::kIndexNotSynced) || Is(Fault::kHeadNotSynced);
  if (lies) Hooks().lie = Lie;
  if (RevocationIsLost()) Hooks().misses_revocations = RevocationIsLost;
  if (Is(Fault::kLateStreamsTaken)) Hooks().tamper = TamperWith;
}

}  // namespace sim

namespace store {

using sim::Fault;
using sim::Is;
using OnDurable = std::function<void(absl::StatusOr<DurableCut>)>;

H5M_WRAPPED(absl::StatusOr<Token>, Acquire, "_ZN8h5mirror5store8FileImpl7AcquireEv", File* self);
H5M_WRAPPED(absl::Status, Write,
            "_ZN8h5mirror5store8FileImpl5WriteEmN4absl7debian34SpanIKNS_6ExtentEEENS4_IKSt17basic_"
            "string_viewIcSt11char_traitsIcEEEE",
            File* self, Token token, absl::Span<const Extent> extents,
            absl::Span<const std::string_view> pieces);
H5M_WRAPPED(
    absl::StatusOr<CutNumber>, Cut,
    "_ZN8h5mirror5store8FileImpl3CutEmNS0_10CutRequestESt8functionIFvN4absl7debian38StatusOr"
    "INS0_10DurableCutEEEEE",
    File* self, Token token, CutRequest request, OnDurable on_durable);
H5M_WRAPPED(
    absl::Status, Begin,
    "_ZN8h5mirror5store8FileImpl5BeginEmNS0_12SessionStartERKNS0_6OriginERKNS0_11LocalAccessE",
    File* self, Token token, SessionStart start, const Origin& origin, const LocalAccess& local);
H5M_WRAPPED(absl::StatusOr<Token>, Next, "_ZN8h5mirror5store11TokenSource4NextEv",
            TokenSource* self);
H5M_WRAPPED(absl::Status, CommitCuts,
            "_ZN8h5mirror5store12VersionIndex10CommitCutsERKNS0_7FileRowEN4absl7debian34SpanIKNS0_"
            "10VersionRowEEERKSt8optionalINS0_13GenerationRowEE",
            VersionIndex* self, const FileRow& row, absl::Span<const VersionRow> versions,
            const std::optional<GenerationRow>& begins);

H5M_WRAPPED(absl::Status, WriteFileRow,
            "_ZN8h5mirror5store12VersionIndex12WriteFileRowERKNS0_7FileRowE", VersionIndex* self,
            const FileRow& row);

namespace {

FileRow Kept(const FileRow& row) {
  FileRow kept = row;
  if (Is(Fault::kCutNumbersAgain)) kept.cut_reserved = row.durable_cut + 1;
  return kept;
}

// For each file, the token that may write it.
std::mutex tokens_mutex;
std::map<const File*, Token>& Tokens() {
  static auto& tokens = *new std::map<const File*, Token>;
  return tokens;
}

Token NewestOf(const File* file, Token token) {
  const std::lock_guard<std::mutex> lock(tokens_mutex);
  const auto found = Tokens().find(file);
  return found == Tokens().end() ? token : found->second;
}

}  // namespace

absl::StatusOr<Token> FaultyAcquire(File* self) {
  absl::StatusOr<Token> token = RealAcquire(self);
  if (!Is(Fault::kFenceDropped) || !token.ok()) return token;
  const std::lock_guard<std::mutex> lock(tokens_mutex);
  Tokens()[self] = *token;
  return token;
}

absl::Status FaultyWrite(File* self, Token token, absl::Span<const Extent> extents,
                         absl::Span<const std::string_view> pieces) {
  if (Is(Fault::kFenceDropped)) token = NewestOf(self, token);
  return RealWrite(self, token, extents, pieces);
}

absl::StatusOr<CutNumber> FaultyCut(File* self, Token token, CutRequest request,
                                    OnDurable on_durable) {
  if (Is(Fault::kFenceDropped)) token = NewestOf(self, token);
  if (!Is(Fault::kAckBeforeDurable)) {
    return RealCut(self, token, std::move(request), std::move(on_durable));
  }
  const BarrierId barrier = request.barrier;
  const absl::StatusOr<CutNumber> cut =
      RealCut(self, token, std::move(request), [](const absl::StatusOr<DurableCut>&) {});
  if (cut.ok()) on_durable(DurableCut{*cut, barrier});
  return cut;
}

absl::Status FaultyBegin(File* self, Token token, SessionStart start, const Origin& origin,
                         const LocalAccess& local) {
  if (Is(Fault::kGenerationContinued)) start = SessionStart::kContinue;
  return RealBegin(self, token, start, origin, local);
}

absl::StatusOr<Token> FaultyNext(TokenSource* self) {
  if (Is(Fault::kTokenReused)) return Token{1};
  return RealNext(self);
}

absl::Status FaultyCommitCuts(VersionIndex* self, const FileRow& row,
                              absl::Span<const VersionRow> versions,
                              const std::optional<GenerationRow>& begins) {
  return RealCommitCuts(self, Kept(row), versions, begins);
}

absl::Status FaultyWriteFileRow(VersionIndex* self, const FileRow& row) {
  return RealWriteFileRow(self, Kept(row));
}

}  // namespace store

namespace server {

using sim::Fault;
using sim::Is;

H5M_WRAPPED(LeaseTable::ClaimResult, Claim,
            "_ZN8h5mirror6server10LeaseTable5ClaimESt17basic_string_viewIcSt11char_traitsIcEENS0_"
            "11LeaseHolderESt8functionIFvN4absl7debian36StatusEEE",
            LeaseTable* self, std::string_view name, LeaseHolder holder, LeaseTable::Revoke revoke);
H5M_WRAPPED(RelationDecision, DecideRelation,
            "_ZN8h5mirror6server14DecideRelationERKNS_2v111OpenSessionERKNS_5store8FileInfoENS0_"
            "5BeganE",
            const v1::OpenSession& open, const store::FileInfo& info, Began began);

LeaseTable::ClaimResult FaultyClaim(LeaseTable* self, std::string_view name, LeaseHolder holder,
                                    LeaseTable::Revoke revoke) {
  if (sim::RevocationIsLost()) revoke = [](const absl::Status&) {};
  return RealClaim(self, name, std::move(holder), std::move(revoke));
}

RelationDecision FaultyDecideRelation(const v1::OpenSession& open, const store::FileInfo& info,
                                      Began began) {
  RelationDecision decision = RealDecideRelation(open, info, began);
  const bool taken = (Is(Fault::kResumePastARestart) && open.intent() == v1::INTENT_RESUME) ||
                     (Is(Fault::kContinueUnchecked) && open.intent() == v1::INTENT_CONTINUE);
  if (taken && info.last_cut != 0) decision.relation = v1::RELATION_MATCH;
  return decision;
}

}  // namespace server

namespace vfd {

using sim::Fault;
using sim::Is;

H5M_WRAPPED(void, SendAgain, "_ZN8h5mirror3vfd8CutQueue9SendAgainEv", CutQueue* self);
H5M_WRAPPED(std::vector<Extent>, AtRisk, "_ZNK8h5mirror3vfd8CutQueue6AtRiskENS_6ExtentE",
            const CutQueue* self, Extent extent);
H5M_WRAPPED(void, Truncate, "_ZN8h5mirror3vfd8CutQueue8TruncateEm", CutQueue* self,
            uint64_t size_bytes);
H5M_WRAPPED(Relation, RelationOf,
            "_ZN8h5mirror3vfd10RelationOfERKNS0_10LocalFactsERKSt8optionalINS_11LocalRecordEE",
            const LocalFacts& facts, const std::optional<LocalRecord>& record);

void FaultySendAgain(CutQueue* self) {
  if (Is(Fault::kDirtyBitsClearedEarly)) self->ForgetDurable(self->last_seq());
  RealSendAgain(self);
}

std::vector<Extent> FaultyAtRisk(const CutQueue* self, Extent extent) {
  if (Is(Fault::kNoCopyOut)) return {};
  return RealAtRisk(self, extent);
}

void FaultyTruncate(CutQueue* self, uint64_t size_bytes) {
  if (!Is(Fault::kTruncateForgotten)) RealTruncate(self, size_bytes);
}

Relation FaultyRelationOf(const LocalFacts& facts, const std::optional<LocalRecord>& record) {
  if (!Is(Fault::kUncleanFileTrusted) || !record) return RealRelationOf(facts, record);
  std::optional<LocalRecord> trusted = record;
  trusted->stat = facts.stat_at_open;
  if (trusted->state == RecordState::kOpen) trusted->state = RecordState::kClean;
  return RealRelationOf(facts, trusted);
}

}  // namespace vfd

using sim::Fault;
using sim::Is;

H5M_WRAPPED(absl::Status, WriteDirtyMap,
            "_ZN8h5mirror13WriteDirtyMapERKNS_11RecordPlaceERKNS_8DirtyMapE",
            const RecordPlace& place, const DirtyMap& map);
H5M_WRAPPED(std::optional<DirtyMap>, FindDirtyMap,
            "_ZN8h5mirror12FindDirtyMapERKNS_11RecordPlaceERKNS_11LocalRecordERKNS_8FileStatE",
            const RecordPlace& place, const LocalRecord& record, const FileStat& now);
H5M_WRAPPED(absl::Status, WriteLocalRecord,
            "_ZN8h5mirror16WriteLocalRecordERKNS_11RecordPlaceERKNS_11LocalRecordE",
            const RecordPlace& place, const LocalRecord& record);

absl::Status FaultyWriteDirtyMap(const RecordPlace& place, const DirtyMap& map) {
  if (!Is(Fault::kMapWithoutExtents)) return RealWriteDirtyMap(place, map);
  DirtyMap emptied = map;
  emptied.extents = ExtentSet(DirtyMap::kExtentsMax);
  return RealWriteDirtyMap(place, emptied);
}

// The record has the file's state at the time the map was written.
std::optional<DirtyMap> FaultyFindDirtyMap(const RecordPlace& place, const LocalRecord& record,
                                           const FileStat& now) {
  return RealFindDirtyMap(place, record, Is(Fault::kMapOfAnyState) ? record.stat : now);
}

absl::Status FaultyWriteLocalRecord(const RecordPlace& place, const LocalRecord& record) {
  if (!Is(Fault::kRecordSaysClean) || record.state != RecordState::kBehind) {
    return RealWriteLocalRecord(place, record);
  }
  LocalRecord clean = record;
  clean.state = RecordState::kClean;
  return RealWriteLocalRecord(place, clean);
}

}  // namespace h5mirror
