// The C face of libh5mirror_session.so: session_api.h over class Session. Everything that is thrown
// stops here.
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/file_access.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "client_vfd/api/session_api.h"
#include "client_vfd/session/c_face.h"
#include "client_vfd/session/engine.h"
#include "client_vfd/session/part_module.h"
#include "client_vfd/session/reader_calls.h"
#include "client_vfd/session/reader_module.h"
#include "client_vfd/session/session.h"
#include "client_vfd/session/snapshot_pins.h"
#include "rpc/grpc_threads.h"
#include "rpc/read_ahead.h"

namespace h5mirror::vfd {
namespace {

Session* Of(H5mSession* session) { return reinterpret_cast<Session*>(session); }

template <typename Body>
void Guard(Body body) {
  try {
    body();
  } catch (...) {
    // Only allocation can fail so; the session then falls behind by itself.
  }
}

// The calls that are handed on as they are.
template <auto kMethod, typename... Args>
void Call(H5mSession* session, Args... args) {
  Guard([&] { (Of(session)->*kMethod)(args...); });
}

FileStat ToStat(const H5mStat& stat) {
  return {stat.inode, stat.size_bytes, stat.mtime_ns, stat.ctime_ns};
}

std::optional<RemoteClaim> RemoteOf(const H5mAttach& attach) {
  switch (attach.intent) {
    case H5M_REMOTE_CHANGE:
      return RemoteClaim{Claim::kChange, attach.base_cut};
    case H5M_REMOTE_NEW:
      return RemoteClaim{Claim::kUpload, 0};
    case H5M_REMOTE_REPLACE:
      return RemoteClaim{Claim::kReplace, 0};
    case H5M_EXISTING:
    case H5M_CREATED:
      break;
  }
  return std::nullopt;
}

absl::StatusOr<std::shared_ptr<Session>> Start(const H5mAttach& attach) {
  // A path in another encoding needs name=, and its origin could not be told.
  if (!IsUtf8(attach.real_path) || !IsUtf8(attach.name)) {
    return absl::InvalidArgumentError("its path is not UTF-8; rename the file or its directory");
  }
  if (const absl::Status usable = Engine::Get().CheckUsable(); !usable.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        usable.message(), "; mirror it from a program of its own, or: h5mirror resync FILE"));
  }
  H5M_RETURN_IF_ERROR(rpc::CheckGrpcThreads());
  H5M_ASSIGN_OR_RETURN(rpc::ClientOptions server, ServerOf(attach.server, attach.ca, attach.token));
  absl::StatusOr<std::unique_ptr<FileReader>> file =
      FileReader::Open(attach.fd, Engine::Get().mark());
  if (!file.ok()) return file.status();
  SessionConfig config;
  config.real_path = attach.real_path;
  config.record_tag = attach.record_tag;
  config.name = attach.name;
  config.facts = {attach.intent == H5M_CREATED, ToStat(attach.stat_at_open), server.server,
                  attach.name};
  config.remote = RemoteOf(attach);
  config.mode_bits = ModeWithoutMask(attach.fd, attach.mode_bits);
  config.is_written = attach.is_written != 0;
  config.takes_parts = attach.takes_parts != 0;
  config.adopts_outside_change = attach.adopts_outside_change != 0;
  config.checksum = attach.checksum == H5M_CHECKSUM_ON ||
                    (attach.checksum == H5M_CHECKSUM_AUTO && !server.loopback);
  config.server = std::move(server);
  config.comment = attach.comment;
  config.program = attach.program;
  config.ack_commit = attach.ack_commit;
  config.window_bytes = attach.window_bytes;
  config.timeout = absl::Milliseconds(attach.timeout_ms);
  config.linger = absl::Milliseconds(attach.linger_ms);
  config.outage_wait = absl::Milliseconds(attach.outage_wait_ms);
  config.bandwidth_bytes_per_second = attach.bandwidth_bytes_per_second;
  config.page_size_bytes = attach.page_size_bytes;
  config.version_every = absl::Milliseconds(attach.version_every_ms);
  config.version_min_interval = absl::Milliseconds(attach.version_min_interval_ms);
  config.notify = attach.notify;
  config.release = attach.release;
  config.context = attach.context;
  return Session::Start(Engine::Get(), std::move(config), *std::move(file));
}

H5mSession* Attach(const H5mAttach* attach, char* error, size_t error_size) {
  H5mSession* attached = nullptr;
  Guarded(error, error_size, [&] {
    const absl::StatusOr<std::shared_ptr<Session>> session = Start(*attach);
    if (!session.ok()) return Tell(session.status(), error, error_size);
    attached = reinterpret_cast<H5mSession*>(session->get());  // The engine keeps it.
    return 0;
  });
  return attached;
}

int AwaitOpened(H5mSession* session, char* error, size_t error_size) {
  int result = ENOMEM;
  Guard([&] { result = Tell(Of(session)->AwaitOpened(), error, error_size); });
  return result;
}

