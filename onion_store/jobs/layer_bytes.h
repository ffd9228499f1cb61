// The source of the bytes of a copy's layer: docs/design/050-archive.md, "Copies of files".
#ifndef H5MIRROR_ONION_STORE_JOBS_LAYER_BYTES_H_
#define H5MIRROR_ONION_STORE_JOBS_LAYER_BYTES_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/env.h"
#include "onion_store/file.h"
#include "onion_store/pages/archived_copy.h"

namespace h5mirror::store {

// Not thread-safe. Waits for an archive if it reads a version: the caller holds no lock.
class LayerBytes {
 public:
  virtual ~LayerBytes() = default;

  // Fills `part` with the next bytes, as many as a part may have. False: they are the last. Damaged
  // pages of a version go to `lost`, not to the part. Errors: those of reading.
  absl::StatusOr<bool> Fill(Part* part, std::vector<Extent>* lost);
  // The error of the first damaged page; empty: there was none.
  const std::string& damage() const { return damage_; }
  // All bytes of a version before this position were in a part, were lost or are zeros.
  virtual uint64_t position() const { return 0; }

  // All bytes of a version from `begin` on, except zeros.
  static std::unique_ptr<LayerBytes> OfVersion(std::unique_ptr<VersionReader> version,
                                               uint64_t begin = 0);
  // The bytes that changed up to the version `changes->to()`, which `version` reads; zeros too.
  static std::unique_ptr<LayerBytes> OfChanges(std::unique_ptr<VersionReader> version,
                                               std::unique_ptr<ChangeReader> changes);
  // All of a file.
  static std::unique_ptr<LayerBytes> OfFile(std::unique_ptr<EnvFile> file, uint64_t size_bytes);

 protected:
  // The next range, of at most `length_max` bytes; length 0: there is none.
  virtual absl::StatusOr<Extent> Next(uint64_t length_max) = 0;
  virtual absl::Status Read(uint64_t offset, absl::Span<char> out) = 0;
  // Whether ranges of zeros are left out.
  virtual bool skips_zeros() const { return false; }
  // Of a version, whose pages may be damaged one by one; 0: of a file.
  virtual uint64_t page_bytes() const { return 0; }

 private:
  // Takes `range`; if that is damaged, each of its pages.
  absl::Status Take(const Extent& range, Part* part, std::vector<Extent>* lost);

  std::string damage_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_LAYER_BYTES_H_
