#include "tests/sim/program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/local_record.h"
#include "base/strings.h"

namespace h5mirror::sim {
namespace {

constexpr char kServer[] = "server:7447";
constexpr absl::Duration kLockWait = absl::Seconds(15);

// The listener of a session.
struct Listener {
  World& world;
  std::shared_ptr<LocalFile> file;
  int process;
};

void OnNotify(void* context, const H5mEvent* event) {
  auto& listener = *static_cast<Listener*>(context);
  listener.world.Trace("process ", listener.process, ": ", listener.file->name(), " ", event->event,
                       " state ", static_cast<int>(event->state), " cut ", event->cut, " ",
                       event->detail);
  const bool diverged = std::strcmp(event->event, "diverged") == 0;
  if (diverged && !listener.file->may_diverge) {
    listener.world.Fail(StrCat("falsely diverged: ", std::string_view(event->detail)));
  }
}

void OnRelease(void* context) { delete static_cast<Listener*>(context); }

}  // namespace

int64_t Program::TimeNs() {
  return absl::ToUnixNanos(process_.world().Now() + process_.clock_offset);
}

// Time for the sender to do something in between.
void Program::Pause() {
  if (process_.world().Chance(0.2)) {
    process_.world().Sleep(process_.world().Between(absl::ZeroDuration(), absl::Milliseconds(4)));
  }
}

std::string Program::RandomBytes(uint64_t size) {
  World& world = process_.world();
  std::string bytes(size, '\0');
  // Runs, so that some changes change nothing and some pages are zeros.
  for (uint64_t at = 0; at < size;) {
    const uint64_t length = std::min<uint64_t>(size - at, 1 + world.Random(700));
    const char byte = static_cast<char>(world.Random(5) == 0 ? 0 : world.Random(256));
    std::memset(bytes.data() + at, byte, length);
    at += length;
  }
  return bytes;
}

bool Program::Lock(LocalFile& file) {
  World& world = process_.world();
  world.Wait([&] { return file.locked_by == nullptr; }, world.Now() + kLockWait);
  if (file.locked_by != nullptr) return false;
  file.locked_by = &process_;
  return true;
}

Program::Open Program::Begin(LocalFile& file, bool created) {
  Open open;
  for (const auto& one : process_.golden().files()) {
    if (one.get() == &file) open.file = one;
  }
  vfd::SessionConfig config;
  config.real_path = file.path();
  config.name = file.name();
  config.facts = {created, file.Stat(), kServer, file.name()};
  if (created) file.Truncate(0, TimeNs());
  config.mode_bits = 0644;
  config.server.server = kServer;
  config.server.target = StrCat("dns:///", std::string_view(kServer));
  config.program = "program";
  config.ack_commit = settings_.ack_commit;
  config.checksum = settings_.checksum;
  config.window_bytes = settings_.window_bytes;
  config.timeout = settings_.timeout;
  config.linger = settings_.linger;
  config.outage_wait = settings_.outage_wait;
  config.bandwidth_bytes_per_second = settings_.bandwidth_bytes_per_second;
  config.page_size_bytes = 512;
  config.version_every = settings_.version_every;
  config.version_min_interval = settings_.version_min_interval;
  config.notify = OnNotify;
  config.release = OnRelease;
  config.context = new Listener{process_.world(), open.file, process_.number()};
  process_.world().Trace("process ", process_.number(), ": opens ", file.name(),
                         created ? " as a new file" : "");
  open.session =
      vfd::Session::Start(process_, std::move(config), std::make_unique<SimReader>(open.file));
  return open;
}

// Writes like a program without the plugin. Afterwards it is unknown which side is right.
void Program::WritePlainly(LocalFile& file) {
  process_.world().Trace("process ", process_.number(), ": writes ", file.name(),
                         " without the plugin");
  file.Write(process_.world().Random(file.bytes().size() + 1),
             RandomBytes(1 + process_.world().Random(500)), TimeNs());
  file.MarkConsistent();
  file.may_diverge = true;
  file.locked_by = nullptr;
}

void Program::Write(Open& open) {
  World& world = process_.world();
  LocalFile& file = *open.file;
  const uint64_t end = std::min<uint64_t>(file.bytes().size() + 800, settings_.file_bytes_max);
  const uint64_t offset = world.Random(end);
  const std::string bytes = RandomBytes(1 + world.Random(settings_.write_bytes_max));
  open.session->BeforeWrite({offset, bytes.size()});
  Pause();
  file.Write(offset, bytes, TimeNs());
  Pause();
  open.session->AfterWrite({offset, bytes.size()}, H5M_WRITE_METADATA);
}

void Program::Truncate(Open& open) {
  World& world = process_.world();
  LocalFile& file = *open.file;
  const uint64_t size = world.Random(file.bytes().size() + 1500);
  // As the plugin does: all bytes from there on.
  open.session->BeforeWrite({size, (uint64_t{1} << 62) - size});
  file.Truncate(size, TimeNs());
  open.session->AfterTruncate(size);
}

void Program::Flush(Open& open) {
  World& world = process_.world();
  LocalFile& file = *open.file;
  const vfd::CutKind kinds[] = {vfd::CutKind::kTick, vfd::CutKind::kTick, vfd::CutKind::kSync,
                                vfd::CutKind::kCommit};
  const vfd::CutKind kind = kinds[world.Random(4)];
  H5mAck ack = H5M_ACK_DURABLE;
  if (kind == vfd::CutKind::kTick) ack = world.Chance(0.7) ? H5M_ACK_NONE : H5M_ACK_APPLIED;
  if (kind == vfd::CutKind::kCommit) ack = static_cast<H5mAck>(world.Random(3));
  file.MarkConsistent();
  const uint64_t number = file.Snapshot()->number;
  open.session->Cut(kind, ack, "");
  const bool acked = open.session->AwaitCut();
  world.Trace("process ", process_.number(), ": ", file.name(), " flush ", static_cast<int>(kind),
              " ack ", static_cast<int>(ack), acked ? ": acked state " : ": not acked ", number);
  if (acked && ack == H5M_ACK_DURABLE) file.acked_number = std::max(file.acked_number, number);
}

void Program::Change(Open& open) {
  const uint64_t dice = process_.world().Random(10);
  if (dice < 6) return Write(open);
  if (dice < 7) return Truncate(open);
  if (dice < 9) return Flush(open);
  process_.world().Sleep(process_.world().Between(absl::ZeroDuration(), absl::Milliseconds(1500)));
}

void Program::Close(Open& open, bool cleanly) {
  World& world = process_.world();
  LocalFile& file = *open.file;
  uint64_t number = 0;
  if (cleanly) {
    file.MarkConsistent();
    number = file.Snapshot()->number;
    open.session->Seal();
    open.session->AwaitSealed();
  } else {
    file.may_diverge = true;
  }
  const FileStat stat = file.Stat();
  open.noted = cleanly;
  file.locked_by = nullptr;
  Pause();
  open.session->BeginClose();
  static_cast<void>(open.session->Close());
  const auto record = ReadLocalRecord(file.path());
  const bool clean = record.ok() && record->state == RecordState::kClean && record->stat == stat;
  world.Trace("process ", process_.number(), ": closed ", file.name(), " at state ", number,
              clean ? ", clean" : ", not clean");
  if (clean) file.acked_number = std::max(file.acked_number, number);
  const bool untouched = file.locked_by == nullptr && file.Stat() == stat;
  if (clean && untouched) file.may_diverge = false;
}

void Program::Run(int opens) {
  World& world = process_.world();
  const auto& files = process_.golden().files();
  for (int i = 0; i < opens; ++i) {
    LocalFile& file = *files[world.Random(files.size())];
    if (world.Chance(0.4)) {
      world.Sleep(world.Between(absl::ZeroDuration(), absl::Seconds(2)));
    }
    Visit(file, Visiting::kAny);
  }
}

void Program::Visit(LocalFile& file, Visiting kind) {
  World& world = process_.world();
  if (!Lock(file)) return;
  if (kind == Visiting::kAny && settings_.plain_writers && world.Chance(0.15)) {
    return WritePlainly(file);
  }
  const bool created = file.bytes().empty() || kind == Visiting::kCreated ||
                       (kind == Visiting::kAny && world.Chance(0.12));
  opens_.push_back(Begin(file, created));
  const size_t at = opens_.size() - 1;
  Write(opens_[at]);
  const bool any = kind == Visiting::kAny;
  for (uint64_t changes = any ? world.Random(7) : 0; changes > 0; --changes) Change(opens_[at]);
  Close(opens_[at], !any || !settings_.unclean_closes || !world.Chance(0.1));
  opens_[at].closed = true;
  for (Open& open : opens_) {
    if (open.closed && open.session != nullptr && open.session->gone()) open.session.reset();
  }
}

void Program::NoteKill() {
  for (const auto& file : process_.golden().files()) {
    if (file->locked_by != &process_) continue;
    file->locked_by = nullptr;
    file->may_diverge = true;
  }
  for (Open& open : opens_) {
    if (open.session == nullptr || open.session->done()) continue;
    if (!open.noted) open.file->may_diverge = true;
  }
  opens_.clear();
}

}  // namespace h5mirror::sim
