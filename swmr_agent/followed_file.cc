#include "swmr_agent/followed_file.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "spdlog/spdlog.h"

namespace h5mirror::agent {
namespace {

constexpr absl::Duration kPauseFirst = absl::Milliseconds(100);
constexpr absl::Duration kPauseMax = absl::Seconds(5);
// For the first cut of a subscription, and for one that the server has made.
constexpr absl::Duration kCutWait = absl::Seconds(2);
constexpr absl::Duration kCallWait = absl::Seconds(3);
// A reader that was killed lets go of nothing. A reader that comes back later reads from the
// server.
constexpr absl::Duration kHeldUnused = absl::Minutes(10);

std::string NewReaderId() {
  const auto bytes = RandomBytes16();
  return {bytes.begin(), bytes.end()};
}

// The answer of an open of this version, as a server gives it.
v1::Snapshot SnapshotOf(const v1::Version& version, const v1::Snapshot& cut) {
  v1::Snapshot snapshot = cut;
  snapshot.set_cut(version.cut());
  snapshot.set_size_bytes(version.size_bytes());
  *snapshot.mutable_server_time() = version.server_time();
  snapshot.set_version(version.version());
  return snapshot;
}

}  // namespace

FollowedFile::FollowedFile(Upstream& upstream, std::string name, std::shared_ptr<BlockPool> pool,
                           Subscription subscription, CutListener* listener)
    : upstream_(upstream),
      name_(std::move(name)),
      pool_(std::move(pool)),
      subscription_(subscription),
      listener_(listener),
      reader_id_(NewReaderId()),
      incoming_(pool_, [this](const v1::Snapshot& cut) { return RangesOfCut(cut); }),
      is_following_(true),
      last_use_(absl::Now()) {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "h5m-follow");
    Run();
  });
}

void FollowedFile::Cancel() {
  absl::MutexLock lock(&mutex_);
  stopping_ = true;
  if (stream_ != nullptr) stream_->Cancel();
}

// With the subscription ends what it holds at the server, but only after a while: readers go on
// there.
FollowedFile::~FollowedFile() {
  Cancel();
  thread_.join();
  if (listener_ != nullptr) listener_->OnEnd(*this);
}

bool FollowedFile::Pause(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  return !mutex_.AwaitWithTimeout(absl::Condition(&stopping_), time);
}

void FollowedFile::Run() {
  absl::Duration pause = kPauseFirst;
  for (;;) {
    const int64_t before = incoming_.after_cut();
    const absl::StatusOr<rpc::Client*> client = upstream_.client();
    const absl::Status status = client.ok() ? Follow(**client) : client.status();
    incoming_.Abandon();
    {
      absl::MutexLock lock(&mutex_);
      is_following_ = false;
      if (stopping_) return;
      if (absl::IsNotFound(status) || absl::IsPermissionDenied(status) ||
          (absl::IsUnauthenticated(status) && !has_new_credential_)) {
        ended_ = status;
        // Files to publish are retried until they exist.
        const auto level = before == 0 ? spdlog::level::debug : spdlog::level::info;
        spdlog::log(level, "{}: not followed any more: {}", name_, ToStd(status.message()));
        return;
      }
    }
    if (incoming_.after_cut() != before) pause = kPauseFirst;
    spdlog::info("{}: the subscription broke, tried again in {}: {}", name_,
                 absl::FormatDuration(pause), ToStd(status.message()));
    if (!Pause(pause)) return;
    pause = std::min(2 * pause, kPauseMax);
  }
}

