// Rebuilds files of a root from an archive alone: from the copies of their heads and indexes, and
// from archived segments. Docs: docs/design/050-archive.md, "Copies of files".
#ifndef H5MIRROR_ONION_STORE_RESTORE_ROOT_H_
#define H5MIRROR_ONION_STORE_RESTORE_ROOT_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/env.h"
#include "onion_store/object_store.h"
#include "onion_store/types.h"

namespace h5mirror::store {

// The newest copy of one file.
struct RestorableFile {
  FileId file_id{};
  std::string name;         // the new name; differs from its own if another file has that
  std::string prefix;       // of the names of the objects of the copy
  absl::Time time;          // when the copy was made
  absl::Time version_time;  // when the version that it shows was made
  VersionNumber version = 0;
  int64_t versions = 0;
  uint64_t size_bytes = 0;
  uint64_t copy_bytes = 0;  // of the copy's objects, without segments
  // Set by RootRestore::Restore(): the bytes of pages that were damaged before they were copied.
  // Reads of them fail with kDataLoss, as before.
  uint64_t lost_bytes = 0;
  // kDataLoss: no copy is whole; if `name` is empty, no list of the file can be read either.
  // kNotFound: the archive has objects of the file, but no copy; then only the id is known.
  // kAlreadyExists: neither its own name nor another one is free.
  absl::Status status;
};

// All files of which an archive has objects, by name. If a copy's list is damaged, or an object of
// it is not listed with its length, an older copy is taken. Names differ, and none is a directory
// that another one needs. The cost grows with the objects of the archive. Errors: those of
// ObjectStore.
absl::StatusOr<std::vector<RestorableFile>> ListRestorable(ObjectStore& archive);
// The present newest copy of one file, with the file's own name. Errors: those of ObjectStore.
absl::StatusOr<RestorableFile> FindRestorable(ObjectStore& archive, const FileId& file_id);

struct RestoreOptions {
  // True: segments stay in the archive. The new root needs it, and no other root may use it.
  bool keep_archived = false;
  uint32_t umask_bits = 0027;  // as StoreOptions::umask_bits
  // Called with the bytes that came, after each piece. An error ends the call with it.
  std::function<absl::Status(uint64_t bytes)> on_bytes = nullptr;
};

// Not thread-safe. Holds the lock of the root.
class RootRestore {
 public:
  // Makes `root`'s own directory, and a mark in it: no store opens the root until End(). Continues
  // in a root that an earlier run for the same `archive_id` left; empty: for any archive. Removes
  // the parts of a file that the earlier run did not rebuild to the end.
  // Errors: kNotFound            the root does not exist.
  //         kFailedPrecondition  it is not empty, or of another archive, or another process uses
  //         it.
  static absl::StatusOr<std::unique_ptr<RootRestore>> Begin(Env& env,
                                                            const std::filesystem::path& root,
                                                            const std::string& archive_id);
  virtual ~RootRestore() = default;

  // Rebuilds one file. True: this call did so. False: an earlier run had done so. After an error or
  // a crash the file does not exist, and the call may be repeated. If the copy is replaced
  // meanwhile, the newer copy is taken, and `file` describes it.
  // Errors: kDataLoss  an object is damaged, is missing, or does not fit the others. The message
  //                    names it.
  //         kAlreadyExists  another file has the name, or is in the way of its directories.
  //         those of ObjectStore and of the disk.
  virtual absl::StatusOr<bool> Restore(ObjectStore& archive, const RestoreOptions& options,
                                       RestorableFile* file) = 0;
  // From now on a store opens the root. Durable when it returns.
  virtual absl::Status End() = 0;
};

// kFailedPrecondition: `tree` is a root in which a restore has begun and not ended.
absl::Status CheckNotBeingRestored(EnvTree& tree);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_RESTORE_ROOT_H_
