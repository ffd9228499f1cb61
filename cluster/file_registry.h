// A registry in one file, for tests of several processes without Ceph. Where a filesystem is
// shared by machines it is as good as that filesystem's locks, and fences nobody.
#ifndef H5MIRROR_CLUSTER_FILE_REGISTRY_H_
#define H5MIRROR_CLUSTER_FILE_REGISTRY_H_

#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "cluster/registry.h"

namespace h5mirror::cluster {

// The file "registry" of a directory is replaced by rename under flock(2) of "registry.lock", so a
// reader needs no lock and sees one state. A change that returned survives power loss.
//
// Thread-safe, also beside other objects and processes on the directory.
class FileRegistry final : public Registry {
 public:
  // `directory` must be there; `env` must outlive this. Errors as Env::OpenTree().
  static absl::StatusOr<std::unique_ptr<FileRegistry>> Open(Env& env,
                                                            const std::filesystem::path& directory);

  absl::StatusOr<RegistryView> ReadAll() override;
  absl::StatusOr<RegistryView> Read(absl::Span<const std::string> names) override;
  // Waits up to 5 s for the lock, then kUnavailable.
  absl::Status CompareAndSet(absl::Span<const Expectation> expected,
                             absl::Span<const NewText> changes) override;

 private:
  explicit FileRegistry(std::unique_ptr<EnvTree> tree) : tree_(std::move(tree)) {}
  absl::StatusOr<std::unique_ptr<EnvLock>> Lock() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Replace(const RegistryView& view) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<EnvTree> tree_;
  // One change at a time of this object, held over its I/O. The lock of the file is for others.
  absl::Mutex mutex_;
};

// The bytes of the file: a first line, then for each name "NAME_BYTES TEXT_BYTES", name and text on
// lines of their own, then "end" with their number.
std::string EncodeRegistry(const RegistryView& view);
// kDataLoss: these are not the bytes of EncodeRegistry().
absl::StatusOr<RegistryView> DecodeRegistry(std::string_view bytes);

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_FILE_REGISTRY_H_
