// libh5mirror_edit.so: what h5edit loads to speak to servers.
#include <cstdio>
#include <exception>
#include <memory>

#include "absl/synchronization/mutex.h"
#include "base/strings.h"
#include "h5edit/mirror_api.h"
#include "h5edit/mirror_push.h"

namespace h5mirror::edit {
namespace {

void Say(std::string_view text, char* error, size_t error_size) {
  std::snprintf(error, error_size, "%.*s", static_cast<int>(text.size()), text.data());
}

MirrorPush* Of(H5mEditMirror* mirror) { return reinterpret_cast<MirrorPush*>(mirror); }

H5mEditMirror* Open(const char* path, const char* server, const char* config, char* error,
                    size_t error_size) {
  try {
    auto push = MirrorPush::Open(path, server, config);
    Say(push.ok() ? (*push)->Lag() : ToStd(push.status().message()), error, error_size);
    return push.ok() ? reinterpret_cast<H5mEditMirror*>(push->release()) : nullptr;
  } catch (const std::exception& thrown) {
    Say(thrown.what(), error, error_size);
    return nullptr;
  }
}

int Commit(H5mEditMirror* mirror, const char* comment, int last, char* error, size_t error_size) {
  try {
    const absl::Status sent = Of(mirror)->Commit(
        comment, last != 0 ? MirrorPush::Moment::kLast : MirrorPush::Moment::kBetween);
    if (!sent.ok()) Say(ToStd(sent.message()), error, error_size);
    return sent.ok() ? 0 : 1;
  } catch (const std::exception& thrown) {
    Say(thrown.what(), error, error_size);
    return 1;
  }
}

int IsRequired(const H5mEditMirror* mirror) {
  return reinterpret_cast<const MirrorPush*>(mirror)->is_required() ? 1 : 0;
}

void Close(H5mEditMirror* mirror) { delete Of(mirror); }

constexpr H5mEditMirrorApi kApi = {
    H5M_EDIT_MIRROR_ABI, sizeof(H5mEditMirrorApi), Open, Commit, IsRequired, Close};

}  // namespace
}  // namespace h5mirror::edit

extern "C" __attribute__((visibility("default"))) const H5mEditMirrorApi*
h5mirror_edit_mirror_api() {
  // As the driver's module does: Debian's Abseil looks for cycles at each lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return &h5mirror::edit::kApi;
}
