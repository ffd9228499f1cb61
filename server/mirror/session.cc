#include "server/mirror/session.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/memory/memory.h"
#include "base/hex.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "base/version.h"
#include "rpc/channel.h"
#include "rpc/elsewhere.h"
#include "server/calls/call.h"
#include "server/calls/head_reader.h"
#include "server/mirror/check_open.h"
#include "server/mirror/relation.h"
#include "server/state/ack_gate.h"
#include "server/state/convert.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

// For the half-close of the writer's session before: it was sent before this stream's `open`.
constexpr absl::Duration kPredecessorWait = absl::Milliseconds(250);

LeaseHolder MakeHolder(const v1::OpenSession& open, const store::SessionId& session_id,
                       const Principal& principal, const std::string& peer, absl::Time since) {
  LeaseHolder holder;
  holder.session_id = session_id;
  holder.claimed_user = open.writer().claimed_user();
  holder.verified_user = principal.name;
  holder.host = open.writer().host();
  holder.program = open.writer().program();
  holder.pid = open.writer().pid();
  holder.peer = peer;
  holder.since = since;
  return holder;
}

}  // namespace

class Session::InHand {
 public:
  explicit InHand(Session& session) : session_(session) {
    absl::MutexLock lock(&session_.mutex_);
    session_.in_hand_ = true;
  }
  ~InHand() {
    std::optional<Ending> ending;
    {
      absl::MutexLock lock(&session_.mutex_);
      session_.in_hand_ = false;
      ending = std::exchange(session_.deferred_, std::nullopt);
    }
    if (ending.has_value()) session_.End(*std::move(ending));
  }

 private:
  Session& session_;
};

std::shared_ptr<Session> Session::Create(const SessionEnvironment& environment, Principal principal,
                                         std::string peer, SessionOutput& output) {
  return absl::WrapUnique(new Session(environment, std::move(principal), std::move(peer), output));
}

Session::Session(const SessionEnvironment& environment, Principal principal, std::string peer,
                 SessionOutput& output)
    : environment_(environment),
      principal_(std::move(principal)),
      peer_(std::move(peer)),
      space_(environment.quotas),
      output_(&output),
      started_(environment.clock.Monotonic()) {
  environment_.metrics.SessionOpened();
}

Session::~Session() {
  absl::MutexLock lock(&mutex_);
  environment_.metrics.SessionEnded(final_status_.code());
}

bool Session::WantsOpen() const {
  absl::MutexLock lock(&mutex_);
  return phase_ == Phase::kNew;
}

bool Session::MayRead() const {
  absl::MutexLock lock(&mutex_);
  return barriers_.size() < environment_.open_barriers_max;
}

void Session::Detach() {
  absl::MutexLock lock(&mutex_);
  output_ = nullptr;
}

void Session::OnRequest(const rpc::DecodedRequest& request) {
  const InHand in_hand(*this);
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ == Phase::kEnding || phase_ == Phase::kEnded) return;  // Sent before it knew.
  }
  if (lease_ != 0) environment_.leases.Renew(name_, lease_);
  if (absl::Status status = Handle(request); !status.ok()) {
    RequestEnd({store::SessionEnd::kLost, std::move(status), /*wait_for_barriers=*/false});
  }
}

absl::Status Session::Handle(const rpc::DecodedRequest& request) {
  const auto* message = std::get_if<v1::MirrorFileRequest>(&request);
  const bool is_open = message != nullptr && (message->has_open() || message->has_join());
  if (WantsOpen() != is_open) {
    return absl::InvalidArgumentError(
        is_open ? "a second `open` on one stream"
                : "the first message of a stream must be `open` or `join`");
  }
  if (part_) return HandlePart(request);
  if (message == nullptr) return Write(std::get<rpc::WritesView>(request));
  switch (message->request_case()) {
    case v1::MirrorFileRequest::kOpen:
      return Open(message->open());
    case v1::MirrorFileRequest::kJoin:
      return Join(message->join());
    case v1::MirrorFileRequest::kTruncate:
      return Truncate(message->truncate());
    case v1::MirrorFileRequest::kBarrier:
      return Cut(message->barrier());
    case v1::MirrorFileRequest::kKeepAlive:
      return KeepAlive(message->keep_alive());
    default:
      return absl::InvalidArgumentError("a request that this protocol does not have");
  }
}

