// A file of a cell: the store's, whose answers pass the guard.
#ifndef H5MIRROR_SERVER_CLUSTER_GUARDED_FILE_H_
#define H5MIRROR_SERVER_CLUSTER_GUARDED_FILE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "onion_store/file.h"
#include "server/cluster/open_cell.h"
#include "server/state/ack_gate.h"

namespace h5mirror::server {

// After each read OpenCell::Check() must pass, and after each durable change OpenCell::BeforeAck().
// Bytes of numbered versions never change and need no check. All else is as in File. If the guard
// refuses, calls end with kUnavailable, although the change may have happened.
class GuardedFile final : public store::File, public AckGate {
 public:
  GuardedFile(std::shared_ptr<OpenCell> cell, std::shared_ptr<store::File> inner)
      : cell_(std::move(cell)), inner_(std::move(inner)), name_(cell_->Outer(inner_->name())) {}
  ~GuardedFile() override { cell_->Forget(inner_.get()); }

  // The store's own object, for calls of the store.
  store::File& inner() { return *inner_; }
  const OpenCell& cell() const { return *cell_; }
  OpenCell& cell() { return *cell_; }

  absl::Status BeforeAck() override { return cell_->BeforeAck(); }
  void BeforeAck(Answer answer) override;

  const std::string& name() const override { return name_; }
  const store::FileId& file_id() const override { return inner_->file_id(); }
  absl::StatusOr<store::FileInfo> Info() override;

  absl::StatusOr<store::Token> Acquire() override;
  absl::Status Begin(store::Token token, store::SessionStart start, const store::Origin& origin,
                     const store::LocalAccess& local) override;
  absl::Status Write(store::Token token, absl::Span<const Extent> extents,
                     absl::Span<const std::string_view> pieces) override {
    return inner_->Write(token, extents, pieces);
  }
  absl::Status Truncate(store::Token token, uint64_t size_bytes) override {
    return inner_->Truncate(token, size_bytes);
  }
  absl::Status ReadNewest(store::Token token, uint64_t offset, absl::Span<char> out) override;
  absl::StatusOr<store::CutNumber> Cut(
      store::Token token, store::CutRequest request,
      std::function<void(absl::StatusOr<store::DurableCut>)> on_durable) override;
  absl::Status End(store::Token token, store::SessionEnd end) override {
    return inner_->End(token, end);
  }

  store::CutNumber NewestCut() override { return inner_->NewestCut(); }
  absl::StatusOr<std::shared_ptr<store::Snapshot>> PinNewestCut() override;
  store::MetadataMap& metadata() override { return inner_->metadata(); }
  void NoteChanges() override { inner_->NoteChanges(); }
  absl::StatusOr<std::vector<Extent>> ChangesBetween(store::CutNumber from,
                                                     store::CutNumber to) override {
    return inner_->ChangesBetween(from, to);
  }

  absl::StatusOr<std::vector<store::VersionInfo>> ListVersions(const store::VersionRange& range,
                                                               size_t limit) override;
  absl::StatusOr<store::VersionInfo> FindVersionBack(int64_t back) override;
  absl::StatusOr<store::VersionInfo> FindVersionAt(absl::Time time) override;
  absl::StatusOr<store::VersionInfo> FindVersionTagged(std::string_view tag) override;
  absl::StatusOr<store::VersionInfo> FindVersionOfGroup(const store::GroupCut& cut) override;
  absl::StatusOr<store::VersionNumber> Tag(store::VersionNumber version, std::string_view tag,
                                           store::TagMode mode) override;
  absl::StatusOr<store::VersionNumber> Untag(std::string_view tag) override;
  absl::StatusOr<uint64_t> CountTags() override;
  absl::StatusOr<store::VersionInfo> GetVersion(store::VersionNumber version) override;
  absl::StatusOr<std::unique_ptr<store::VersionReader>> OpenVersion(
      store::VersionNumber version) override;
  absl::StatusOr<store::MadeVersion> MakeVersion(
      const store::Provenance& provenance, const std::array<uint8_t, 16>& request_id) override;
  absl::StatusOr<store::VersionInfo> FindRequest(
      const std::array<uint8_t, 16>& request_id) override;
  absl::StatusOr<std::unique_ptr<store::ChangeReader>> OpenChanges(
      store::VersionNumber from, store::VersionNumber to) override;
  absl::StatusOr<store::VersionInfo> Rollback(store::VersionNumber version,
                                              const store::Provenance& provenance,
                                              const std::array<uint8_t, 16>& request_id) override;
  absl::StatusOr<std::optional<store::SourceVersion>> ForkedFrom() override;
  absl::StatusOr<store::Promotion> Promote(store::File& fork,
                                           const store::PromoteRequest& request) override;
  absl::StatusOr<std::unique_ptr<store::PruneJob>> StartPrune(
      std::vector<store::VersionNumber> versions) override;
  absl::StatusOr<std::unique_ptr<store::ArchiveJob>> StartArchive(
      const store::ArchiveRequest& request) override;
  absl::StatusOr<uint64_t> CountArchived() override;
  absl::StatusOr<std::shared_ptr<const void>> KeepOnDisk(store::VersionNumber oldest) override;
  absl::StatusOr<store::VersionNumber> OldestNeeded() override;
  absl::StatusOr<uint64_t> SavedBytes(const store::VersionInfo& version) override {
    return inner_->SavedBytes(version);
  }
  absl::StatusOr<std::unique_ptr<store::EstimateJob>> StartEstimate(
      const std::vector<std::vector<store::VersionNumber>>& plans) override {
    return inner_->StartEstimate(plans);
  }
  absl::StatusOr<std::unique_ptr<store::VerifyJob>> StartVerify(
      store::VerifySubset subset) override;
  absl::Status WaitApplied(absl::Duration timeout) override;
  absl::Status SetOrigin(store::VersionNumber version, const store::Origin& origin,
                         const store::LocalStat& local) override;
  absl::Status SetOwner(const std::string& owner) override;
  absl::StatusOr<store::CheckInfo> RecordCheck(store::VersionNumber version,
                                               uint64_t differing_bytes) override;

 private:
  // Fresh(), with the names of clients.
  absl::StatusOr<store::VersionInfo> FreshVersion(absl::StatusOr<store::VersionInfo> version);

  const std::shared_ptr<OpenCell> cell_;
  const std::shared_ptr<store::File> inner_;
  const std::string name_;
};

// The object of the store behind a file of a cell; null: it is of another kind.
GuardedFile* AsGuarded(store::File& file);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CLUSTER_GUARDED_FILE_H_
