#include "h5diff/compare_cuts.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5diff/cut_delta.h"
#include "h5diff/walk.h"

namespace h5mirror::tools {
namespace {

constexpr uint64_t kPagesMax = (16 << 20) / VersionPages::kPageBytes;
constexpr uint64_t kMetadataBytesMax = 16 << 20;
constexpr absl::Duration kWalkTime = absl::Seconds(2);
constexpr absl::Duration kDeltaTime = absl::Seconds(10);

std::string NewReaderId() {
  const Bytes16 id = RandomBytes16();
  return std::string(reinterpret_cast<const char*>(id.data()), id.size());
}

uint64_t SizeOf(const v1::Snapshot& snapshot) {
  return static_cast<uint64_t>(snapshot.size_bytes());
}

absl::Status FetchCut(rpc::Client& client, v1::ReadSnapshotRequest request, uint64_t offset,
                      absl::Span<char> out) {
  request.set_offset(offset);
  request.set_length_bytes(out.size());
  return client.ReadSnapshot(request, [&](const v1::ReadSnapshotResponse& answer) -> absl::Status {
    if (answer.data().empty()) return absl::OkStatus();
    const uint64_t at = answer.offset() - offset;
    if (answer.offset() < offset || at > out.size() || answer.data().size() > out.size() - at ||
        Crc32c(answer.data()) != answer.data_crc32c()) {
      return absl::DataLossError(
          StrCat("bytes of cut ", request.cut(), " were damaged on the way"));
    }
    std::memcpy(out.data() + at, answer.data().data(), answer.data().size());
    return absl::OkStatus();
  });
}

// Notes the findings of the walk: one entry for each path.
class Findings {
 public:
  explicit Findings(CutChanges& changes) : changes_(changes) {}

  void Add(const Change& change) {
    using How = ChangedObject::How;
    switch (change.kind) {
      case ChangeKind::kAdded:
        return Put(How::kAdded, change);
      case ChangeKind::kRemoved:
        return Put(How::kRemoved, change);
      case ChangeKind::kMoved:
        return Put(How::kMoved, change);
      case ChangeKind::kChanged:
        return Put(How::kChanged, change);
      case ChangeKind::kUnknown:
        changes_.note = StrCat(change.path, " could not be compared: ", change.note);
    }
  }

 private:
  void Put(ChangedObject::How how, const Change& change) {
    const auto [found, is_new] = index_.try_emplace({how, change.path}, changes_.objects.size());
    if (is_new) changes_.objects.push_back({how, change.path, change.object, change.old_value, {}});
    std::vector<std::string>& what = changes_.objects[found->second].what;
    const bool is_known = std::find(what.begin(), what.end(), change.what) != what.end();
    if (!change.what.empty() && !is_known) what.push_back(change.what);
  }

  CutChanges& changes_;
  std::map<std::pair<ChangedObject::How, std::string>, size_t> index_;
};

class Comparer final : public CutComparer {
 public:
  Comparer(rpc::Client& client, std::string file)
      : client_(client), file_(std::move(file)), reader_id_(NewReaderId()) {}
  ~Comparer() override { Release(held_.cut()); }

  absl::StatusOr<Step> GoOn(int64_t cut) override {
    auto delta = FetchCutDelta(client_,
                               {.file = file_,
                                .reader_id = reader_id_,
                                .after_cut = held_.cut(),
                                .file_id = file_id_,
                                .at_least_cut = cut,
                                .metadata_bytes_max = held_.cut() == 0 ? 0 : kMetadataBytesMax},
                               kDeltaTime);
    if (!delta.ok()) {
      Release(std::exchange(held_, {}).cut());
      pages_.reset();
      return delta.status();
    }
    Step step;
    step.snapshot = delta->snapshot;
    step.is_first = held_.cut() == 0;
    if (!step.is_first) step.changes = Compare(*delta);
    for (const int64_t passed : delta->passed_cuts) Release(passed);
    if (held_.cut() != delta->snapshot.cut()) Release(held_.cut());
    held_ = delta->snapshot;
    file_id_ = delta->file_id;
    return step;
  }

