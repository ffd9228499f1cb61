// The bytes of an edited file as HDF5 sees them. Cut() makes them the file's content.
#ifndef H5MIRROR_H5EDIT_EDIT_FILE_H_
#define H5MIRROR_H5EDIT_EDIT_FILE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "onion_store/embedded/cut_journal.h"

namespace h5mirror::edit {

// Not thread-safe.
class EditFile {
 public:
  virtual ~EditFile() = default;

  virtual uint64_t size_bytes() const = 0;
  // Beyond the end zeros.
  virtual absl::Status Read(uint64_t offset, absl::Span<char> out) = 0;
  virtual absl::Status Write(uint64_t offset, std::string_view bytes) = 0;
  virtual absl::Status Truncate(uint64_t size_bytes) = 0;
  // All bytes written since the last cut become the file's content. After an error none do, unless
  // is_between(). `comment` describes the change.
  virtual absl::Status Cut(const std::string& comment) = 0;
  // True: a cut failed, and the file may hold a part of it or all. The data for going on or back
  // lies beside the file, for Recover().
  virtual bool is_between() const { return false; }
  // Ends the session. Bytes that were not cut are dropped.
  virtual absl::Status Close() = 0;
};

enum class Durability : uint8_t { kProcess, kDurable };

// Keeps written bytes in memory, and brings the file from cut to cut through a journal beside it
// (onion_store/embedded/cut_journal.h). `path` is absolute, without symlinks. Errors: those of
// store::EmbeddedLease::Take(), and kUnavailable where another program has the file open. With each
// cut of a mirrored file, the bytes that its servers lack are noted beside it
// (onion_store/embedded/mirror_notes.h). `after_cut` (may be null) is called with each cut once the
// file holds it.
using AfterCut = std::function<absl::Status(const store::JournalCut&)>;
absl::StatusOr<std::unique_ptr<EditFile>> OpenWithJournal(const std::filesystem::path& path,
                                                          Durability durability,
                                                          AfterCut after_cut);
// The same without ever changing anything: for a dry run, and for a program that only reads. There
// are no cuts. kUnavailable: another program has the file open for writing.
absl::StatusOr<std::unique_ptr<EditFile>> OpenInMemory(const std::filesystem::path& path);
// A session of the store that keeps the file's history beside it: each cut is a version.
absl::StatusOr<std::unique_ptr<EditFile>> OpenWithHistory(const std::filesystem::path& path);

// Whether the file has its history beside it (X.h5.h5m/index).
bool HasHistory(const std::filesystem::path& path);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_EDIT_FILE_H_
