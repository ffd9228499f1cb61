#include "cluster/member.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "cluster/wishes.h"

namespace h5mirror::cluster {
namespace {

// A change that others make meanwhile, a beat or a claim, costs a try.
constexpr int kMountTriesMax = 5;

// Of two records of one life. Each change expects the one before it, so no two have the same seq.
bool IsLater(const ServerRecord& record, const ServerRecord& than) { return record.seq > than.seq; }

void Erase(const std::vector<std::string>& values, std::vector<std::string>* from) {
  std::erase_if(*from, [&values](const std::string& each) {
    return std::find(values.begin(), values.end(), each) != values.end();
  });
}

// For the last line of the log.
std::string DescribeRecord(const std::optional<std::string>& text,
                           const absl::StatusOr<ServerRecord>& record, const std::string& session) {
  if (!text.has_value()) return "is not there";
  if (!record.ok()) return StrCat("cannot be read: ", *text);
  if (record->session != session) return "is that of another start of it";
  return StrCat("is ", NameOf(record->state));
}

absl::Status LookAgain(std::string_view why) {
  return absl::UnavailableError(StrCat("the registry is to be read again: ", why));
}

}  // namespace

Member::Member(Registry& registry, Clock& clock, AckGuard& guard, ServerIdentity identity)
    : registry_(registry),
      clock_(clock),
      guard_(guard),
      identity_(std::move(identity)),
      server_name_(ServerName(identity_.id)),
      beat_name_(BeatName(identity_.id)) {}

absl::Status Member::over() const {
  absl::MutexLock lock(&mutex_);
  return over_;
}

uint64_t Member::epoch() const {
  absl::MutexLock lock(&mutex_);
  return record_.epoch;
}

OwnBeats Member::own_beats() const {
  absl::MutexLock lock(&mutex_);
  return own_;
}

Expectation Member::OwnExpectation() const {
  absl::MutexLock lock(&mutex_);
  return {server_name_, Encode(record_)};
}

void Member::CountFailure() {
  absl::MutexLock lock(&mutex_);
  ++own_.failed;
}

absl::Status Member::EndFor(const absl::Status& why) {
  absl::Status over;
  {
    absl::MutexLock lock(&mutex_);
    if (over_.ok()) over_ = absl::InternalError(why.message());
    over = over_;
  }
  guard_.Close(over);
  return over;
}

absl::Status Member::Translate(const absl::Status& result) {
  if (result.ok() || absl::IsUnavailable(result)) return result;
  if (absl::IsInternal(result)) return EndFor(result);
  return LookAgain(ToStd(result.message()));
}

absl::Status Member::TakeOwnText(const std::optional<std::string>& text) {
  H5M_RETURN_IF_ERROR(over());
  const auto found = DecodeServer(text.value_or(""));
  {
    absl::MutexLock lock(&mutex_);
    const bool is_this_life =
        found.ok() && found->epoch == record_.epoch && found->session == identity_.session;
    // Others set a record to dead and fenced only. A read may have looked before a change of ours
    // that is known by now.
    if (is_this_life && found->state <= ServerState::kGone) {
      if (IsLater(*found, record_)) record_ = *found;
      return absl::OkStatus();
    }
  }
  return EndFor(absl::InternalError(
      StrCat("the cluster has gone on without this server: its record in the registry ",
             DescribeRecord(text, found, identity_.session))));
}

absl::Status Member::Join(const ClusterView& view) {
  H5M_RETURN_IF_ERROR(over());
  ServerRecord record;
  record.epoch = 1;
  if (const ServerRecord* const before = view.FindServer(identity_.id); before != nullptr) {
    if (before->session == identity_.session) {
      // The answer to an earlier call was lost.
      {
        absl::MutexLock lock(&mutex_);
        record_ = *before;
      }
      return TakeOwnText(TextOf(view.texts, server_name_));
    }
    if (!IsOver(before->state)) {
      return absl::AlreadyExistsError(
          StrCat("an earlier life of the server ", identity_.id, " is not fenced yet"));
    }
    record.epoch = before->epoch + 1;
  }
  record.listen = identity_.listen;
  record.session = identity_.session;
  record.addresses = identity_.addresses;
  record.version = identity_.version;
  record.http = identity_.http;
  const std::string beat = Encode(BeatRecord{record.epoch, beat_number_ = 1});
  const absl::Duration sent_at = clock_.Monotonic();
  const absl::Status joined =
      registry_.CompareAndSet({{server_name_, TextOf(view.texts, server_name_)},
                               {beat_name_, TextOf(view.texts, beat_name_)}},
                              {{server_name_, Encode(record)}, {beat_name_, beat}});
  if (!joined.ok()) return Translate(joined);
  beat_text_ = beat;
  {
    absl::MutexLock lock(&mutex_);
    record_ = record;
  }
  guard_.Renew(sent_at);
  return absl::OkStatus();
}

absl::Status Member::Learn() {
  const auto view = registry_.Read({server_name_, beat_name_});
  if (!view.ok()) return Translate(view.status());
  H5M_RETURN_IF_ERROR(TakeOwnText(TextOf(*view, server_name_)));
  beat_text_ = TextOf(*view, beat_name_);
  if (beat_text_.has_value()) return absl::OkStatus();
  return EndFor(absl::InternalError("this server's beat is gone from the registry"));
}

absl::Status Member::Beat() {
  H5M_RETURN_IF_ERROR(over());
  const uint64_t epoch = this->epoch();
  if (epoch == 0) return LookAgain("this server has not joined yet");
  if (!beat_text_.has_value()) {
    if (absl::Status learned = Learn(); !learned.ok()) {
      CountFailure();
      return learned;
    }
  }
  const std::string text = Encode(BeatRecord{epoch, ++beat_number_});
  const absl::Duration sent_at = clock_.Monotonic();
  const absl::Status beaten =
      registry_.CompareAndSet({OwnExpectation(), {beat_name_, beat_text_}}, {{beat_name_, text}});
  if (beaten.ok()) {
    beat_text_ = text;
    guard_.Renew(sent_at);
    // A beat that came too late to open the guard does not show that the registry was there
    // meanwhile.
    const bool is_in_time = guard_.is_open();
    absl::MutexLock lock(&mutex_);
    ++(is_in_time ? own_.succeeded : own_.failed);
    return absl::OkStatus();
  }
  beat_text_.reset();
  CountFailure();
  if (!absl::IsAborted(beaten)) return Translate(beaten);
  // Refused, or a former beat of ours came late.
  H5M_RETURN_IF_ERROR(Learn());
  return LookAgain("a beat was not taken");
}

absl::StatusOr<ServerRecord> Member::OwnRecord() const {
  absl::MutexLock lock(&mutex_);
  if (!over_.ok()) return over_;
  if (record_.epoch == 0) return LookAgain("this server has not joined yet");
  return record_;
}

absl::Status Member::Change(const ServerRecord& before, ServerRecord after) {
  after.seq = before.seq + 1;
  const absl::Status set =
      registry_.CompareAndSet({{server_name_, Encode(before)}}, {{server_name_, Encode(after)}});
  if (absl::IsAborted(set)) {
    H5M_RETURN_IF_ERROR(Confirm());
    return set;
  }
  if (!set.ok()) return Translate(set);
  absl::MutexLock lock(&mutex_);
  if (IsLater(after, record_)) record_ = after;
  return absl::OkStatus();
}

absl::Status Member::ChangeState(ServerState state,
                                 bool (*is_done)(ServerState now, ServerState wanted)) {
  H5M_ASSIGN_OR_RETURN(const ServerRecord before, OwnRecord());
  if (is_done(before.state, state)) return absl::OkStatus();
  ServerRecord after = before;
  after.state = state;
  const absl::Status set = Change(before, after);
  if (!absl::IsAborted(set)) return set;
  absl::MutexLock lock(&mutex_);
  return is_done(record_.state, state) ? absl::OkStatus() : LookAgain("its state was not taken");
}

absl::Status Member::SetState(ServerState state) {
  return ChangeState(state, [](ServerState now, ServerState wanted) { return now >= wanted; });
}

absl::Status Member::Resume() {
  return ChangeState(ServerState::kUp,
                     [](ServerState now, ServerState) { return now != ServerState::kDraining; });
}

absl::Status Member::AddMount(const std::string& session,
                              const std::vector<std::string>& addresses) {
  return ChangeMounts(session, addresses);
}

absl::Status Member::DropMount(const std::string& session,
                               const std::vector<std::string>& addresses) {
  {
    absl::MutexLock lock(&mutex_);
    dropped_[session] = addresses;
  }
  return ChangeMounts("", {});
}

absl::Status Member::ChangeMounts(const std::string& session,
                                  const std::vector<std::string>& addresses) {
  for (int tries = 0; tries < kMountTriesMax; ++tries) {
    H5M_ASSIGN_OR_RETURN(const ServerRecord before, OwnRecord());
    const auto& mounts = before.mounts;
    if (std::find(mounts.begin(), mounts.end(), session) != mounts.end()) return absl::OkStatus();
    ServerRecord after = before;
    const Mounts dropped = Dropped();
    for (const auto& [gone, addresses_of_gone] : dropped) {
      Erase({gone}, &after.mounts);
      Erase(addresses_of_gone, &after.addresses);
    }
    if (!session.empty()) after.mounts.push_back(session);
    after.addresses.insert(after.addresses.end(), addresses.begin(), addresses.end());
    // Writes the record even if nothing is to be taken out. The new seq defeats an addition whose
    // answer was lost, and which may still arrive.
    const absl::Status set = Change(before, std::move(after));
    if (set.ok()) Forget(dropped);
    if (!absl::IsAborted(set)) return set;
  }
  return LookAgain("its mount was not taken");
}

Member::Mounts Member::Dropped() const {
  absl::MutexLock lock(&mutex_);
  return dropped_;
}

void Member::Forget(const Mounts& dropped) {
  absl::MutexLock lock(&mutex_);
  for (const auto& [session, addresses] : dropped) dropped_.erase(session);
}

absl::Status Member::Confirm() {
  H5M_RETURN_IF_ERROR(over());
  if (epoch() == 0) return LookAgain("this server has not joined yet");
  const auto view = registry_.Read({server_name_});
  if (!view.ok()) return Translate(view.status());
  return TakeOwnText(TextOf(*view, server_name_));
}

absl::Status Member::Look(const ClusterView& view) {
  H5M_RETURN_IF_ERROR(over());
  if (epoch() == 0) return absl::OkStatus();
  return TakeOwnText(TextOf(view.texts, server_name_));
}

}  // namespace h5mirror::cluster