absl::Status FollowedFile::Follow(rpc::Client& client) {
  v1::FollowFileRequest request;
  request.set_name(name_);
  request.set_after_cut(incoming_.after_cut());
  request.set_file_id(incoming_.file_id());
  request.set_metadata_bytes_max(subscription_.metadata_bytes_max);
  const int64_t tick_ns = absl::ToInt64Nanoseconds(subscription_.tick);
  request.mutable_tick()->set_seconds(tick_ns / 1'000'000'000);
  request.mutable_tick()->set_nanos(static_cast<int32_t>(tick_ns % 1'000'000'000));
  request.set_reader_id(reader_id_);
  const std::unique_ptr<rpc::FollowStream> stream = client.FollowFile(request);
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return absl::CancelledError("stopping");
    stream_ = stream.get();
    is_following_ = true;
  }
  absl::Status taken;
  v1::FollowFileResponse message;
  while (taken.ok() && stream->Read(message)) {
    has_new_credential_ = false;
    taken = Take(message);
  }
  {
    absl::MutexLock lock(&mutex_);
    stream_ = nullptr;
  }
  if (!taken.ok()) return taken;
  const absl::Status ended = stream->Finish();
  // A server that has restarted refuses a credential that it has seen. It may refuse the new one
  // for another reason.
  has_new_credential_ =
      absl::IsUnauthenticated(ended) && !has_new_credential_ && stream->HasNewCredential();
  return ended.ok() ? absl::UnavailableError("the server ended it") : ended;
}

absl::Status FollowedFile::Take(const v1::FollowFileResponse& message) {
  H5M_ASSIGN_OR_RETURN(std::optional<IncomingCut::Complete> complete, incoming_.Take(message));
  if (complete) Publish(*std::move(complete));
  return absl::OkStatus();
}

void FollowedFile::Publish(IncomingCut::Complete complete) {
  CutNews news{{complete.snapshot, std::nullopt, complete.image},
               complete.whole,
               std::move(complete.changed)};
  if (complete.snapshot.version() != 0) {
    const absl::StatusOr<v1::Version> version = GetVersion(complete.snapshot.version());
    // By now another file may have the name.
    if (version.ok() && version->size_bytes() == complete.snapshot.size_bytes() &&
        version->cut() <= complete.snapshot.cut()) {
      news.cut.version = *version;
      news.cut.snapshot = SnapshotOf(*version, complete.snapshot);
      const absl::StatusOr<rpc::Client*> client = upstream_.client();
      if (client.ok()) news.cut.image->SetFetch(rpc::RangesOf(**client, name_, *version));
    } else {
      news.cut.snapshot.set_version(0);  // Dropped just now, or for LookForVersion().
    }
  }
  std::vector<int64_t> unneeded;
  {
    absl::MutexLock lock(&mutex_);
    const int64_t cut = complete.snapshot.cut();
    DropOthers(complete.snapshot.file_id());
    Held& held = held_[cut];
    held.shared = news.cut;
    held.last_use = absl::Now();
    newest_ = cut;
    ++cuts_seen_;
    unneeded = DropUnneeded();
  }
  CloseAtServer(unneeded);
  if (listener_ != nullptr) listener_->OnCut(*this, news);
}

void FollowedFile::DropOthers(const std::string& file_id) {
  if (file_id_ == file_id) return;
  held_.clear();
  file_id_ = file_id;
}

bool FollowedFile::HasCome(const Newest& newest) {
  return newest_ >= newest.cut && (newest.file_id.empty() || newest.file_id == file_id_);
}

std::vector<int64_t> FollowedFile::DropUnneeded() {
  std::vector<int64_t> unneeded;
  const absl::Time now = absl::Now();
  for (auto at = held_.begin(); at != held_.end();) {
    const auto& [cut, held] = *at;
    const bool is_needed =
        cut == newest_ || (!held.readers.empty() && now - held.last_use < kHeldUnused);
    if (is_needed) {
      ++at;
      continue;
    }
    // A quiet reader goes on with its open cut at the server, as long as that holds the cut.
    if (held.readers.empty()) unneeded.push_back(cut);
    at = held_.erase(at);
  }
  return unneeded;
}

void FollowedFile::CloseAtServer(const std::vector<int64_t>& cuts) {
  if (cuts.empty()) return;
  const absl::StatusOr<rpc::Client*> client = upstream_.client();
  for (const int64_t cut : cuts) {
    v1::CloseSnapshotRequest request;
    request.set_name(name_);
    request.set_cut(cut);
    request.set_reader_id(reader_id_);
    // Where the server is away there is nobody to tell, and it lets go by itself.
    if (!client.ok() || !(*client)->CloseSnapshot(request).ok()) return;
  }
}

rpc::RangeReader FollowedFile::RangesOfCut(const v1::Snapshot& cut) {
  return [&upstream = upstream_, name = name_, reader_id = reader_id_, cut](
             uint64_t offset, uint64_t length, rpc::RangeSink sink,
             rpc::MetadataAhead* ahead) -> absl::Status {
    H5M_ASSIGN_OR_RETURN(rpc::Client* const client, upstream.client());
    v1::ReadSnapshotRequest request;
    request.set_name(name);
    request.set_cut(cut.cut());
    request.set_file_id(cut.file_id());
    request.set_reader_id(reader_id);
    request.set_offset(offset);
    request.set_length_bytes(length);
    rpc::AskAhead(ahead, request);
    return client->ReadSnapshot(
        request, [&](const v1::ReadSnapshotResponse& answer) -> absl::Status {
          if (answer.has_snapshot()) return rpc::CheckSnapshot(answer.snapshot(), cut);
          if (!answer.data().empty() && Crc32c(answer.data()) != answer.data_crc32c()) {
            return absl::DataLossError(
                StrCat("bytes at ", answer.offset(), " were damaged on the way"));
          }
          return rpc::TakeData(answer, sink, ahead);
        });
  };
}

absl::StatusOr<FollowedFile::Newest> FollowedFile::AskNewest() {
  return newest_call_.Ask([&]() -> absl::StatusOr<Newest> {
    H5M_ASSIGN_OR_RETURN(rpc::Client* const client, upstream_.client());
    v1::WaitForCutRequest request;
    request.set_name(name_);
    H5M_ASSIGN_OR_RETURN(const v1::WaitForCutResponse answer,
                         client->WaitForCut(request, kCallWait));
    return Newest{answer.cut(), answer.file_id(), answer.has_writer(), answer.answer_time()};
  });
}

absl::StatusOr<v1::Version> FollowedFile::GetVersion(int64_t version) {
  H5M_ASSIGN_OR_RETURN(rpc::Client* const client, upstream_.client());
  v1::GetVersionRequest request;
  request.set_name(name_);
  request.set_version(version);
  return client->GetVersion(request);
}

absl::StatusOr<SharedCut> FollowedFile::OpenNewest(const std::string& reader) {
  int64_t before;
  std::string file_id;
  {
    absl::MutexLock lock(&mutex_);
    last_use_ = absl::Now();
    before = newest_;
    file_id = file_id_;
    if (!is_following_) return absl::UnavailableError(StrCat(name_, " is not followed now"));
  }
  // A reader that knows of a cut never gets an older one.
  H5M_ASSIGN_OR_RETURN(const Newest newest, AskNewest());
  if (newest.cut == 0) return absl::UnavailableError(StrCat(name_, " has no cut yet"));
  const bool is_other_file = !newest.file_id.empty() && newest.file_id != file_id;
  if (newest.cut < before && !is_other_file) return absl::UnavailableError("the server lost cuts");
  bool looks_for_version = false;
  {
    const auto has_come = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return HasCome(newest) || !is_following_;
    };
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&has_come), kCutWait);
    if (!HasCome(newest) || !is_following_) {
      return absl::UnavailableError(StrCat("cut ", newest.cut, " of ", name_, " has not come yet"));
    }
    Held& held = held_[newest_];
    looks_for_version = !newest.has_writer && !held.shared.version && newest_ == newest.cut;
    if (!looks_for_version) {
      held.last_use = absl::Now();
      if (!held.shared.version) held.readers.insert(reader);
      SharedCut cut = held.shared;
      *cut.snapshot.mutable_open_time() = newest.answer_time;
      return cut;
    }
  }
  H5M_ASSIGN_OR_RETURN(SharedCut cut, LookForVersion(newest.cut));
  *cut.snapshot.mutable_open_time() = newest.answer_time;
  if (cut.version) return cut;
  // Maybe a later one: another open's question was shared.
  absl::MutexLock lock(&mutex_);
  const auto found = held_.find(cut.snapshot.cut());
  if (found == held_.end()) return absl::UnavailableError("another cut has followed");
  found->second.readers.insert(reader);
  return cut;
}