void Session::OnBadRequest(const absl::Status& status) {
  RequestEnd({store::SessionEnd::kLost, status, /*wait_for_barriers=*/false});
}

void Session::OnHalfClose() {
  absl::Status status;
  if (WantsOpen()) status = absl::InvalidArgumentError("the stream ended before its `open`");
  if (part_) status = FinishPart();
  RequestEnd({store::SessionEnd::kClean, status, /*wait_for_barriers=*/true});
}

void Session::OnLost() {
  RequestEnd({store::SessionEnd::kLost, absl::CancelledError("the stream broke"),
              /*wait_for_barriers=*/false});
}

void Session::OnStop() {
  // The writer is alive and comes back: its last cut stays, and is no "writer lost".
  RequestEnd({store::SessionEnd::kClean,
              absl::UnavailableError("the server is stopping; safe to retry"),
              /*wait_for_barriers=*/true});
}

bool Session::StopBelow(std::string_view prefix) {
  {
    absl::MutexLock lock(&mutex_);
    if (opened_name_.empty() || !opened_name_.starts_with(prefix)) return false;
    if (phase_ == Phase::kEnded) return false;
  }
  RequestEnd({store::SessionEnd::kClean,
              absl::UnavailableError(
                  "the file's cell is being handed over to another server; safe to retry"),
              /*wait_for_barriers=*/true});
  return true;
}

void Session::OnRevoked(const absl::Status& status) {
  // A login or token that has ended, or a server: the writer comes back. Its last cut stays, and is
  // no "writer lost".
  const auto end = absl::IsUnauthenticated(status) || absl::IsUnavailable(status)
                       ? store::SessionEnd::kClean
                       : store::SessionEnd::kLost;
  RequestEnd({end, status, /*wait_for_barriers=*/false});
}

void Session::RequestEnd(Ending ending) {
  {
    absl::MutexLock lock(&mutex_);
    if (in_hand_) {
      if (!deferred_.has_value()) deferred_ = std::move(ending);
      return;
    }
  }
  End(std::move(ending));
}

void Session::End(Ending ending) {
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ == Phase::kEnding || phase_ == Phase::kEnded) return;
    phase_ = Phase::kEnding;
    if (final_status_.ok()) final_status_ = ending.status;
    wait_for_barriers_ = ending.wait_for_barriers;
    TellRates();
  }
  if (!join_secret_.empty()) environment_.memory.RemoveOpen(MemoryKey(), weak_from_this());
  const absl::MutexLock work(&work_mutex_);  // Writes of parts that are under way come before.
  if (token_ != 0) {
    const absl::Status ended = file_->End(token_, ending.end);
    // kAborted: fenced before, so there is nothing left to end.
    if (!ended.ok() && !absl::IsAborted(ended)) {
      spdlog::error("{}: end of session: {}", name_, ended.ToString());
    }
    if (environment_.mirrors != nullptr) TellEnding(ending);
  }
  space_.End();
  if (lease_ != 0) environment_.leases.Release(name_, lease_);
  absl::MutexLock lock(&mutex_);
  FinishIfDone();
}

void Session::FinishIfDone() {
  if (phase_ != Phase::kEnding) return;
  if (wait_for_barriers_ && !barriers_.empty()) return;
  phase_ = Phase::kEnded;
  if (output_ != nullptr) output_->Finish(final_status_);
  LogEnd(final_status_);
}

void Session::Send(v1::MirrorFileResponse response) {
  if (output_ != nullptr) output_->Send(std::move(response));
}

