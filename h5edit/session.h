// One run over one file: opens it, and decides when the changes become the file's content.
#ifndef H5MIRROR_H5EDIT_SESSION_H_
#define H5MIRROR_H5EDIT_SESSION_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "h5edit/backup.h"
#include "h5edit/edit_file.h"
#include "h5edit/mirror.h"
#include "h5edit/options.h"
#include "hdf5/handle.h"

namespace h5mirror::edit {

// Whether the run changes the file, or its dry run would, or neither.
enum class Access : uint8_t { kChanges, kTries, kLooks };

class Session {
 public:
  // Errors: the reason why the file cannot be opened, as a text for the user. Nothing was changed
  // then.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const Options& options, Access access);

  hid_t file() const { return file_.get(); }
  // A notice about the file for a user that looks at it; may be empty.
  const std::string& notice() const { return notice_; }
  // A statement that changes the file has succeeded; `comment` is its text.
  absl::Status Done(const std::string& comment);
  // All statements have succeeded: the remaining changes become the file's content.
  absl::Status Finish(const std::string& comment);
  // True: a kill in the middle of a command loses only that command.
  bool may_be_broken_off() const { return !writes_through_; }
  // A statement has failed, or a signal came. Returns the rest of a sentence about the state of the
  // file.
  std::string Abandon();
  // At either end: a text for the user about the bytes that the file's mirrors lack; empty: none.
  std::string MirrorLag() const;
  bool needs_mirror() const { return mirror_ != nullptr && mirror_->is_required(); }

 private:
  explicit Session(const Options& options) : options_(options) {}
  absl::Status OpenMirror();
  absl::Status OpenBytes(Access access);
  absl::Status CloseFile();
  std::string WhatIsLeft() const;
  std::string LeaveBackup(const std::string& left, const absl::Status& closed);

  const Options& options_;
  std::filesystem::path real_;  // of the file, without symlinks
  std::string notice_;
  bool cuts_each_ = false;  // a cut for each statement
  bool writes_through_ = false;
  bool changed_ = false;
  bool finished_ = false;          // the file holds all that the commands did
  bool backup_is_behind_ = false;  // by the command that failed for that reason
  std::unique_ptr<Backup> backup_;
  std::unique_ptr<Mirror> mirror_;   // null: no server is spoken to
  std::unique_ptr<EditFile> bytes_;  // null: written straight through
  hdf5::Handle file_;
};

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_SESSION_H_
