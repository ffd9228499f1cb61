#include "client_vfd/session/token_reader.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/signal_block.h"
#include "base/steady_time.h"
#include "rpc/client_files.h"
#include "rpc/munge_token.h"

namespace h5mirror::vfd {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(100);

std::atomic<TokenReader*>& Instance() {
  static auto* const instance = new std::atomic<TokenReader*>(new TokenReader);
  return *instance;
}

// For the process that the next fork makes. Forks are one at a time.
TokenReader*& OfNextChild() {
  static TokenReader* reader = nullptr;
  return reader;
}

// A signed token with a time at which it expires; others do not change while a program runs.
bool Expires(const std::string& token) {
  return token.starts_with("eyJ") && std::count(token.begin(), token.end(), '.') == 2;
}

}  // namespace

TokenReader& TokenReader::Get() { return *Instance(); }

TokenReader::Known& TokenReader::Find(const rpc::ClientOptions& options) {
  const std::string& source = options.token_source;
  const std::string key = rpc::IsMungeSource(source) ? source + "\n" + options.target : source;
  return tokens_.try_emplace(key, Known{source, options.target, options.token}).first->second;
}

void TokenReader::Note(const rpc::ClientOptions& options) {
  if (options.token_source.empty()) return;
  absl::MutexLock lock(&mutex_);
  Find(options).token = options.token;
  Use(Expires(options.token));
}

std::string TokenReader::Newest(const rpc::ClientOptions& options) {
  if (options.token_source.empty()) return options.token;
  absl::MutexLock lock(&mutex_);
  std::string token = Find(options).token;
  Use(Expires(token));
  return token;
}

void TokenReader::ReadSoon(const rpc::ClientOptions& options) {
  if (options.token_source.empty()) return;
  absl::MutexLock lock(&mutex_);
  Find(options).is_wanted = true;
  is_wanted_ = true;
  Use(/*needs_thread=*/true);
}

void TokenReader::Use(bool needs_thread) {
  idle_periods_ = 0;
  if (is_running_ || !needs_thread) return;
  const SignalBlock block;
  try {
    std::thread([this] {
      pthread_setname_np(pthread_self(), "h5m-token");
      Run();
    }).detach();
    is_running_ = true;
  } catch (const std::exception&) {
    // Without a thread the token stays, until the next use finds one.
  }
}

void TokenReader::Run() {
  try {
    while (AwaitTurn()) ReadAll();
  } catch (const std::exception&) {  // No memory: a program that is not ours must not end by it.
    absl::MutexLock lock(&mutex_);
    is_running_ = false;
  }
}

bool TokenReader::IsWanted() {
  absl::MutexLock lock(&mutex_);
  return is_wanted_;
}

bool TokenReader::AwaitTurn() {
  // A timed wait for a mutex goes by the time of day, and hangs where that is set back.
  for (absl::Duration waited; waited < kPeriod && !IsWanted(); waited += kPause) {
    absl::SleepFor(kPause);
  }
  absl::MutexLock lock(&mutex_);
  if (++idle_periods_ > kIdlePeriods) is_running_ = false;
  is_wanted_ = false;
  return is_running_;
}

std::map<std::string, TokenReader::Known> TokenReader::TakeDue() {
  std::map<std::string, Known> due;
  absl::MutexLock lock(&mutex_);
  for (auto& [key, known] : tokens_) {
    const bool is_munge = rpc::IsMungeSource(known.source);
    if (is_munge && SteadyNow() < known.made + kMungePause) continue;
    const bool is_wanted = std::exchange(known.is_wanted, false);
    if (is_wanted || !is_munge) due.emplace(key, known);
  }
  return due;
}

void TokenReader::ReadAll() {
  for (const auto& [key, known] : TakeDue()) {
    absl::StatusOr<std::string> token = rpc::IsMungeSource(known.source)
                                            ? rpc::MakeMungeToken(known.source, known.target)
                                            : rpc::ReadToken(known.source);
    absl::MutexLock lock(&mutex_);
    // No new token, for instance after a logout: the old one is used until it expires. munged is
    // asked again.
    tokens_[key].is_wanted |= !token.ok() && rpc::IsMungeSource(known.source);
    if (!token.ok()) continue;
    tokens_[key].token = *std::move(token);
    tokens_[key].made = SteadyNow();
  }
}

void TokenReader::PrepareFork() {
  // Now, as a child without memory could not go on.
  if (OfNextChild() == nullptr) OfNextChild() = new (std::nothrow) TokenReader;
  Get().mutex_.Lock();
}

void TokenReader::ParentAfterFork() { Get().mutex_.Unlock(); }

void TokenReader::ChildAfterFork() {
  // The parent's reader stays locked here: the lock may still name its thread, which is not there.
  TokenReader* const own = std::exchange(OfNextChild(), nullptr);
  if (own == nullptr) return Get().mutex_.Unlock();
  own->tokens_.swap(Get().tokens_);
  Instance() = own;
}

}  // namespace h5mirror::vfd
