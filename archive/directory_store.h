// An archive that is a directory, on another disk or a mounted file system.
#ifndef H5MIRROR_ARCHIVE_DIRECTORY_STORE_H_
#define H5MIRROR_ARCHIVE_DIRECTORY_STORE_H_

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "onion_store/object_store.h"

namespace h5mirror::archive {

// An object is a file. A put writes NAME.new beside its place, syncs it and renames it; then it
// syncs the directory. A NAME.new that a crash left is not an object. Files are 0600, directories
// 0700.
//
// Timeouts have no effect: a call of a file system answers or hangs.
class DirectoryStore final : public store::ObjectStore {
 public:
  // kNotFound: `root` does not exist; those of Env::OpenTree().
  static absl::StatusOr<std::unique_ptr<DirectoryStore>> Open(Env& env,
                                                              const std::filesystem::path& root);
  // The objects are below `directory` of `tree`. The first put makes the directory. "": the root.
  DirectoryStore(std::unique_ptr<EnvTree> tree, std::string directory, std::string description)
      : tree_(std::move(tree)),
        directory_(std::move(directory)),
        description_(std::move(description)) {}

  std::string Describe() const override { return description_; }
  absl::Status Put(std::string_view name, store::ObjectSource& source,
                   absl::Duration timeout) override;
  absl::Status Get(std::string_view name, uint64_t offset, absl::Span<char> out,
                   absl::Duration timeout) override;
  absl::StatusOr<store::ObjectInfo> Head(std::string_view name, absl::Duration timeout) override;
  absl::StatusOr<store::ObjectPage> List(std::string_view prefix, std::string_view next,
                                         size_t limit, absl::Duration timeout) override;
  absl::Status Delete(std::string_view name, absl::Duration timeout) override;

 private:
  struct Listing;

  std::string PathOf(std::string_view name) const;
  // `status`, with the call and the object at the front of its message. A code that has another
  // meaning for callers becomes kFailedPrecondition.
  absl::Status In(const absl::Status& status, std::string_view call, std::string_view name) const;
  absl::Status PutFile(const std::string& path, store::ObjectSource& source);
  // Makes an existing object durable, wherever the call that put it has stopped.
  absl::Status Settle(const std::string& path, bool keeps_name);
  // Makes the directories above `path`, and makes them durable, each once.
  absl::Status MakeDirectories(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);
  void ForgetDirectories() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status MakeDirectory(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ListBelow(const std::string& name, Listing* listing) const;

  const std::unique_ptr<EnvTree> tree_;
  const std::string directory_;
  const std::string description_;
  absl::Mutex mutex_;
  std::set<std::string> known_ ABSL_GUARDED_BY(mutex_);  // directories whose names are durable
};

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_DIRECTORY_STORE_H_
