#include "h5diff/cut_delta.h"

#include <string_view>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::tools {
namespace {

// Cancels a stream that takes longer.
class CancelLate {
 public:
  CancelLate(rpc::FollowStream& stream, absl::Duration timeout)
      : thread_([this, &stream, timeout] {
          absl::MutexLock lock(&mutex_);
          if (!mutex_.AwaitWithTimeout(absl::Condition(&done_), timeout)) stream.Cancel();
        }) {}
  ~CancelLate() {
    {
      absl::MutexLock lock(&mutex_);
      done_ = true;
    }
    thread_.join();
  }

 private:
  absl::Mutex mutex_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

void Begin(const v1::FollowFileResponse& message, CutDelta& delta) {
  // Of a cut that came before, or that could not be held: what had changed since stays changed.
  delta.whole = delta.whole || message.whole();
  delta.snapshot = message.snapshot();
  delta.file_id = message.file_id();
  for (int i = 0; i < message.changed_offset_size() && i < message.changed_length_size(); ++i) {
    delta.changed.Add({message.changed_offset(i), message.changed_length(i)});
  }
}

absl::Status Learn(const v1::FollowFileResponse& message, CutDelta& delta) {
  if (message.data_offset_size() != message.data_length_size() ||
      (!message.data().empty() && Crc32c(message.data()) != message.data_crc32c())) {
    return absl::DataLossError(
        StrCat("metadata of cut ", delta.snapshot.cut(), " was damaged on the way"));
  }
  std::string_view data = message.data();
  for (int i = 0; i < message.data_offset_size(); ++i) {
    const uint64_t offset = message.data_offset(i), length = message.data_length(i);
    if (length > data.size()) return absl::DataLossError("the server sent a part of its metadata");
    delta.metadata.Add({offset, length});
    delta.pages.emplace_back(offset, data.substr(0, length));
    data.remove_prefix(length);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CutDelta> FetchCutDelta(rpc::Client& client, const DeltaRequest& wanted,
                                       absl::Duration timeout) {
  v1::FollowFileRequest request;
  request.set_name(wanted.file);
  request.set_after_cut(wanted.after_cut);
  request.set_file_id(wanted.file_id);
  request.set_metadata_bytes_max(wanted.metadata_bytes_max);
  request.set_reader_id(wanted.reader_id);
  const std::unique_ptr<rpc::FollowStream> stream = client.FollowFile(request);
  CutDelta delta;
  delta.whole = wanted.after_cut == 0;
  absl::Status status;
  bool is_complete = false;
  {
    const CancelLate late(*stream, timeout);
    v1::FollowFileResponse message;
    while (!is_complete && status.ok() && stream->Read(message)) {
      if (message.has_snapshot()) {
        if (delta.snapshot.cut() != 0) delta.passed_cuts.push_back(delta.snapshot.cut());
        Begin(message, delta);
        delta.pages.clear();
      }
      status = Learn(message, delta);
      is_complete = message.last() && delta.snapshot.cut() >= wanted.at_least_cut;
    }
    stream->Cancel();
    while (stream->Read(message)) {
    }
  }
  const absl::Status ended = stream->Finish();
  H5M_RETURN_IF_ERROR(status);
  if (!is_complete) return ended.ok() ? absl::UnavailableError("the server ended early") : ended;
  delta.all_metadata = delta.metadata.byte_count() < wanted.metadata_bytes_max;
  return delta;
}

}  // namespace h5mirror::tools
