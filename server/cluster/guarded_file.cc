#include "server/cluster/guarded_file.h"

#include <functional>
#include <optional>
#include <string_view>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

class GuardedSnapshot final : public store::Snapshot {
 public:
  GuardedSnapshot(std::shared_ptr<OpenCell> cell, std::shared_ptr<store::Snapshot> inner)
      : cell_(std::move(cell)), inner_(std::move(inner)) {}

  const store::CutInfo& info() const override { return inner_->info(); }
  uint32_t page_size_bytes() const override { return inner_->page_size_bytes(); }
  absl::Status Read(uint64_t offset, absl::Span<char> out) const override {
    H5M_RETURN_IF_ERROR(inner_->Read(offset, out));
    return cell_->Check();
  }
  absl::Status ReadRanges(absl::Span<const Extent> ranges, absl::Span<char> out) const override {
    H5M_RETURN_IF_ERROR(inner_->ReadRanges(ranges, out));
    return cell_->Check();
  }
  void StartReading(Extent extent) const override { inner_->StartReading(extent); }
  absl::StatusOr<Extent> NextData(uint64_t offset) const override {
    return inner_->NextData(offset);
  }
  void Expire() override { inner_->Expire(); }
  bool expired() const override { return inner_->expired(); }

 private:
  const std::shared_ptr<OpenCell> cell_;
  const std::shared_ptr<store::Snapshot> inner_;
};

// The places of pages, by the names of clients.
class OuterReader final : public store::VersionReader {
 public:
  OuterReader(std::shared_ptr<OpenCell> cell, std::unique_ptr<store::VersionReader> inner)
      : cell_(std::move(cell)), inner_(std::move(inner)), info_(inner_->info()) {
    cell_->MakeOuter(info_);
  }

  const store::VersionInfo& info() const override { return info_; }
  uint32_t page_size_bytes() const override { return inner_->page_size_bytes(); }
  absl::Status Read(uint64_t offset, absl::Span<char> out) override {
    return inner_->Read(offset, out);
  }
  absl::Status ReadRanges(absl::Span<const Extent> ranges, absl::Span<char> out) override {
    return inner_->ReadRanges(ranges, out);
  }
  void StartReading(Extent extent) override { inner_->StartReading(extent); }
  absl::StatusOr<Extent> NextData(uint64_t offset) override { return inner_->NextData(offset); }
  absl::StatusOr<std::vector<store::PlacedRun>> Locate(uint64_t page,
                                                       store::PageSums sums) override {
    auto runs = inner_->Locate(page, sums);
    if (!runs.ok()) return runs;
    for (store::PlacedRun& run : *runs) {
      if (!run.file.empty()) run.file = cell_->Outer(run.file);
    }
    return runs;
  }

 private:
  const std::shared_ptr<OpenCell> cell_;
  const std::unique_ptr<store::VersionReader> inner_;
  store::VersionInfo info_;
};

class OuterVerify final : public store::VerifyJob {
 public:
  OuterVerify(std::shared_ptr<OpenCell> cell, std::unique_ptr<store::VerifyJob> inner)
      : cell_(std::move(cell)), inner_(std::move(inner)) {}
  absl::StatusOr<store::VerifyProgress> Step() override {
    auto progress = inner_->Step();
    if (!progress.ok()) return progress;
    for (store::Damage& damage : progress->found) damage.file = cell_->Outer(damage.file);
    return progress;
  }

 private:
  const std::shared_ptr<OpenCell> cell_;
  const std::unique_ptr<store::VerifyJob> inner_;
};

// No step begins in a cell that is being handed over, and each one is waited for.
class HeldPrune final : public store::PruneJob {
 public:
  HeldPrune(std::shared_ptr<OpenCell> cell, std::unique_ptr<store::PruneJob> inner)
      : cell_(std::move(cell)), inner_(std::move(inner)) {}
  absl::StatusOr<store::PruneProgress> Step() override {
    H5M_ASSIGN_OR_RETURN(const auto held, cell_->Hold());
    return inner_->Step();
  }

 private:
  const std::shared_ptr<OpenCell> cell_;
  const std::unique_ptr<store::PruneJob> inner_;
};

// As HeldPrune. A step that waits for the archive ends when the cell is handed over.
class HeldArchive final : public store::ArchiveJob {
 public:
  HeldArchive(std::shared_ptr<OpenCell> cell, std::unique_ptr<store::ArchiveJob> inner)
      : cell_(std::move(cell)), inner_(std::move(inner)) {}
  absl::StatusOr<store::ArchiveProgress> Step() override {
    H5M_ASSIGN_OR_RETURN(const auto held, cell_->Hold());
    return inner_->Step();
  }

 private:
  const std::shared_ptr<OpenCell> cell_;
  const std::unique_ptr<store::ArchiveJob> inner_;
};

}  // namespace

GuardedFile* AsGuarded(store::File& file) { return dynamic_cast<GuardedFile*>(&file); }

void GuardedFile::BeforeAck(Answer answer) {
  cell_->acks().Put(cell_->cell(), cell_->epoch(), std::move(answer));
}

