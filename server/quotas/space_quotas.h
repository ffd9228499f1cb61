// The server's side of the [[quota]] tables, and its answers to callers.
#ifndef H5MIRROR_SERVER_QUOTAS_SPACE_QUOTAS_H_
#define H5MIRROR_SERVER_QUOTAS_SPACE_QUOTAS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/extent.h"
#include "onion_store/store.h"
#include "server/quotas/space_counter.h"
#include "server/quotas/space_ledger.h"

namespace h5mirror::server {

// Thread-safe.
class SpaceQuotas {
 public:
  // `store` must outlive this.
  SpaceQuotas(std::vector<QuotaRule> rules, store::Store& its_store)
      : store(its_store), ledger(std::move(rules)), counter(ledger, its_store) {}

  // Whether the file may have the other name. Errors: as SpaceLedger::MayHold().
  absl::Status MayMove(const std::string& name, const std::string& new_name);
  // Call after the move.
  void Moved(std::string_view name, std::string_view new_name) {
    ledger.Moved(name, new_name);
    counter.Changed(name);
    counter.Changed(new_name);
  }
  // Whether the removed file may come back as `name`. One that was removed by an earlier release
  // counts as a file without bytes.
  absl::Status MayUndelete(const store::RemovedFile& removed, const std::string& name);
  // Call after the undelete.
  void Undeleted(const store::RemovedFile& removed, const std::string& name);
  // To be called when the file was removed.
  void Removed(const store::RemovedFile& removed);
  // As File::Tag() and File::Untag(), and counts the tag. Errors also: as SpaceLedger::AddTag().
  absl::StatusOr<store::VersionNumber> Tag(store::File& file, store::VersionNumber version,
                                           std::string_view tag, store::TagMode mode);
  absl::StatusOr<store::VersionNumber> Untag(store::File& file, std::string_view tag);
  // Whether the file may go back to a version of `size_bytes`, from `now_bytes`. How many of them
  // holes are is not known before: a file with holes may go back unless its account is full.
  absl::Status MayRollBack(const std::string& name, uint64_t size_bytes, uint64_t now_bytes);

  store::Store& store;
  SpaceLedger ledger;
  SpaceCounter counter;
};

// The space that one writer takes. Not thread-safe. Without quotas each call is one comparison.
class WriterSpace {
 public:
  // nullptr: there are none. `quotas` must outlive this.
  explicit WriterSpace(SpaceQuotas* quotas) : quotas_(quotas) {}
  WriterSpace(const WriterSpace&) = delete;

  // The writer of a file of `local_bytes` asks to begin. `may_create`: where there is no file, it
  // makes one. Errors: as SpaceLedger::AddFile() and MayBegin().
  absl::Status Open(const std::string& name, uint64_t local_bytes, bool may_create);
  // It begins with the head, which ends at `head_bytes`, or with a new generation.
  void Begin(uint64_t head_bytes) { end_bytes_ = head_bytes; }
  void BeginGeneration();
  // Before the bytes are written. Errors: as SpaceLedger::Grow().
  absl::Status Write(absl::Span<const Extent> extents);
  void Truncate(uint64_t size_bytes) { end_bytes_ = std::min(end_bytes_, size_bytes); }
  // The writer has ended: its file is measured.
  void End();

 private:
  SpaceQuotas* const quotas_;
  std::string name_;        // empty: it has not asked
  uint64_t end_bytes_ = 0;  // of the counted bytes
  // Of a new generation: the space of the old head, which it will replace.
  uint64_t credit_bytes_ = 0;
  uint64_t inside_bytes_ = 0;  // written before the end since the last measurement
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_QUOTAS_SPACE_QUOTAS_H_