void BeforeWrite(H5mSession* session, uint64_t offset, uint64_t length) {
  Guard([&] { Of(session)->BeforeWrite({offset, length}); });
}

void AfterWrite(H5mSession* session, uint64_t offset, uint64_t length, H5mWriteClass write_class) {
  Guard([&] { Of(session)->AfterWrite({offset, length}, write_class); });
}

void BeforeTruncate(H5mSession* session, uint64_t size_bytes) {
  // Everything from there on is lost, or stays as it is where the file grows.
  Guard([&] { Of(session)->BeforeWrite({size_bytes, (uint64_t{1} << 62) - size_bytes}); });
}

void Cut(H5mSession* session, H5mBarrier kind, H5mAck ack, const char* comment) {
  const CutKind cut = kind == H5M_COMMIT ? CutKind::kCommit
                      : kind == H5M_SYNC ? CutKind::kSync
                                         : CutKind::kTick;
  Guard([&] {
    if (kind == H5M_TICK_IF_CHANGED) return Of(session)->TickIfChanged();
    // The program's call has no error for it.
    Of(session)->Cut(cut, ack, IsUtf8(comment) ? std::string(comment) : Printable(comment));
  });
}

int AwaitCut(H5mSession* session) {
  bool acknowledged = false;
  Guard([&] { acknowledged = Of(session)->AwaitCut(); });
  return acknowledged ? 0 : 1;
}

std::optional<GroupCut> GroupOf(const H5mGroupCut* group) {
  if (group == nullptr) return std::nullopt;
  GroupCut cut;
  std::copy(std::begin(group->id), std::end(group->id), cut.id.begin());
  cut.number = group->number;
  cut.whole_number = group->whole_number;
  cut.time = absl::FromUnixNanos(group->time_ns);
  cut.members.assign(group->members, group->members + group->member_count);
  return cut;
}

void SetGroup(H5mSession* session, const H5mGroupCut* group) {
  Guard([&] { Of(session)->SetGroup(GroupOf(group)); });
}

int Close(H5mSession* session, char* error, size_t error_size) {
  int result = ENOMEM;
  Guard([&] { result = Tell(Of(session)->Close(), error, error_size); });
  return result;
}

void ChildWrote(H5mSession* session) { Of(session)->ChildWrote(); }

// Waits at most the longest configured timeout of the sessions that are still open.
void Drain() {
  Guard([] {
    Engine::Get().Drain(Engine::Get().LongestTimeout());
    ReaderCalls::Get().Drain();
  });
}

void PrepareFork() {
  Guard([] {
    rpc::ReadAhead::PrepareFork();
    SnapshotPins::PrepareFork();
    const bool readers = ReaderCalls::Get().PrepareFork();
    Engine::Get().PrepareFork(readers);
    TokenReader::PrepareFork();  // Last: the sender, which has ended by now, asks it.
  });
}
void ParentAfterFork() {
  Guard([] {
    TokenReader::ParentAfterFork();
    Engine::Get().ParentAfterFork();
    ReaderCalls::Get().ParentAfterFork();
    SnapshotPins::AfterFork();
    rpc::ReadAhead::AfterFork();
  });
}
void ChildAfterFork() {
  Guard([] {
    TokenReader::ChildAfterFork();
    Engine::Get().ChildAfterFork();
    ReaderCalls::Get().ChildAfterFork();
    SnapshotPins::AfterFork();
    rpc::ReadAhead::AfterFork();
  });
}

constexpr H5mSessionApi kApi = {H5M_SESSION_ABI,
                                sizeof(H5mSessionApi),
                                Attach,
                                AwaitOpened,
                                BeforeWrite,
                                AfterWrite,
                                BeforeTruncate,
                                Call<&Session::AfterTruncate, uint64_t>,
                                Cut,
                                AwaitCut,
                                SetGroup,
                                Call<&Session::DetachCuts>,
                                TicketForPart,
                                EndPart,
                                SendPart,
                                Call<&Session::Seal>,
                                Call<&Session::AwaitSealed>,
                                Call<&Session::BeginClose>,
                                Close,
                                Call<&Session::Status, H5mStatus*>,
                                ChildWrote,
                                Drain,
                                ReaderOpen,
                                ReaderRead,
                                ReaderClose,
                                WaitForCut};

}  // namespace
}  // namespace h5mirror::vfd

extern "C" __attribute__((visibility("default"))) const H5mSessionApi* h5mirror_session_api() {
  // Debian's Abseil looks for cycles at each lock, gRPC's own included: costly, and not ours to
  // find in a program of others.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  static const int registered = pthread_atfork(
      h5mirror::vfd::PrepareFork, h5mirror::vfd::ParentAfterFork, h5mirror::vfd::ChildAfterFork);
  return registered == 0 ? &h5mirror::vfd::kApi : nullptr;
}