absl::StatusOr<SharedCut> FollowedFile::LookForVersion(int64_t cut) {
  return version_call_.Ask([&]() -> absl::StatusOr<SharedCut> {
    std::optional<SharedCut> known = Find(cut, "");
    if (!known) return absl::UnavailableError("another cut has followed");
    if (known->version) return *std::move(known);
    H5M_ASSIGN_OR_RETURN(rpc::Client* const client, upstream_.client());
    v1::ReadSnapshotRequest request;
    request.set_name(name_);
    request.set_reader_id(reader_id_);
    request.set_length_bytes(1);
    v1::Snapshot newest;
    H5M_RETURN_IF_ERROR(
        client->ReadSnapshot(request, [&](const v1::ReadSnapshotResponse& answer) -> absl::Status {
          if (answer.has_snapshot()) newest = answer.snapshot();
          return absl::OkStatus();
        }));
    if (!newest.file_id().empty() && newest.file_id() != known->snapshot.file_id()) {
      return absl::UnavailableError("another file has the name");
    }
    if (newest.version() == 0 && newest.cut() == cut) return *std::move(known);
    // A version's cut is that of its bytes; later cuts may have the same.
    if (newest.version() == 0 || newest.cut() > cut) {
      return absl::UnavailableError("another cut has followed");
    }
    H5M_ASSIGN_OR_RETURN(const v1::Version version, GetVersion(newest.version()));
    absl::MutexLock lock(&mutex_);
    const auto found = held_.find(cut);
    if (found == held_.end()) return absl::UnavailableError("another cut has followed");
    SharedCut& shared = found->second.shared;
    shared.version = version;
    shared.snapshot = SnapshotOf(version, shared.snapshot);
    shared.image->SetFetch(rpc::RangesOf(*client, name_, version));
    return shared;
  });
}

