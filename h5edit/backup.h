// The classic back-up: dir/data.h5 -> dir/.data.h5.bck, a whole copy while the file is edited.
#ifndef H5MIRROR_H5EDIT_BACKUP_H_
#define H5MIRROR_H5EDIT_BACKUP_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/env.h"
#include "h5edit/edit_file.h"
#include "onion_store/embedded/cut_journal.h"

namespace h5mirror::edit {

// The copy lies beside the name that the user gave, even if that is a symlink.
std::filesystem::path BackupPathOf(const std::filesystem::path& file);

// Makes a new, empty file that belongs to the caller. Never opens an existing file of that name:
// another user may have put it there to read the copy.
absl::StatusOr<std::unique_ptr<EnvFile>> MakeUnfinished(EnvTree& tree, const std::string& name);

// Makes the content of `to` that of `from`. Blocks are shared where the disk can.
absl::Status CopyWhole(EnvFile& from, EnvFile& to);

// kAlreadyExists: there is a back-up of a failed edit. Settle that first, because putting it back
// would undo later changes. Errors of FindBackup() too.
absl::Status CheckNoBackup(const std::filesystem::path& given, const std::filesystem::path& real);

class Backup {
 public:
  // Copies `real`, with its owner, mode and attributes, to the back-up of `given`, by reflink where
  // the disk can, under another name until it is complete. kAlreadyExists: there is one, and
  // nothing was done.
  static absl::StatusOr<std::unique_ptr<Backup>> Make(const std::filesystem::path& given,
                                                      const std::filesystem::path& real,
                                                      Durability durability);
  // Brings the back-up to a cut of the file.
  absl::Status Follow(const store::JournalCut& cut);
  // True: Follow() failed half-way. The back-up is not usable before SettleBackup().
  bool is_between() const { return journal_ != nullptr && journal_->is_between(); }
  absl::Status Remove();
  // Leaves the back-up there for the user. This process does not change the file any more.
  void Leave();
  // True: this process has removed the back-up, even if a later step of the removal failed.
  bool is_removed() const { return is_removed_; }
  // Gives the file its content back, on the disk. The caller holds the file's locks.
  // kFailedPrecondition: another file has the name by now.
  absl::Status PutBack(const std::filesystem::path& real);

 private:
  Backup(std::unique_ptr<EnvTree> tree, std::filesystem::path path, std::filesystem::path real,
         Durability durability)
      : tree_(std::move(tree)),
        path_(std::move(path)),
        real_(std::move(real)),
        name_(path_.filename().string()),
        durability_(durability) {}
  absl::Status OpenJournal();

  const std::unique_ptr<EnvTree> tree_;
  const std::filesystem::path path_;
  const std::filesystem::path real_;
  const std::string name_;
  const Durability durability_;
  uint64_t inode_ = 0;  // of the file that it is the back-up of
  bool is_removed_ = false;
  std::unique_ptr<EnvFile> file_;
  std::unique_ptr<store::CutJournal> journal_;
};

// Puts the journal of a back-up in order after a crash.
absl::Status SettleBackup(const std::filesystem::path& copy);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_BACKUP_H_