absl::StatusOr<store::FileInfo> GuardedFile::Info() {
  H5M_ASSIGN_OR_RETURN(store::FileInfo info, cell_->Fresh(inner_->Info()));
  cell_->MakeOuter(info.newest_version);
  if (info.forked_from.has_value()) info.forked_from->name = cell_->Outer(info.forked_from->name);
  return info;
}

// ---- Writing ----

absl::StatusOr<store::Token> GuardedFile::Acquire() {
  H5M_ASSIGN_OR_RETURN(const auto held, cell_->Hold());
  return cell_->Acked(inner_->Acquire());
}

absl::Status GuardedFile::Begin(store::Token token, store::SessionStart start,
                                const store::Origin& origin, const store::LocalAccess& local) {
  H5M_ASSIGN_OR_RETURN(const auto held, cell_->Hold());
  return inner_->Begin(token, start, origin, local);
}

absl::Status GuardedFile::ReadNewest(store::Token token, uint64_t offset, absl::Span<char> out) {
  H5M_RETURN_IF_ERROR(inner_->ReadNewest(token, offset, out));
  return cell_->Check();
}

absl::StatusOr<store::CutNumber> GuardedFile::Cut(
    store::Token token, store::CutRequest request,
    std::function<void(absl::StatusOr<store::DurableCut>)> on_durable) {
  // Errors pass the queue too: answers come in the order of the cuts. A thread of the store calls
  // this. It must not hold the cell: the end of its last holder waits for the store's threads, and
  // so the cell is there.
  auto ask = [cell = cell_.get(), on_durable = std::move(on_durable)](
                 absl::StatusOr<store::DurableCut> durable) mutable {
    cell->acks().Put(cell->cell(), cell->epoch(),
                     [durable = std::move(durable),
                      on_durable = std::move(on_durable)](const absl::Status& status) mutable {
                       if (durable.ok() && !status.ok()) durable = status;
                       if (on_durable != nullptr) on_durable(std::move(durable));
                     });
  };
  return inner_->Cut(token, std::move(request), std::move(ask));
}

// ---- Reading ----

absl::StatusOr<std::shared_ptr<store::Snapshot>> GuardedFile::PinNewestCut() {
  H5M_ASSIGN_OR_RETURN(auto pinned, cell_->Fresh(inner_->PinNewestCut()));
  return std::make_shared<GuardedSnapshot>(cell_, std::move(pinned));
}

absl::StatusOr<store::VersionInfo> GuardedFile::FreshVersion(
    absl::StatusOr<store::VersionInfo> version) {
  version = cell_->Fresh(std::move(version));
  if (version.ok()) cell_->MakeOuter(*version);
  return version;
}

absl::StatusOr<std::vector<store::VersionInfo>> GuardedFile::ListVersions(
    const store::VersionRange& range, size_t limit) {
  auto versions = cell_->Fresh(inner_->ListVersions(range, limit));
  if (!versions.ok()) return versions;
  for (store::VersionInfo& version : *versions) cell_->MakeOuter(version);
  return versions;
}

absl::StatusOr<store::VersionInfo> GuardedFile::FindVersionBack(int64_t back) {
  return FreshVersion(inner_->FindVersionBack(back));
}

absl::StatusOr<store::VersionInfo> GuardedFile::FindVersionAt(absl::Time time) {
  return FreshVersion(inner_->FindVersionAt(time));
}

absl::StatusOr<store::VersionInfo> GuardedFile::FindVersionTagged(std::string_view tag) {
  return FreshVersion(inner_->FindVersionTagged(tag));
}

absl::StatusOr<store::VersionInfo> GuardedFile::FindVersionOfGroup(const store::GroupCut& cut) {
  return FreshVersion(inner_->FindVersionOfGroup(cut));
}

absl::StatusOr<uint64_t> GuardedFile::CountTags() { return cell_->Fresh(inner_->CountTags()); }

absl::StatusOr<store::VersionInfo> GuardedFile::GetVersion(store::VersionNumber version) {
  return FreshVersion(inner_->GetVersion(version));
}

absl::StatusOr<std::unique_ptr<store::VersionReader>> GuardedFile::OpenVersion(
    store::VersionNumber version) {
  H5M_ASSIGN_OR_RETURN(auto reader, cell_->Fresh(inner_->OpenVersion(version)));
  return std::make_unique<OuterReader>(cell_, std::move(reader));
}

absl::StatusOr<store::VersionInfo> GuardedFile::FindRequest(
    const std::array<uint8_t, 16>& request_id) {
  // It answers a change that was repeated, maybe since the first answer could not be acked.
  auto version = cell_->Acked(inner_->FindRequest(request_id));
  if (version.ok()) cell_->MakeOuter(*version);
  return version;
}

absl::StatusOr<std::unique_ptr<store::ChangeReader>> GuardedFile::OpenChanges(
    store::VersionNumber from, store::VersionNumber to) {
  return cell_->Fresh(inner_->OpenChanges(from, to));
}

absl::StatusOr<std::optional<store::SourceVersion>> GuardedFile::ForkedFrom() {
  auto source = cell_->Fresh(inner_->ForkedFrom());
  if (source.ok() && source->has_value()) (*source)->name = cell_->Outer((*source)->name);
  return source;
}

