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

// Reads the same bytes from its open on. If a writer had the file open at the cut of the version,
// the bytes read as those of a closed file. Thread-compatible.
class EmbeddedReader {
 public:
  // Gives the file of a writer in this process, or opens it beside other readers.
  using Opener = std::function<absl::StatusOr<std::shared_ptr<store::File>>()>;

  // Errors: those of `opener` and of finding the version.
  static absl::StatusOr<std::unique_ptr<EmbeddedReader>> Open(std::string path, Opener opener,
                                                              const rpc::VersionSpec& version);

  const std::string& path() const { return path_; }
  ~EmbeddedReader();
  const store::VersionInfo& info() const { return info_; }

  // Fills `out`; beyond the end zeros. Errors: as VersionReader::Read().
  absl::Status Read(uint64_t offset, absl::Span<char> out);

 private:
  EmbeddedReader(std::string path, Opener opener)
      : path_(std::move(path)), opener_(std::move(opener)) {}
  absl::Status OpenVersion(store::VersionNumber version);
  // True: this is a forked child, and the open file and its index are the parent's.
  bool IsInherited() const { return ForksSeen() != forks_seen_; }
  void LeaveToParent();
  // Finds the superblock where HDF5 looks for it, and makes the patch that closes it.
  absl::Status FindSuperblock();

  const std::string path_;
  const Opener opener_;
  unsigned forks_seen_ = ForksSeen();
  store::VersionInfo info_;
  std::shared_ptr<store::File> file_;
  std::unique_ptr<store::VersionReader> reader_;
  uint64_t patch_offset_ = 0;
  std::string patch_;  // the closed superblock's bytes; empty: it needs no patch
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_EMBEDDED_READER_H_
