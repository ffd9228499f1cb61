#include "onion_store/pages/archived_segments.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::store {
namespace {

absl::Status OnlyRead() {
  return absl::FailedPreconditionError("a segment in an archive can only be read");
}

// The bytes of a segment in its object.
class ObjectFile final : public EnvFile {
 public:
  ObjectFile(ObjectCache& cache, ArchivedSegment segment, std::string name)
      : cache_(cache), segment_(std::move(segment)), name_(std::move(name)) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) override {
    if (offset >= segment_.length) return size_t{0};
    const size_t length = std::min<uint64_t>(out.size(), segment_.length - offset);
    const absl::Status read = cache_.Read(segment_.object, segment_.offset + segment_.length,
                                          segment_.offset + offset, out.subspan(0, length));
    if (!read.ok()) return OfArchive(read, name_, cache_.store(), segment_.object);
    return length;
  }
  absl::StatusOr<uint64_t> Size() override { return segment_.length; }
  absl::Status WriteAt(uint64_t, absl::Span<const std::string_view>) override { return OnlyRead(); }
  absl::Status Truncate(uint64_t) override { return OnlyRead(); }
  absl::Status Sync() override { return OnlyRead(); }
  absl::Status Zero(Extent) override { return OnlyRead(); }
  absl::StatusOr<Extent> NextData(uint64_t) override { return OnlyRead(); }
  absl::StatusOr<FileStat> Stat() override { return OnlyRead(); }
  absl::Status SetMode(uint32_t, int64_t) override { return OnlyRead(); }
  absl::Status CopyFrom(EnvFile&, Extent) override { return OnlyRead(); }

 private:
  ObjectCache& cache_;
  const ArchivedSegment segment_;
  const std::string name_;
};

}  // namespace

std::string PlaceOfObject(const ObjectStore* store, const std::string& object) {
  return StrCat("archived as ", object,
                store == nullptr ? std::string() : StrCat(" in ", store->Describe()));
}

absl::Status OfArchive(const absl::Status& status, const std::string& segment,
                       const ObjectStore* store, const std::string& object) {
  if (status.ok()) return status;
  const bool is_gone = absl::IsNotFound(status) || absl::IsOutOfRange(status);
  return absl::Status(
      is_gone ? absl::StatusCode::kDataLoss : status.code(),
      StrCat(segment, ", ", PlaceOfObject(store, object), ": ", ToStd(status.message()),
             absl::IsNotFound(status) ? ": the object is lost" : ""));
}

void ArchivedSegments::UseIndex(const std::shared_ptr<VersionIndex>& index) {
  const absl::MutexLock lock(&mutex_);
  if (index_ != index) index_ = index;
}

absl::StatusOr<std::optional<ArchivedSegment>> ArchivedSegments::Find(uint64_t number) {
  std::shared_ptr<VersionIndex> index;
  {
    const absl::MutexLock lock(&mutex_);
    index = index_;
  }
  if (index == nullptr) return std::nullopt;
  auto found = index->FindArchived(number);
  // An object that is being put may hold anything; an object that is to be deleted may be gone.
  const bool is_whole =
      found.ok() && found->has_value() && (*found)->state == ArchiveState::kArchived;
  if (found.ok() && !is_whole) return std::nullopt;
  return found;
}

absl::StatusOr<std::shared_ptr<EnvFile>> ArchivedSegments::Open(uint64_t number,
                                                                const std::string& name) {
  auto found = Find(number);
  H5M_RETURN_IF_ERROR(found.status());
  std::shared_ptr<EnvFile> file;
  if (found->has_value()) file = std::make_shared<ObjectFile>(cache_, **std::move(found), name);
  return file;
}

std::string ArchivedSegments::Forget(uint64_t number) {
  const auto found = Find(number);
  if (!found.ok() || !found->has_value()) return "";
  if (!cache_.Forget((*found)->object)) return "";
  return PlaceOfObject(cache_.store(), (*found)->object);
}

}  // namespace h5mirror::store
