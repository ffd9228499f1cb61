#include "rpc/munge_token.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/munge_library.h"
#include "base/signal_block.h"
#include "base/steady_time.h"
#include "base/strings.h"

namespace h5mirror::rpc {
namespace {

constexpr std::string_view kSource = "munge";
constexpr int kThreadsMax = 4;
constexpr absl::Duration kPause = absl::Milliseconds(1);
// munged answers within a millisecond, and a program's own thread may wait behind this one.
constexpr absl::Duration kRenewalWait = absl::Milliseconds(200);
// After a question that had no answer.
constexpr absl::Duration kPatience = absl::Seconds(5);

// The threads that run. A forked child has none of its parent's.
std::atomic<int> threads_running{0};
std::atomic<pid_t> threads_of{0};

// Shared with the thread, which may outlive the question.
struct Question {
  explicit Question(std::string its_socket) : socket(std::move(its_socket)) {}

  const std::string socket;
  absl::StatusOr<std::string> answer = absl::UnavailableError("munged was not asked");
  std::atomic<bool> is_answered{false};  // `answer` is the thread's until then
};

bool TakeThread() {
  if (const pid_t self = getpid(); threads_of.exchange(self) != self) threads_running = 0;
  if (++threads_running <= kThreadsMax) return true;
  --threads_running;
  return false;
}

void Answer(MakeCredential make, Question& question) {
  try {
    question.answer = make(question.socket);
  } catch (const std::exception&) {  // No memory: the program is not ours, and goes on.
  }
  question.is_answered.store(true, std::memory_order_release);
}

bool Ask(MakeCredential make, const std::shared_ptr<Question>& question) {
  if (!TakeThread()) return false;
  const SignalBlock block;
  try {
    std::thread([make, question] {
      pthread_setname_np(pthread_self(), "h5m-munge");
      Answer(make, *question);
      --threads_running;
    }).detach();
    return true;
  } catch (const std::exception&) {
    --threads_running;
    return false;
  }
}

absl::Status Away(std::string_view why) {
  return absl::UnavailableError(
      StrCat("token = \"munge\": ", why,
             ". Look whether the service munge runs on this host, or set another token"));
}

struct Made {
  std::string token = {};
  absl::Time renewal = absl::InfinitePast();
  absl::Time looked_at = absl::InfinitePast();  // munged was asked, and answered or not
  absl::Status failure = absl::OkStatus();      // its last answer, if that was none
};

struct MadeTokens {
  absl::Mutex making ABSL_ACQUIRED_BEFORE(mutex);
  absl::Mutex mutex;
  std::map<std::string, Made> by_server ABSL_GUARDED_BY(mutex);
};

MadeTokens& Newest() {
  static auto* const tokens = new MadeTokens;
  return *tokens;
}

std::string KeyOf(std::string_view source, const std::string& target) {
  return StrCat(source, "\n", target);
}

}  // namespace

bool IsMungeSource(std::string_view token) {
  return token == kSource || token.starts_with("munge:");
}

absl::StatusOr<std::string> MakeMungeTokenBy(MakeCredential make, std::string_view source,
                                             absl::Duration wait_max) {
  source.remove_prefix(std::min(source.size(), kSource.size() + 1));
  const auto question = std::make_shared<Question>(std::string(source));
  if (!Ask(make, question)) return Away("too many questions to munged hang, or no thread starts");
  // A timed wait for a mutex goes by the time of day, and hangs where that is set back.
  const absl::Time deadline = SteadyNow() + wait_max;
  while (!question->is_answered.load(std::memory_order_acquire)) {
    if (SteadyNow() >= deadline) {
      return Away(StrCat("munged did not answer within ", absl::FormatDuration(wait_max)));
    }
    absl::SleepFor(kPause);
  }
  if (question->answer.ok()) return question->answer;
  return absl::Status(question->answer.status().code(),
                      ToAbsl(StrCat("token = \"munge\": ", question->answer.status().message())));
}

absl::StatusOr<std::string> MakeMungeToken(std::string_view source, const std::string& target,
                                           absl::Duration wait_max) {
  {
    absl::MutexLock lock(&Newest().mutex);
    const Made& made = Newest().by_server[KeyOf(source, target)];
    if (!made.failure.ok() && SteadyNow() < made.looked_at + kPatience) return made.failure;
  }
  absl::StatusOr<std::string> token = MakeMungeTokenBy(EncodeMunge, source, wait_max);
  absl::MutexLock lock(&Newest().mutex);
  Made& made = Newest().by_server[KeyOf(source, target)];
  made.looked_at = SteadyNow();
  made.failure = token.status();
  if (token.ok()) {
    made.token = *token;
    made.renewal = made.looked_at + kMungeRenewal;
  }
  return token;
}

std::string CurrentMungeToken(std::string_view source, const std::string& target,
                              const std::string& given) {
  absl::MutexLock one_at_a_time(&Newest().making);
  {
    absl::MutexLock lock(&Newest().mutex);
    const Made& made = Newest().by_server[KeyOf(source, target)];
    const absl::Time now = SteadyNow();
    if (now < made.renewal || now < made.looked_at + kPatience) {
      return made.token.empty() ? given : made.token;
    }
  }
  return MakeMungeToken(source, target, kRenewalWait).value_or(given);
}

bool ReplaceMungeToken(std::string_view source, const std::string& target,
                       const std::string& refused) {
  absl::MutexLock one_at_a_time(&Newest().making);
  {
    absl::MutexLock lock(&Newest().mutex);
    const Made& made = Newest().by_server[KeyOf(source, target)];
    if (!made.token.empty() && made.token != refused) return true;  // another call was quicker
  }
  return MakeMungeToken(source, target, kRenewalWait).ok();
}

}  // namespace h5mirror::rpc
