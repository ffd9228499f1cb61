#include "swmr_agent/map_server.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/time/clock.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "spdlog/spdlog.h"
#include "swmr_agent/send_memory.h"
#include "swmr_agent/socket_place.h"

namespace h5mirror::agent {
namespace {

constexpr size_t kReadersMax = 8192;
constexpr absl::Duration kQuestionWait = absl::Seconds(5);
// While no reader can be let in, and to find the readers that have not asked in time.
constexpr int kLookMs = 1000;

template <typename Answer>
std::string_view BytesOf(const Answer& answer) {
  return {reinterpret_cast<const char*>(&answer), sizeof(answer)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<MapServer>> MapServer::Listen(const std::filesystem::path& path,
                                                             mode_t mode_bits, Answers answers,
                                                             absl::Duration unused_max) {
  H5M_ASSIGN_OR_RETURN(const auto place, SocketPlace::Prepare(path));
  H5M_ASSIGN_OR_RETURN(OwnedFd listener, ListenAt(*place));
  OwnedFd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (stop.get() < 0) return ErrnoToStatus(errno, "listen for readers that map");
  H5M_RETURN_IF_ERROR(place->Publish(mode_bits));
  return std::unique_ptr<MapServer>(
      new MapServer(path, std::move(listener), std::move(stop), std::move(answers), unused_max));
}

MapServer::MapServer(std::filesystem::path path, OwnedFd listener, OwnedFd stop, Answers answers,
                     absl::Duration unused_max)
    : path_(std::move(path)),
      listener_(std::move(listener)),
      stop_(std::move(stop)),
      find_(std::move(answers.map)),
      find_blocks_(std::move(answers.blocks)),
      unused_max_(unused_max),
      opener_(std::move(answers.open)),
      thread_([this] {
        pthread_setname_np(pthread_self(), "h5m-maps");
        Run();
      }) {}

MapServer::~MapServer() {
  unlink(path_.c_str());
  const uint64_t one = 1;
  static_cast<void>(write(stop_.get(), &one, sizeof(one)));
  thread_.join();
}

void MapServer::Run() {
  for (;;) {
    std::vector<pollfd> wanted = {{stop_.get(), POLLIN, 0},
                                  {accepts_ ? listener_.get() : -1, POLLIN, 0}};
    for (const Reader& reader : readers_) wanted.push_back({reader.descriptor(), POLLIN, 0});
    const int ready = poll(wanted.data(), wanted.size(), kLookMs);
    if (wanted[0].revents != 0) return;
    accepts_ = true;
    size_t at = 2;
    for (auto reader = readers_.begin(); reader != readers_.end(); ++at) {
      const bool is_late = !reader->has_answer && absl::Now() > reader->until;
      const bool stays = ready > 0 && wanted[at].revents != 0 ? Serve(*reader) : !is_late;
      if (!stays) LetGo(*reader);
      reader = stays ? std::next(reader) : readers_.erase(reader);
    }
    unused_.remove_if([](const Unused& each) { return absl::Now() > each.until; });
    // Also where a block took the place of another one: readers would push out each other's blocks
    // until the time of this window is over, which has had no reader for the longest time.
    if (!unused_.empty() && unused_.front().window->TakeLackOfMemory()) unused_.pop_front();
    if (ready > 0 && wanted[1].revents != 0) Accept();
  }
}

void MapServer::Accept() {
  while (readers_.size() < kReadersMax) {
    OwnedFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.get() >= 0) {
      if (const std::optional<uid_t> user = UserOfConnection(fd.get())) {
        readers_.push_back({std::move(fd), *user, absl::Now() + kQuestionWait, ""});
      }
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    accepts_ = errno == EAGAIN;  // Else there are no descriptors left just now.
    return;
  }
  accepts_ = false;
}

void MapServer::LetGo(Reader& reader) {
  if (reader.blocks == nullptr) return;
  const WindowPtr& window = reader.blocks->view.window;
  const bool has_other = std::any_of(readers_.begin(), readers_.end(), [&](const Reader& other) {
    return &other != &reader && other.blocks != nullptr && other.blocks->view.window == window;
  });
  if (has_other) return;
  // A lack of a time when no window could end is no reason to end this one.
  if (unused_.empty()) static_cast<void>(window->TakeLackOfMemory());
  unused_.push_back({window, absl::Now() + unused_max_});
}

bool MapServer::Serve(Reader& reader) {
  char bytes[4096];
  const ssize_t got = recv(reader.descriptor(), bytes, sizeof(bytes), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0 || (reader.has_answer && reader.blocks == nullptr)) return false;
  reader.asked.append(bytes, static_cast<size_t>(got));
  if (reader.blocks != nullptr) return filler_.Take(reader.blocks, &reader.asked);
  const std::optional<size_t> length = rpc::QuestionBytes(reader.asked);
  if (!length || (*length != 0 && reader.asked.size() > *length)) return false;
  if (*length == 0 || reader.asked.size() < *length) return true;
  return Answer(reader);
}

bool MapServer::Answer(Reader& reader) {
  std::optional<rpc::CutMapQuestion> question = rpc::DecodeQuestion(reader.asked);
  if (!question) return false;
  reader.has_answer = true;
  reader.asked = std::string();
  switch (question->kind) {
    case rpc::CutMapQuestion::Kind::kMap:
      return AnswerMap(reader, *question);
    case rpc::CutMapQuestion::Kind::kBlocks:
      return AnswerBlocks(reader, *question);
    case rpc::CutMapQuestion::Kind::kOpen:
      PassOn(reader, *std::move(question));
      return true;
  }
  return false;
}

bool MapServer::AnswerMap(Reader& reader, const rpc::CutMapQuestion& question) {
  absl::StatusOr<MemoryPtr> memory = find_(reader.user, question);
  if (!memory.ok()) {
    spdlog::debug("{}: not mapped: {}", question.name, ToStd(memory.status().message()));
  }
  const std::vector<int> fds = memory.ok() ? (*memory)->descriptors() : std::vector<int>();
  rpc::CutMapAnswer answer{};
  memcpy(answer.magic, rpc::kAnswerMagic, sizeof(answer.magic));
  answer.descriptor_count = static_cast<uint32_t>(fds.size());
  if (!SendMemory(reader.fd.get(), BytesOf(answer), fds) || fds.empty()) return false;
  reader.memory = *std::move(memory);
  return true;
}

void MapServer::PassOn(Reader& reader, rpc::CutMapQuestion question) {
  reader.opened = std::make_shared<OpenReader>();
  reader.opened->fd = std::move(reader.fd);
  opener_.Take(reader.opened, reader.user, std::move(question));
}

bool MapServer::AnswerBlocks(Reader& reader, const rpc::CutMapQuestion& question) {
  absl::StatusOr<SharedView> view = find_blocks_(reader.user, question);
  while (absl::IsResourceExhausted(view.status()) && !unused_.empty()) {
    unused_.pop_front();
    view = find_blocks_(reader.user, question);
  }
  rpc::SharedBlocksAnswer answer{};
  memcpy(answer.magic, rpc::kSharedMagic, sizeof(answer.magic));
  std::vector<int> fds;
  if (view.ok()) {
    fds = view->window->descriptors();
    answer.cut = view->image->window_cut();
    answer.flags = rpc::kAnswersAlone;
  } else {
    spdlog::debug("{}: no blocks shared: {}", question.name, ToStd(view.status().message()));
  }
  answer.descriptor_count = static_cast<uint32_t>(fds.size());
  if (!SendMemory(reader.fd.get(), BytesOf(answer), fds) || fds.empty()) return false;
  reader.blocks = std::make_shared<BlockReader>();
  reader.blocks->fd = std::move(reader.fd);
  reader.blocks->view = *std::move(view);
  const WindowPtr& window = reader.blocks->view.window;
  unused_.remove_if([&](const Unused& each) { return each.window == window; });
  return true;
}

}  // namespace h5mirror::agent
