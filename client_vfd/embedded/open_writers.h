// The files that this process writes with server=embedded, also over a fork.
#ifndef H5MIRROR_CLIENT_VFD_EMBEDDED_OPEN_WRITERS_H_
#define H5MIRROR_CLIENT_VFD_EMBEDDED_OPEN_WRITERS_H_

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client_vfd/api/embedded_api.h"
#include "client_vfd/embedded/writer.h"

namespace h5mirror::vfd {

// The receiver of a file's events. Destroying this releases the context.
struct Listener {
  void (*notify)(void* context, const H5mEvent* event) = nullptr;
  void (*release)(void* context) = nullptr;
  void* context = nullptr;

  void Tell(const char* event, H5mState state, const EmbeddedProgress& progress,
            const std::string& detail) const;
};

// One file, and the number of its opens.
struct OpenWriter {
  std::string path;
  const void* host = nullptr;
  Listener listener;
  int share_count = 1;  // 0: it is being closed
  bool clean = true;    // all closes so far were clean
  std::unique_ptr<EmbeddedWriter> writer;
};

// Thread-safe. A forked child begins without files: it never touches those of its parent.
class OpenWriters {
 public:
  static OpenWriters& Get();

  // After an error `listener` stays the caller's.
  // Errors: kUnavailable         this process has the file open already.
  //         kFailedPrecondition  this process cannot open files with server=embedded: it was
  //                              forked while its parent was at work.
  //         those of EmbeddedWriter::Open().
  absl::StatusOr<OpenWriter*> Add(EmbeddedWriterConfig config, const void* host,
                                  const Listener& listener);
  // Null: `host` has no such file open.
  OpenWriter* Share(const std::string& path, const void* host);
  // Counts one close. True: it was the last open; the caller ends the file and calls Forget().
  bool LastCloses(OpenWriter* writer, bool clean);
  void Forget(OpenWriter* writer);
  // For readers of a file that this process writes; null: it does not write it.
  absl::StatusOr<std::shared_ptr<store::File>> FileForReaders(const std::string& path);
  absl::Status CheckUsable();

  void PrepareFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void ParentAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void ChildAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;

 private:
  absl::Mutex mutex_;
  std::map<std::string, std::unique_ptr<OpenWriter>> writers_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> usable_{true};
  // State of the fork in progress. True: all files are locked, and no background work runs.
  bool locked_ = false;
  bool was_still_ = true;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_EMBEDDED_OPEN_WRITERS_H_