 private:
  void Release(int64_t cut) {
    if (cut == 0) return;
    v1::CloseSnapshotRequest request;
    request.set_name(file_);
    request.set_cut(cut);
    request.set_reader_id(reader_id_);
    client_.CloseSnapshot(request).IgnoreError();  // Then it expires by itself.
  }

  VersionPages::OneSide SideOf(const v1::Snapshot& snapshot) {
    v1::ReadSnapshotRequest request;
    request.set_name(file_);
    request.set_cut(snapshot.cut());
    request.set_reader_id(reader_id_);
    return {StrCat("cut ", snapshot.cut(), " of ", file_), SizeOf(snapshot),
            [&client = client_, request](uint64_t offset, absl::Span<char> out) {
              return FetchCut(client, request, offset, out);
            }};
  }

  CutChanges Compare(const CutDelta& delta) {
    CutChanges changes;
    changes.since_cut = held_.cut();
    if (delta.whole) {
      pages_.reset();
      changes.note = "the server does not know the differences from the cut before";
      return changes;
    }
    changes.changed_bytes = delta.changed.byte_count();
    changes.metadata_bytes = delta.metadata.byte_count();
    TakeUp(delta);
    if (!delta.all_metadata) {
      changes.note = "too much metadata has changed";
      return changes;
    }
    const absl::Status walked = Walked(delta, changes);
    if (!walked.ok()) changes.note = ToStd(walked.message());
    return changes;
  }

  // From here on the pages are those of the cut before and the newest one.
  void TakeUp(const CutDelta& delta) {
    ExtentSet changed = delta.changed;
    // Bytes beyond an end read as zeros, also if others were there before.
    const auto [low, high] = std::minmax({SizeOf(held_), SizeOf(delta.snapshot)});
    if (low < high) changed.Add({low, high - low});
    if (pages_ == nullptr) {
      pages_ = std::make_unique<VersionPages>(
          std::array<VersionPages::OneSide, 2>{SideOf(held_), SideOf(delta.snapshot)},
          VersionPages::kPageBytes, VersionPages::kCacheBytes, std::move(changed));
    } else {
      pages_->Advance(SideOf(delta.snapshot), std::move(changed));
    }
    for (const auto& [offset, bytes] : delta.pages) pages_->Learn(offset, bytes);
    pages_->Limit(kPagesMax, absl::Now() + kWalkTime);
  }

  absl::Status Walked(const CutDelta& delta, CutChanges& changes) {
    Evidence evidence(*pages_);
    H5M_RETURN_IF_ERROR(evidence.LoadMetadata(delta.metadata));
    Findings findings(changes);
    DiffContext context{.pages = *pages_,
                        .evidence = evidence,
                        .sink = [&](const Change& change) { findings.Add(change); },
                        .look_at_data = false};
    H5M_RETURN_IF_ERROR(hdf5::StartLibrary());
    auto one = hdf5::SourceFile::Open(pages_->source(Side::kOld), &evidence.observer(Side::kOld));
    H5M_RETURN_IF_ERROR(pages_->error());
    H5M_RETURN_IF_ERROR(one.status());
    auto other = hdf5::SourceFile::Open(pages_->source(Side::kNew), &evidence.observer(Side::kNew));
    H5M_RETURN_IF_ERROR(pages_->error());
    H5M_RETURN_IF_ERROR(other.status());
    context.base_offset = other->base_offset();
    evidence.set_base_offset(other->base_offset());
    if (one->base_offset() != other->base_offset()) evidence.Forget();
    Walk walk(context, *one, *other);
    const absl::Status walked = walk.Run();
    if (!walked.ok()) walk.ReportLone();
    return pages_->error().ok() ? walked : pages_->error();
  }

  rpc::Client& client_;
  const std::string file_;
  const std::string reader_id_;
  v1::Snapshot held_;  // cut 0: none
  std::string file_id_;
  std::unique_ptr<VersionPages> pages_;  // null: nothing is known
};

}  // namespace

std::unique_ptr<CutComparer> MakeCutComparer(rpc::Client& client, const std::string& file) {
  return std::make_unique<Comparer>(client, file);
}

}  // namespace h5mirror::tools
