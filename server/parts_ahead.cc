#include "server/parts_ahead.h"

#include <utility>

namespace h5mirror::server {

PartsAhead::PartsAhead(WorkerPool& pool, Read read)
    : pool_(pool), state_(std::make_shared<State>(std::move(read))) {}

PartsAhead::~PartsAhead() {
  absl::MutexLock lock(&state_->mutex);
  state_->mutex.Await(absl::Condition(state_.get(), &State::IsSettled));
  state_->stage = Stage::kIdle;  // A task that is still queued finds nothing to do.
}

absl::StatusOr<bool> PartsAhead::Next(v1::ReadVersionResponse& part) {
  State& state = *state_;
  {
    absl::MutexLock lock(&state.mutex);
    if (state.stage == Stage::kIdle) state.stage = Stage::kQueued;
  }
  ReadQueued(state);
  {
    absl::MutexLock lock(&state.mutex);
    state.mutex.Await(absl::Condition(&state, &State::IsSettled));
  }
  if (!state.more.ok() || !*state.more) return state.more;
  std::swap(part, state.part);
  {
    absl::MutexLock lock(&state.mutex);
    state.stage = Stage::kQueued;
  }
  pool_.Schedule([shared = state_] { ReadQueued(*shared); });
  return true;
}

void PartsAhead::ReadQueued(State& state) {
  {
    absl::MutexLock lock(&state.mutex);
    if (state.stage != Stage::kQueued) return;
    state.stage = Stage::kReading;
  }
  state.more = state.read(state.part);
  absl::MutexLock lock(&state.mutex);
  state.stage = Stage::kRead;
}

}  // namespace h5mirror::server
