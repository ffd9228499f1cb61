// One version of a file with an embedded history, open for reading in mode=reader.
#ifndef H5MIRROR_CLIENT_VFD_EMBEDDED_READER_H_
#define H5MIRROR_CLIENT_VFD_EMBEDDED_READER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client_vfd/embedded/fork.h"
#include "onion_store/file.h"
#include "rpc/version_spec.h"

namespace h5mirror::vfd {

// Pinned: the same bytes from its opening on. A version that was cut while a writer had the file
// open reads as one that was closed. Thread-compatible.
class EmbeddedReader {
 public:
  // Opens the file's versions: those of a writer in this process, or beside other readers.
  using Opener = std::function<absl::StatusOr<std::shared_ptr<store::File>>()>;

  // Errors: those of `opener` and of finding the version.
  static absl::StatusOr<std::unique_ptr<EmbeddedReader>> Open(std::string path, Opener opener,
                                                              const rpc::VersionSpec& version);

  const std::string& path() const { return path_; }
  ~EmbeddedReader();
  const store::VersionInfo& info() const { return info_; }

  // Beyond the end zeros. Errors: as VersionReader::Read().
  absl::Status Read(uint64_t offset, absl::Span<char> out);

 private:
  EmbeddedReader(std::string path, Opener opener)
      : path_(std::move(path)), opener_(std::move(opener)) {}
  absl::Status OpenVersion(store::VersionNumber version);
  // In a forked child: what it has is the parent's, whose index goes on without the child.
  bool IsInherited() const { return ForksSeen() != forks_seen_; }
  void LeaveToParent();
  // Looks where HDF5 does for the superblock, and notes what is to be put over it.
  absl::Status FindSuperblock();

  const std::string path_;
  const Opener opener_;
  unsigned forks_seen_ = ForksSeen();
  store::VersionInfo info_;
  std::shared_ptr<store::File> file_;
  std::unique_ptr<store::VersionReader> reader_;
  uint64_t patch_offset_ = 0;
  std::string patch_;  // empty: the superblock is right as it is
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_EMBEDDED_READER_H_