void Session::LogEnd(const absl::Status& status) const {
  const std::string how = status.ok() ? "in order" : status.ToString();
  if (part_) {
    spdlog::info("part end: file={} peer={} verified={} received={} end: {}", Quoted(name_), peer_,
                 principal_.name, HumanBytes(part_->bytes), how);
    return;
  }
  if (token_ == 0) {
    // In a cluster each writer of a lost server asks for its successor, several times a second.
    const bool is_elsewhere = rpc::ElsewhereOf(status).has_value() || rpc::IsNobodyServes(status);
    spdlog::log(is_elsewhere ? spdlog::level::debug : spdlog::level::info,
                "session refused: file={} peer={} user={} verified={}: {}", Quoted(name_), peer_,
                LogValue(writer_.claimed_user()), principal_.name, how);
    return;
  }
  const absl::Duration took = environment_.clock.Monotonic() - started_;
  spdlog::log(
      status.ok() || absl::IsUnavailable(status) ? spdlog::level::info : spdlog::level::warn,
      "session end: file={} peer={} lease={} received={} cuts={} time={} end: {}", Quoted(name_),
      peer_, token_, HumanBytes(received_bytes_), cut_count_, HumanDuration(took), how);
}

absl::StatusOr<std::shared_ptr<store::File>> Session::FindFile(const v1::OpenSession& open) {
  if (open.intent() == v1::INTENT_CONTINUE) return environment_.store.OpenFile(open.name());
  return environment_.store.OpenOrCreateFile(open.name(), open.page_size_bytes());
}

absl::Status Session::Refuse(v1::SessionOpened opened, v1::Relation relation, std::string state) {
  opened.set_relation(relation);
  opened.set_state(state);
  v1::MirrorFileResponse response;
  *response.mutable_opened() = std::move(opened);
  absl::MutexLock lock(&mutex_);
  Send(std::move(response));
  return absl::FailedPreconditionError(std::move(state));
}

absl::Status Session::Require(const Need& need, std::string claimed) {
  SessionOutput* output;
  {
    absl::MutexLock lock(&mutex_);
    output = output_;
  }
  if (output == nullptr) return absl::CancelledError("the stream is gone");
  return output->Require(need, std::move(claimed));
}

SessionMemory::Key Session::MemoryKey() const {
  return SessionMemory::KeyOf(CallerName(principal_), name_, session_id_);
}

Rights Session::RightsTo(const std::string& name) const {
  return environment_.authenticator == nullptr
             ? principal_.rights
             : environment_.authenticator->RightsTo(principal_, name);
}

std::string Session::Busy(const std::string& name, const LeaseHolder& holder) const {
  if (environment_.authenticator != nullptr) {
    return BeingWritten(*environment_.authenticator, principal_, name, holder);
  }
  return StrCat(name, " is being written by ", holder.Describe());
}

absl::Status Session::CheckOwner() const {
  const Authenticator* const authenticator = environment_.authenticator;
  if (authenticator == nullptr || !authenticator->asks_owners()) return absl::OkStatus();
  return authenticator->Check(principal_, {Right::kWrite, name_});
}