std::optional<SharedCut> FollowedFile::Find(int64_t cut, std::string_view file_id) {
  absl::MutexLock lock(&mutex_);
  const auto found = held_.find(cut);
  if (found == held_.end() || (!file_id.empty() && file_id != file_id_)) return std::nullopt;
  last_use_ = found->second.last_use = absl::Now();
  return found->second.shared;
}

std::optional<SharedCut> FollowedFile::FindVersion(int64_t version) {
  absl::MutexLock lock(&mutex_);
  for (auto& [cut, held] : held_) {
    if (!held.shared.version || held.shared.version->version() != version) continue;
    last_use_ = held.last_use = absl::Now();
    return held.shared;
  }
  return std::nullopt;
}

bool FollowedFile::Hold(int64_t cut, const std::string& reader) {
  absl::MutexLock lock(&mutex_);
  const auto found = held_.find(cut);
  if (found == held_.end()) return false;
  found->second.readers.insert(reader);
  return true;
}

bool FollowedFile::Close(int64_t cut, const std::string& reader) {
  std::vector<int64_t> unneeded;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = held_.find(cut);
    if (found == held_.end() || found->second.readers.erase(reader) == 0) return false;
    unneeded = DropUnneeded();
  }
  CloseAtServer(unneeded);
  return true;
}

absl::Status FollowedFile::ended() {
  absl::MutexLock lock(&mutex_);
  return ended_;
}

absl::Time FollowedFile::last_use() {
  absl::MutexLock lock(&mutex_);
  return last_use_;
}

FollowedFile::Count FollowedFile::count() {
  absl::MutexLock lock(&mutex_);
  Count count{.cuts = held_.size(), .readers = 0, .cuts_seen = cuts_seen_};
  for (const auto& [cut, held] : held_) count.readers += held.readers.size();
  return count;
}

}  // namespace h5mirror::agent
