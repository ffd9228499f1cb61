// The newest cut of a file as a plain .h5, for programs that know nothing of us.
#ifndef H5MIRROR_SWMR_AGENT_PUBLISHED_FILE_H_
#define H5MIRROR_SWMR_AGENT_PUBLISHED_FILE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/extent_set.h"
#include "base/open_beneath.h"
#include "swmr_agent/followed_file.h"

namespace h5mirror::agent {

// Each cut is a file of its own, renamed over the one before. A reader that has the old file open
// goes on reading it. A new one begins as a copy of the last, by reflink where the file system can,
// which then gets the changes since. (Two files in turn would cost less elsewhere, but a
// reader that is slow would see its open file change.) Has one thread. Thread-safe.
class PublishedFile final : public CutListener {
 public:
  // As DIRECTORY/name; directories that the name has are made. Other users may write to DIRECTORY.
  // Their files there are replaced, and never followed, read or written.
  PublishedFile(const std::filesystem::path& directory, const std::string& name);
  ~PublishedFile() override { Stop(); }
  PublishedFile(const PublishedFile&) = delete;

  // Cuts that come while one is written are merged.
  void OnCut(FollowedFile& file, const CutNews& news) override;
  void OnEnd(FollowedFile& file) override;
  // Finishes the one in hand.
  void Stop();

 private:
  struct Pending {
    SharedCut cut;
    bool whole = false;
    ExtentSet changed;
  };

  void Run();
  // The cut is not read any more.
  void Release(int64_t cut);
  absl::Status Write(const Pending& pending);
  // Into the open temporary file, which is a copy of the last cut unless `whole`.
  absl::Status Fill(int fd, const Pending& pending, bool whole);

  const std::string reader_;  // as which it holds cuts
  const std::filesystem::path directory_;
  const std::filesystem::path name_;  // below it
  const std::string temporary_;       // beside it
  OwnedFd last_{-1};                  // of the thread: the file that it last wrote, if known
  uint64_t written_bytes_ = 0;        // and so long
  absl::Mutex source_mutex_;          // held over a call to it
  FollowedFile* source_ ABSL_GUARDED_BY(source_mutex_) = nullptr;  // it, while it is there
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Pending> pending_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_PUBLISHED_FILE_H_