absl::StatusOr<store::VersionNumber> GuardedFile::OldestNeeded() {
  return cell_->Fresh(inner_->OldestNeeded());
}

absl::StatusOr<std::unique_ptr<store::VerifyJob>> GuardedFile::StartVerify(
    store::VerifySubset subset) {
  H5M_ASSIGN_OR_RETURN(auto job, cell_->Fresh(inner_->StartVerify(subset)));
  return std::make_unique<OuterVerify>(cell_, std::move(job));
}

absl::Status GuardedFile::WaitApplied(absl::Duration timeout) {
  H5M_RETURN_IF_ERROR(inner_->WaitApplied(timeout));
  return cell_->Check();
}

// ---- Changes of the history ----

absl::StatusOr<store::VersionNumber> GuardedFile::Tag(store::VersionNumber version,
                                                      std::string_view tag, store::TagMode mode) {
  H5M_ASSIGN_OR_RETURN(const auto held, cell_->Hold());
  return cell_->Acked(inner_->Tag(version, tag, mode));
}

absl::StatusOr<store::VersionNumber> GuardedFile::Untag(std::string_view tag) {
  H5M_ASSIGN_OR_RETURN(const auto held, cell_->Hold());
  return cell_->Acked(inner_->Untag(tag));
}

absl::StatusOr<store::MadeVersion> GuardedFile::MakeVersion(
    const store::Provenance& provenance, const std::array<uint8_t, 16>& request_id) {
  H5M_ASSIGN_OR_RETURN(const auto held, cell_->Hold());
  auto made = cell_->Acked(inner_->MakeVersion(provenance, request_id));
  if (made.ok()) cell_->MakeOuter(made->version);
  return made;
}

absl::StatusOr<store::VersionInfo> GuardedFile::Rollback(
    store::VersionNumber version, const store::Provenance& provenance,
    const std::array<uint8_t, 16>& request_id) {
  H5M_ASSIGN_OR_RETURN(const auto held, cell_->Hold());
  auto made = cell_->Acked(inner_->Rollback(version, provenance, request_id));
  if (made.ok()) cell_->MakeOuter(*made);
  return made;
}

absl::StatusOr<store::Promotion> GuardedFile::Promote(store::File& fork,
                                                      const store::PromoteRequest& request) {
  GuardedFile* const from = AsGuarded(fork);
  if (from == nullptr || from->cell_ != cell_) {
    return absl::FailedPreconditionError(
        StrCat(fork.name(), " lies in another cell than ", name_, ", so it is no fork of it"));
  }
  H5M_ASSIGN_OR_RETURN(const auto held, cell_->Hold());
  auto promotion = cell_->Acked(inner_->Promote(*from->inner_, request));
  if (promotion.ok()) cell_->MakeOuter(promotion->version);
  return promotion;
}

absl::StatusOr<std::unique_ptr<store::PruneJob>> GuardedFile::StartPrune(
    std::vector<store::VersionNumber> versions) {
  H5M_ASSIGN_OR_RETURN(const auto held, cell_->Hold());
  H5M_RETURN_IF_ERROR(cell_->BeforeAck());
  H5M_ASSIGN_OR_RETURN(auto job, inner_->StartPrune(std::move(versions)));
  return std::make_unique<HeldPrune>(cell_, std::move(job));
}

absl::StatusOr<std::unique_ptr<store::ArchiveJob>> GuardedFile::StartArchive(
    const store::ArchiveRequest& request) {
  H5M_ASSIGN_OR_RETURN(const auto held, cell_->Hold());
  H5M_ASSIGN_OR_RETURN(auto job, inner_->StartArchive(request));
  return std::make_unique<HeldArchive>(cell_, std::move(job));
}

absl::StatusOr<uint64_t> GuardedFile::CountArchived() {
  return cell_->Fresh(inner_->CountArchived());
}

absl::StatusOr<std::shared_ptr<const void>> GuardedFile::KeepOnDisk(store::VersionNumber oldest) {
  H5M_ASSIGN_OR_RETURN(const auto held, cell_->Hold());
  return inner_->KeepOnDisk(oldest);
}

absl::Status GuardedFile::SetOrigin(store::VersionNumber version, const store::Origin& origin,
                                    const store::LocalStat& local) {
  H5M_ASSIGN_OR_RETURN(const auto held, cell_->Hold());
  return cell_->Acked(inner_->SetOrigin(version, origin, local));
}

absl::Status GuardedFile::SetOwner(const std::string& owner) {
  H5M_ASSIGN_OR_RETURN(const auto held, cell_->Hold());
  return cell_->Acked(inner_->SetOwner(owner));
}

absl::StatusOr<store::CheckInfo> GuardedFile::RecordCheck(store::VersionNumber version,
                                                          uint64_t differing_bytes) {
  H5M_ASSIGN_OR_RETURN(const auto held, cell_->Hold());
  return cell_->Acked(inner_->RecordCheck(version, differing_bytes));
}

}  // namespace h5mirror::server
