// Counts the bytes and syncs of another Env's files (by default the operating system's), for tests
// that bound them.
#ifndef H5MIRROR_ONION_STORE_TESTING_COUNTING_ENV_H_
#define H5MIRROR_ONION_STORE_TESTING_COUNTING_ENV_H_

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/names_in_order.h"

namespace h5mirror::store {

// Thread-safe.
struct IoCounts {
  std::atomic<uint64_t> bytes{0};          // read and written
  std::atomic<int> syncs{0};               // of files and directories
  std::atomic<uint64_t> started_bytes{0};  // by StartReading()
  void Clear() { bytes = 0, syncs = 0, started_bytes = 0; }
  // The counts of only the calling thread: the store's own threads work beside it.
  static IoCounts& OfThisThread() {
    thread_local IoCounts counts;
    return counts;
  }
  void AddBytes(uint64_t count) { bytes += count, OfThisThread().bytes += count; }
  void AddSync() { ++syncs, ++OfThisThread().syncs; }
};

// Must outlive its files, trees and counts.
class CountingEnv final : public Env {
 public:
  explicit CountingEnv(Env& env = Env::Posix()) : env_(env) {}
  absl::StatusOr<std::unique_ptr<EnvTree>> OpenTree(const std::filesystem::path& root) override {
    auto tree = env_.OpenTree(root);
    if (!tree.ok()) return tree.status();
    return std::make_unique<Tree>(*std::move(tree), counts_);
  }
  absl::Time Now() override { return env_.Now(); }
  absl::StatusOr<int64_t> GroupNumber(const std::string& group) override {
    return env_.GroupNumber(group);
  }
  IoCounts& counts() { return counts_; }

 private:
  class File final : public EnvFile {
   public:
    File(std::unique_ptr<EnvFile> file, IoCounts& counts)
        : file_(std::move(file)), counts_(counts) {}
    EnvFile& counted() { return *file_; }
    absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) override {
      counts_.AddBytes(out.size());
      return file_->ReadAt(offset, out);
    }
    absl::Status WriteAt(uint64_t offset, absl::Span<const std::string_view> pieces) override {
      for (std::string_view piece : pieces) counts_.AddBytes(piece.size());
      return file_->WriteAt(offset, pieces);
    }
    absl::Status Sync() override {
      counts_.AddSync();
      return file_->Sync();
    }
    absl::Status SyncWithTimes() override {
      counts_.AddSync();
      return file_->SyncWithTimes();
    }
    bool GrowAhead(uint64_t size_bytes) override { return file_->GrowAhead(size_bytes); }
    absl::Status Truncate(uint64_t size) override { return file_->Truncate(size); }
    void StartWriteback(Extent extent) override { file_->StartWriteback(extent); }
    void StartReading(Extent extent) override {
      counts_.started_bytes += extent.length;
      file_->StartReading(extent);
    }
    absl::Status Zero(Extent extent) override { return file_->Zero(extent); }
    absl::StatusOr<Extent> NextData(uint64_t offset) override { return file_->NextData(offset); }
    absl::StatusOr<uint64_t> Size() override { return file_->Size(); }
    absl::StatusOr<FileStat> Stat() override { return file_->Stat(); }
    absl::Status SetMode(uint32_t mode_bits, int64_t group) override {
      return file_->SetMode(mode_bits, group);
    }
    absl::StatusOr<FileAccess> Access() override { return file_->Access(); }
    absl::Status SetAccess(const FileAccess& access, int64_t group) override {
      return file_->SetAccess(access, group);
    }
    absl::Status CopyFrom(EnvFile& from, Extent extent) override {
      counts_.AddBytes(2 * extent.length);
      return file_->CopyFrom(*static_cast<File&>(from).file_, extent);
    }
    absl::Status ShareFrom(EnvFile& from) override {
      return file_->ShareFrom(*static_cast<File&>(from).file_);
    }

   private:
    std::unique_ptr<EnvFile> file_;
    IoCounts& counts_;
  };

  class Tree final : public EnvTree, public KnowsNameOrder {
   public:
    Tree(std::unique_ptr<EnvTree> tree, IoCounts& counts)
        : tree_(std::move(tree)), counts_(counts) {}
    absl::StatusOr<std::unique_ptr<EnvFile>> Open(std::string_view name, OpenKind kind,
                                                  uint32_t mode_bits) override {
      auto file = tree_->Open(name, kind, mode_bits);
      if (!file.ok()) return file.status();
      return std::make_unique<File>(*std::move(file), counts_);
    }
    absl::Status SyncDirectory(std::string_view name) override {
      counts_.AddSync();
      return tree_->SyncDirectory(name);
    }
    absl::Status SyncAll(absl::Span<const FileSync> files) override {
      std::vector<FileSync> counted(files.begin(), files.end());
      for (FileSync& file : counted) {
        counts_.AddSync();
        file.file = &static_cast<File*>(file.file)->counted();
      }
      return tree_->SyncAll(counted);
    }
    absl::Status MakeDirectory(std::string_view name, uint32_t mode_bits) override {
      return tree_->MakeDirectory(name, mode_bits);
    }
    absl::Status Rename(std::string_view from, std::string_view to) override {
      return tree_->Rename(from, to);
    }
    absl::Status Link(std::string_view from, std::string_view to) override {
      return tree_->Link(from, to);
    }
    absl::Status Remove(std::string_view name) override { return tree_->Remove(name); }
    absl::Status RemoveDirectory(std::string_view name) override {
      return tree_->RemoveDirectory(name);
    }
    absl::StatusOr<std::vector<DirectoryEntry>> List(std::string_view name) override {
      return tree_->List(name);
    }
    absl::StatusOr<FileStat> Stat(std::string_view name) override { return tree_->Stat(name); }
    absl::StatusOr<std::unique_ptr<EnvLock>> Lock(std::string_view name, LockKind kind) override {
      return tree_->Lock(name, kind);
    }
    absl::StatusOr<uint64_t> FreeBytes() override { return tree_->FreeBytes(); }
    absl::StatusOr<bool> CanShare(EnvFile& from) override {
      return tree_->CanShare(static_cast<File&>(from).counted());
    }
    bool KeepsNamesInOrder() override { return h5mirror::KeepsNamesInOrder(*tree_); }

   private:
    std::unique_ptr<EnvTree> tree_;
    IoCounts& counts_;
  };

  Env& env_;
  IoCounts counts_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_TESTING_COUNTING_ENV_H_
