// A store in memory for tests of sessions. Records calls and makes cuts, which become durable when
// the test says so. Not thread-safe.
#ifndef H5MIRROR_SERVER_TESTING_FAKE_STORE_H_
#define H5MIRROR_SERVER_TESTING_FAKE_STORE_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/strings.h"
#include "onion_store/store.h"

namespace h5mirror::server {

class FakeFile final : public store::File {
 public:
  explicit FakeFile(std::string name) : name_(std::move(name)) {
    info_.file_id[0] = 7;
    info_.page_size_bytes = 4096;
  }

  const std::string& name() const override { return name_; }
  const store::FileId& file_id() const override { return info_.file_id; }
  absl::StatusOr<store::FileInfo> Info() override { return info_; }

  absl::StatusOr<store::Token> Acquire() override {
    calls_.push_back("acquire");
    return ++token_;
  }
  absl::Status Begin(store::Token token, store::SessionStart start, const store::Origin& origin,
                     const store::LocalAccess&) override {
    calls_.push_back(start == store::SessionStart::kContinue ? "continue" : "new");
    info_.origin = origin;
    return Check(token);
  }
  absl::Status Write(store::Token token, absl::Span<const Extent>,
                     absl::Span<const std::string_view> pieces) override {
    for (const std::string_view piece : pieces) written_ += std::string(piece);
    return error_.ok() ? Check(token) : error_;
  }
  absl::Status Truncate(store::Token token, uint64_t size_bytes) override {
    calls_.push_back(StrCat("truncate ", size_bytes));
    return Check(token);
  }
  absl::Status ReadNewest(store::Token, uint64_t, absl::Span<char>) override {
    return absl::UnimplementedError("a session on a server has its own copy");
  }
  absl::StatusOr<store::CutNumber> Cut(
      store::Token token, store::CutRequest request,
      std::function<void(absl::StatusOr<store::DurableCut>)> on_durable) override {
    if (absl::Status status = Check(token); !status.ok()) return status;
    info_.last_cut += 10;
    last_request_ = request;
    info_.last_barrier = request.barrier;
    const bool commit = request.kind == store::BarrierKind::kCommit;
    waiting_.emplace_back(
        store::DurableCut{info_.last_cut, request.barrier, commit ? ++versions_ : 0, false},
        std::move(on_durable));
    return info_.last_cut;
  }
  absl::Status End(store::Token token, store::SessionEnd end) override {
    calls_.push_back(end == store::SessionEnd::kClean ? "end clean" : "end lost");
    return Check(token);
  }

  store::CutNumber NewestCut() override { return info_.last_cut; }
  absl::StatusOr<std::shared_ptr<store::Snapshot>> PinNewestCut() override { return None(); }
  store::MetadataMap& metadata() override { return metadata_; }
  void NoteChanges() override {}
  absl::StatusOr<std::vector<Extent>> ChangesBetween(store::CutNumber, store::CutNumber) override {
    return absl::OutOfRangeError("no change was noted");
  }
  absl::StatusOr<std::vector<store::VersionInfo>> ListVersions(const store::VersionRange&,
                                                               size_t) override {
    return std::vector<store::VersionInfo>();
  }
  absl::StatusOr<store::VersionInfo> GetVersion(store::VersionNumber) override { return None(); }
  absl::StatusOr<store::VersionInfo> FindVersionBack(int64_t) override { return None(); }
  absl::StatusOr<store::VersionInfo> FindVersionAt(absl::Time) override { return None(); }
  absl::StatusOr<store::VersionInfo> FindVersionTagged(std::string_view) override { return None(); }
  absl::StatusOr<store::VersionInfo> FindVersionOfGroup(const store::GroupCut&) override {
    return None();
  }
  absl::StatusOr<store::VersionNumber> Tag(store::VersionNumber, std::string_view,
                                           store::TagMode) override {
    return None();
  }
  absl::StatusOr<store::VersionNumber> Untag(std::string_view) override { return None(); }
  absl::StatusOr<uint64_t> CountTags() override { return 0; }
  absl::StatusOr<std::unique_ptr<store::ChangeReader>> OpenChanges(store::VersionNumber,
                                                                   store::VersionNumber) override {
    return None();
  }
  absl::StatusOr<std::unique_ptr<store::VersionReader>> OpenVersion(store::VersionNumber) override {
    return None();
  }
  absl::StatusOr<store::VersionInfo> Rollback(store::VersionNumber, const store::Provenance&,
                                              const std::array<uint8_t, 16>&) override {
    return None();
  }
  absl::StatusOr<store::MadeVersion> MakeVersion(const store::Provenance&,
                                                 const std::array<uint8_t, 16>&) override {
    return None();
  }
  absl::StatusOr<store::VersionInfo> FindRequest(const std::array<uint8_t, 16>&) override {
    return None();
  }
  absl::StatusOr<std::unique_ptr<store::PruneJob>> StartPrune(
      std::vector<store::VersionNumber>) override {
    return None();
  }
  absl::StatusOr<store::VersionNumber> OldestNeeded() override { return 0; }
  absl::StatusOr<uint64_t> SavedBytes(const store::VersionInfo&) override { return None(); }
  absl::StatusOr<std::unique_ptr<store::EstimateJob>> StartEstimate(
      const std::vector<std::vector<store::VersionNumber>>&) override {
    return None();
  }
  absl::StatusOr<std::unique_ptr<store::VerifyJob>> StartVerify(store::VerifySubset) override {
    return None();
  }
  absl::Status WaitApplied(absl::Duration) override { return absl::OkStatus(); }
  absl::Status SetOrigin(store::VersionNumber, const store::Origin&,
                         const store::LocalStat&) override {
    return absl::OkStatus();
  }
  absl::StatusOr<store::CheckInfo> RecordCheck(store::VersionNumber, uint64_t) override {
    return None();
  }