absl::Status Session::Open(const v1::OpenSession& open) {
  {
    absl::MutexLock lock(&mutex_);
    phase_ = Phase::kOpening;
    writer_ = open.writer();
    opened_name_ = open.name();
  }
  H5M_ASSIGN_OR_RETURN(const uint32_t protocol, NegotiateProtocol(open.protocol()));
  H5M_RETURN_IF_ERROR(CheckOpen(open));
  H5M_ASSIGN_OR_RETURN(session_id_, FromByteString(open.session_id()));
  H5M_ASSIGN_OR_RETURN(VersionSchedule schedule, VersionSchedule::Make(open));
  {
    absl::MutexLock lock(&mutex_);
    schedule_ = schedule;
  }
  name_ = open.name();
  // Before all that tells of the file, or changes what is known of it.
  H5M_RETURN_IF_ERROR(Require({Right::kWrite, name_}, Account()));
  // Before it takes the lease: from the very stream that it is a copy of, as like as not.
  if (open.stream() != 0 && !environment_.memory.IsNextStream(MemoryKey(), open.stream())) {
    return absl::AbortedError(StrCat(name_, ": stream ", open.stream(), " of session ",
                                     HexOf(session_id_),
                                     " is a late duplicate: a later one has been here"));
  }

  v1::SessionOpened opened;
  opened.set_protocol(protocol);
  opened.set_server_incarnation(ToByteString(environment_.store.incarnation()));
  opened.set_lease_ttl_ms(
      static_cast<uint32_t>(absl::ToInt64Milliseconds(environment_.leases.ttl())));
  opened.set_max_frame_bytes(rpc::kMaxFrameBytes);
  opened.set_server_version(std::string(kVersion));

  const LeaseHolder holder =
      MakeHolder(open, session_id_, principal_, peer_, environment_.clock.Now());
  if (!open.predecessor_session_id().empty()) {
    H5M_ASSIGN_OR_RETURN(const store::SessionId before,
                         FromByteString(open.predecessor_session_id()));
    environment_.leases.AwaitRelease(name_, before, kPredecessorWait);
  }
  auto claim = environment_.leases.Claim(name_, holder,
                                         [weak = weak_from_this()](const absl::Status& status) {
                                           if (const std::shared_ptr<Session> session = weak.lock())
                                             session->OnRevoked(status);
                                         });
  if (claim.lease == 0) {
    return Refuse(std::move(opened), v1::RELATION_BUSY, Busy(name_, *claim.holder));
  }
  lease_ = claim.lease;

  std::optional<LeaseHolder> old_name_writer;
  H5M_RETURN_IF_ERROR(FollowRename(open, holder, &old_name_writer));
  if (old_name_writer) {
    return Refuse(std::move(opened), v1::RELATION_BUSY,
                  StrCat(open.renamed_from(), ", which was renamed to ", name_,
                         ", is being written by ", old_name_writer->Describe()));
  }
  // A file that is there counts already.
  {
    const absl::MutexLock work(&work_mutex_);
    H5M_RETURN_IF_ERROR(space_.Open(name_, static_cast<uint64_t>(open.size_bytes()),
                                    open.intent() != v1::INTENT_CONTINUE));
  }
  auto file = FindFile(open);
  if (absl::IsNotFound(file.status())) {
    return Refuse(
        std::move(opened), v1::RELATION_DIVERGED,
        StrCat(name_, ": the server has no such file, the local file has a record of one"));
  }
  H5M_RETURN_IF_ERROR(file.status());
  // Another session may have made it before this one got the lease.
  H5M_RETURN_IF_ERROR(CheckOwner());
  file_ = *std::move(file);
  return Begin(open, std::move(opened));
}

