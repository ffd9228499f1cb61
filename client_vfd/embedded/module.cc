// The C face of libh5mirror_embedded.so: plugin/embedded_api.h over EmbeddedWriter and
// EmbeddedReader. Everything that is thrown stops here.
#include <pthread.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/synchronization/mutex.h"
#include "base/free_threads.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "client_vfd/api/embedded_api.h"
#include "client_vfd/api/errno_of.h"
#include "client_vfd/embedded/open_writers.h"
#include "client_vfd/embedded/reader.h"
#include "client_vfd/session/opened_version.h"

namespace h5mirror::vfd {
namespace {

// Of a file that is written: one for its history, and one to spare.
constexpr size_t kThreads = 2;

// While the mark `open` is there, the holder of the lease most likely writes, or it puts the file
// in order.
constexpr absl::Duration kPatience = absl::Milliseconds(200);

OpenWriter* Of(H5mEmbedded* file) { return reinterpret_cast<OpenWriter*>(file); }
EmbeddedReader* Of(H5mReader* reader) { return reinterpret_cast<EmbeddedReader*>(reader); }

// For a call on an open file, kUnavailable means that its store has failed. A retry would not help.
absl::Status OfOpenFile(const absl::Status& status) {
  return absl::IsUnavailable(status) ? absl::InternalError(status.message()) : status;
}

// Runs `body` at the C border.
template <typename Body>
int Guard(char* error, size_t error_size, Body body) {
  try {
    const absl::Status status = body();
    if (status.ok()) return 0;
    std::snprintf(error, error_size, "%s", std::string(status.message()).c_str());
    return ErrnoOf(status, Done::kInProgram);
  } catch (const std::exception& thrown) {
    std::snprintf(error, error_size, "%s", thrown.what());
    return ENOMEM;
  }
}

EmbeddedWriterConfig ConfigOf(const H5mEmbeddedOpen& open) {
  EmbeddedWriterConfig config;
  config.path = open.path;
  config.start = open.intent == H5M_CREATED ? store::SessionStart::kNewGeneration
                                            : store::SessionStart::kContinue;
  config.locking = open.lock_head != 0 ? HeadLocking::kYes : HeadLocking::kNo;
  config.mode_bits = open.mode_bits;
  config.timeout = absl::Milliseconds(open.timeout_ms);
  if (open.page_size_bytes != 0) config.page_size_bytes = open.page_size_bytes;
  config.version_every = absl::Milliseconds(open.version_every_ms);
  config.version_min_interval = absl::Milliseconds(open.version_min_interval_ms);
  config.program = open.program;
  return config;
}

H5mEmbedded* Open(const H5mEmbeddedOpen* open, int* error_number, char* error, size_t error_size) {
  OpenWriter* opened = nullptr;
  *error_number = Guard(error, error_size, [&]() -> absl::Status {
    // Else its first write would fail. HDF5 does not recover from that, and may crash.
    if (!CanStartThreads(kThreads)) return absl::UnavailableError(TooFewThreads(kThreads));
    H5M_ASSIGN_OR_RETURN(opened,
                         OpenWriters::Get().Add(ConfigOf(*open), open->host,
                                                {open->notify, open->release, open->context}));
    return absl::OkStatus();
  });
  return reinterpret_cast<H5mEmbedded*>(opened);
}

H5mEmbedded* Share(const char* path, const void* host) {
  OpenWriter* shared = nullptr;
  Guard(nullptr, 0, [&] {
    shared = OpenWriters::Get().Share(path, host);
    return absl::OkStatus();
  });
  return reinterpret_cast<H5mEmbedded*>(shared);
}

uint64_t SizeBytes(H5mEmbedded* file) { return Of(file)->writer->size_bytes(); }

int Read(H5mEmbedded* file, uint64_t offset, void* out, size_t size, char* error,
         size_t error_size) {
  return Guard(error, error_size, [&] {
    return OfOpenFile(Of(file)->writer->Read(offset, {static_cast<char*>(out), size}));
  });
}

int Write(H5mEmbedded* file, uint64_t offset, const void* bytes, size_t size, char* error,
          size_t error_size) {
  return Guard(error, error_size, [&] {
    return OfOpenFile(Of(file)->writer->Write(offset, {static_cast<const char*>(bytes), size}));
  });
}

int Truncate(H5mEmbedded* file, uint64_t size_bytes, char* error, size_t error_size) {
  return Guard(error, error_size,
               [&] { return OfOpenFile(Of(file)->writer->Truncate(size_bytes)); });
}

store::BarrierKind KindOf(H5mBarrier kind) {
  return kind == H5M_COMMIT ? store::BarrierKind::kCommit
         : kind == H5M_SYNC ? store::BarrierKind::kSync
                            : store::BarrierKind::kTick;
}

int Barrier(H5mEmbedded* file, H5mBarrier kind, H5mAck ack, const char* comment, int* acknowledged,
            char* error, size_t error_size) {
  *acknowledged = 0;
  return Guard(error, error_size, [&]() -> absl::Status {
    EmbeddedWriter& writer = *Of(file)->writer;
    if (kind == H5M_TICK_IF_CHANGED && writer.is_at_cut()) {
      *acknowledged = 1;
      return absl::OkStatus();
    }
    const AckLevel level = ack == H5M_ACK_DURABLE ? AckLevel::kDurable : AckLevel::kVisible;
    const absl::Status made = writer.Barrier(KindOf(kind), level, comment);
    *acknowledged = made.ok() ? 1 : 0;
    return absl::IsDeadlineExceeded(made) ? absl::OkStatus() : OfOpenFile(made);
  });
}

absl::Status CloseLast(OpenWriter& open, const std::string& comment) {
  EmbeddedWriter& writer = *open.writer;
  const bool changed = writer.Progress().changed;
  const absl::Status closed =
      writer.Close(open.clean ? store::SessionEnd::kClean : store::SessionEnd::kLost, comment);
  const H5mState state = !changed       ? H5M_STATE_UNCHANGED
                         : !closed.ok() ? H5M_STATE_OFF
                         : !open.clean  ? H5M_STATE_BEHIND
                                        : H5M_STATE_CLEAN;
  open.listener.Tell("close", state, writer.Progress(), "");
  return closed;
}

int Close(H5mEmbedded* file, int clean, const char* comment, char* error, size_t error_size) {
  return Guard(error, error_size, [&] {
    OpenWriter* const open = Of(file);
    if (!OpenWriters::Get().LastCloses(open, clean != 0)) return absl::OkStatus();
    const absl::Cleanup forget = [open, listener = open->listener] {
      OpenWriters::Get().Forget(open);
      if (listener.release != nullptr) listener.release(listener.context);
    };
    return OfOpenFile(CloseLast(*open, comment));
  });
}

void Status(H5mEmbedded* file, H5mStatus* status) {
  Guard(nullptr, 0, [&] {
    const EmbeddedProgress progress = Of(file)->writer->Progress();
    status->state = progress.changed ? H5M_STATE_MIRRORING : H5M_STATE_UNCHANGED;
    status->cut = progress.cut;
    status->version = progress.version;
    status->pending_bytes = progress.pending_bytes;
    std::snprintf(status->message, sizeof status->message, "%s",
                  "its history is kept beside it (server=embedded)");
    return absl::OkStatus();
  });
}

int Heal(const char* path, const char* program, uint32_t timeout_ms,
         void (*notify)(void* context, const H5mEvent* event), void* context, char* error,
         size_t error_size) {
  return Guard(error, error_size, [&]() -> absl::Status {
    H5M_RETURN_IF_ERROR(OpenWriters::Get().CheckUsable());
    std::string notice;
    const absl::Status healed = store::HealEmbedded(Env::Posix(), path, program, kPatience,
                                                    absl::Milliseconds(timeout_ms), &notice);
    if (!notice.empty())
      Listener{notify, nullptr, context}.Tell("outside", H5M_STATE_OFF, {}, notice);
    return healed;
  });
}

OpenedVersion OpenedBy(const EmbeddedReader& reader, const char* name) {
  const store::VersionInfo& info = reader.info();
  return {info.version, info.cut, info.size_bytes, info.server_time,
          StrCat(info.version, "\n", info.cut, "\n", name)};
}

EmbeddedReader::Opener OpenerOf(const H5mReaderOpen& open) {
  return [path = std::string(open.name), timeout = absl::Milliseconds(open.timeout_ms)]()
             -> absl::StatusOr<std::shared_ptr<store::File>> {
    H5M_RETURN_IF_ERROR(OpenWriters::Get().CheckUsable());
    H5M_ASSIGN_OR_RETURN(auto file, OpenWriters::Get().FileForReaders(path));
    if (file != nullptr) return file;
    std::string notice;
    return store::OpenEmbeddedToRead(Env::Posix(), path, program_invocation_short_name, timeout,
                                     &notice);
  };
}

H5mReader* ReaderOpen(const H5mReaderOpen* open, H5mReaderInfo* info, char* error,
                      size_t error_size) {
  std::unique_ptr<EmbeddedReader> reader;
  info->error_number = Guard(error, error_size, [&]() -> absl::Status {
    H5M_ASSIGN_OR_RETURN(const rpc::VersionSpec spec, SpecOf(*open));
    H5M_ASSIGN_OR_RETURN(reader, EmbeddedReader::Open(open->name, OpenerOf(*open), spec));
    Describe(*open, spec, OpenedBy(*reader, open->name), info);
    return absl::OkStatus();
  });
  return reinterpret_cast<H5mReader*>(reader.release());
}

int ReaderRead(H5mReader* reader, uint64_t offset, void* out, size_t size, int, char* error,
               size_t error_size) {
  return Guard(error, error_size, [&] {
    return Of(reader)->Read(offset, {static_cast<char*>(out), size});
  });
}

void ReaderClose(H5mReader* reader) {
  Guard(nullptr, 0, [&] {
    delete Of(reader);
    return absl::OkStatus();
  });
}

constexpr H5mEmbeddedApi kApi = {H5M_EMBEDDED_ABI,
                                 sizeof(H5mEmbeddedApi),
                                 Open,
                                 Share,
                                 SizeBytes,
                                 Read,
                                 Write,
                                 Truncate,
                                 Barrier,
                                 Close,
                                 Status,
                                 Heal,
                                 ReaderOpen,
                                 ReaderRead,
                                 ReaderClose};

void PrepareFork() { OpenWriters::Get().PrepareFork(); }
void ParentAfterFork() { OpenWriters::Get().ParentAfterFork(); }
void ChildAfterFork() { OpenWriters::Get().ChildAfterFork(); }

}  // namespace
}  // namespace h5mirror::vfd

extern "C" __attribute__((visibility("default"))) const H5mEmbeddedApi* h5mirror_embedded_api() {
  // Debian's Abseil looks for cycles at each lock: not ours to find in a program of others.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  static const int registered = pthread_atfork(
      h5mirror::vfd::PrepareFork, h5mirror::vfd::ParentAfterFork, h5mirror::vfd::ChildAfterFork);
  return registered == 0 ? &h5mirror::vfd::kApi : nullptr;
}