  // The oldest cut that is not durable has changed no byte: it becomes no version.
  void MakeUnchanged() {
    store::DurableCut& cut = waiting_.front().first;
    cut.version = --versions_;
    cut.unchanged = true;
    MakeDurable();
  }
  // The oldest cut that is not durable becomes so, or fails.
  void MakeDurable(absl::Status status = absl::OkStatus()) {
    auto [cut, on_durable] = std::move(waiting_.front());
    waiting_.pop_front();
    if (!status.ok()) return on_durable(status);
    info_.durable_cut = cut.cut;
    info_.durable_barrier = cut.barrier;
    on_durable(cut);
  }

  std::string name_;
  store::FileInfo info_;
  std::vector<std::string> calls_;
  std::string written_;
  store::MetadataMap metadata_;
  store::CutRequest last_request_;
  absl::Status error_;  // the result of Write()
  store::Token token_ = 0;
  store::VersionNumber versions_ = 0;
  std::deque<std::pair<store::DurableCut, std::function<void(absl::StatusOr<store::DurableCut>)>>>
      waiting_;

 private:
  absl::Status Check(store::Token token) const {
    return token == token_ ? absl::OkStatus() : absl::AbortedError("fenced");
  }
  static absl::Status None() { return absl::NotFoundError("no such version"); }
};

class FakeStore final : public store::Store {
 public:
  absl::Status Close(absl::Duration) override { return absl::OkStatus(); }
  absl::StatusOr<std::shared_ptr<store::File>> OpenFile(std::string_view name) override {
    const auto found = files_.find(std::string(name));
    if (found == files_.end()) return absl::NotFoundError("no such file");
    return found->second;
  }
  absl::StatusOr<std::shared_ptr<store::File>> OpenOrCreateFile(std::string_view name,
                                                                uint32_t) override {
    auto& file = files_[std::string(name)];
    if (file == nullptr) file = std::make_shared<FakeFile>(std::string(name));
    return file;
  }
  absl::StatusOr<std::vector<store::FileSummary>> List(std::string_view, std::string_view,
                                                       size_t) override {
    return std::vector<store::FileSummary>();
  }
  absl::Status Move(std::string_view, std::string_view) override { return None(); }
  absl::StatusOr<store::RemovedFile> Remove(std::string_view, const store::Provenance&,
                                            absl::Duration) override {
    return None();
  }
  absl::StatusOr<std::vector<store::RemovedFile>> ListRemoved() override {
    return std::vector<store::RemovedFile>();
  }
  absl::StatusOr<std::string> Undelete(std::string_view, std::string_view) override {
    return None();
  }
  absl::StatusOr<int> PurgeRemoved(absl::Time) override { return 0; }
  absl::Status PurgeOneRemoved(std::string_view) override { return None(); }
  absl::StatusOr<store::HistorySizes> Measure(std::string_view, store::WithHead) override {
    return None();
  }
  absl::StatusOr<std::vector<std::string>> CheckedFiles() override {
    return std::vector<std::string>();
  }
  absl::StatusOr<std::vector<std::string>> UnfinishedPrunes() override {
    return std::vector<std::string>();
  }
  void StopHistory(std::string_view) override {}
  void ResumeHistory(std::string_view) override {}
  const std::array<uint8_t, 16>& incarnation() const override { return incarnation_; }
  void SetCutListener(CutListener) override {}
  uint64_t memory_used_bytes() const override { return 0; }
  absl::StatusOr<uint64_t> FreeDiskBytes() const override { return 0; }
  uint64_t disk_bytes() const override { return 0; }

  std::map<std::string, std::shared_ptr<FakeFile>> files_;

 private:
  static absl::Status None() { return absl::NotFoundError("no such file"); }
  std::array<uint8_t, 16> incarnation_{9};
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_TESTING_FAKE_STORE_H_