absl::Status Session::Begin(const v1::OpenSession& open, v1::SessionOpened opened) {
  H5M_ASSIGN_OR_RETURN(store::FileInfo info, file_->Info());
  const RelationDecision decision = DecideRelation(
      open, info,
      environment_.memory.BeganNew(MemoryKey()) ? Began::kNewGeneration : Began::kUnknown);
  opened.set_file_id(ToByteString(info.file_id));
  opened.set_page_size_bytes(info.page_size_bytes);
  if (decision.relation == v1::RELATION_DIVERGED) {
    opened.set_last_cut(info.last_cut);
    opened.set_durable_cut(info.durable_cut);
    if (TellsOfMirror(open, info) && environment_.mirrors != nullptr) {
      TellDiverged(info, decision.reason);
    }
    return Refuse(std::move(opened), v1::RELATION_DIVERGED,
                  StrCat(name_, ": ", DescribeHead(info), "; ", decision.reason));
  }
  const bool is_new = decision.relation == v1::RELATION_NEW;
  if (is_new) environment_.memory.RememberNew(MemoryKey());
  H5M_ASSIGN_OR_RETURN(token_, file_->Acquire());
  environment_.leases.SetToken(name_, lease_, token_);
  H5M_RETURN_IF_ERROR(file_->Begin(
      token_, is_new ? store::SessionStart::kNewGeneration : store::SessionStart::kContinue,
      FromProto(open.origin()),
      {open.mode_bits(), HeadReaderOf(principal_, RightsTo(name_)), OwnerName(principal_)}));
  H5M_ASSIGN_OR_RETURN(info, file_->Info());  // Fencing may have made a cut durable.
  H5M_RETURN_IF_ERROR(AwaitAck(*file_));      // `opened` tells of it.
  {
    const absl::MutexLock work(&work_mutex_);
    is_new ? space_.BeginGeneration() : space_.Begin(info.size_bytes);
  }
  file_id_ = info.file_id;
  if (environment_.mirrors != nullptr) environment_.mirrors->Connected(name_, file_id_, token_);

  opened.set_relation(decision.relation);
  opened.set_file_id(ToByteString(info.file_id));
  opened.set_token(token_);
  if (!is_new) {  // A new generation has no cut yet; the old one's are nobody's base.
    opened.set_last_cut(info.last_cut);
    opened.set_durable_cut(info.durable_cut);
  }
  opened.set_last_barrier_seq(decision.last_barrier_seq);
  const bool durable_now = decision.last_barrier_seq != 0 && info.durable_cut == info.last_cut;
  opened.set_durable_barrier_seq(durable_now ? decision.last_barrier_seq
                                             : decision.durable_barrier_seq);
  spdlog::info("session start: file={} peer={} user={}@{} program={} verified={} {} {} lease={}",
               Quoted(name_), peer_, LogValue(writer_.claimed_user()), LogValue(writer_.host()),
               LogValue(writer_.program()), principal_.name, v1::Intent_Name(open.intent()),
               v1::Relation_Name(decision.relation), token_);

  if (!open.join_secret().empty()) {
    join_secret_ = open.join_secret();
    opened.set_takes_parts(true);
    environment_.memory.AddOpen(MemoryKey(), weak_from_this());
  }

  absl::MutexLock lock(&mutex_);
  phase_ = Phase::kWriting;
  schedule_.Newest(info.newest_version.version, info.newest_version.server_time);
  if (open.intent() == v1::INTENT_RESUME) {
    last_seq_ = decision.last_barrier_seq;
    if (!durable_now && last_seq_ != opened.durable_barrier_seq()) resumed_seq_ = last_seq_;
  }
  v1::MirrorFileResponse response;
  *response.mutable_opened() = std::move(opened);
  Send(std::move(response));
  return absl::OkStatus();
}

absl::Status Session::Write(const rpc::WritesView& writes) {
  H5M_RETURN_IF_ERROR(rpc::CheckPayload(writes));
  const absl::MutexLock work(&work_mutex_);
  return WriteNow(writes);
}

absl::Status Session::WriteNow(const rpc::WritesView& writes) {
  closed_cleanly_ = false;
  H5M_RETURN_IF_ERROR(space_.Write(writes.extents));
  H5M_RETURN_IF_ERROR(file_->Write(token_, writes.extents, writes.pieces));
  environment_.metrics.BytesReceived(writes.data_bytes);
  absl::MutexLock lock(&mutex_);
  received_bytes_ += writes.data_bytes;
  return absl::OkStatus();
}

absl::Status Session::Truncate(const v1::Truncate& truncate) {
  if (truncate.size_bytes() > kFileSizeMax) {
    return absl::InvalidArgumentError(
        StrCat("truncate.size_bytes ", truncate.size_bytes(), " is beyond 2^63-1"));
  }
  const absl::MutexLock work(&work_mutex_);
  closed_cleanly_ = false;
  space_.Truncate(truncate.size_bytes());
  return file_->Truncate(token_, truncate.size_bytes());
}

absl::Status Session::KeepAlive(const v1::KeepAlive& keep_alive) {
  if (!keep_alive.has_mirror()) return absl::OkStatus();
  if (keep_alive.mirror().state() == v1::MIRROR_STATE_DEGRADED) {
    // The program has failed. As after a kill, only its flushed bytes survive.
    RequestEnd({store::SessionEnd::kLost, absl::OkStatus(), /*wait_for_barriers=*/true});
    return absl::OkStatus();
  }
  H5M_RETURN_IF_ERROR(CheckMirrorStatus(keep_alive.mirror()));
  if (environment_.mirrors != nullptr) {
    environment_.mirrors->Reported(name_, file_id_, token_, keep_alive.mirror());
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::server
