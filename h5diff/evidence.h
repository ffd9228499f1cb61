// Which of the bytes that differ between two versions have been seen to belong to what.
#ifndef H5MIRROR_H5DIFF_EVIDENCE_H_
#define H5MIRROR_H5DIFF_EVIDENCE_H_

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/extent.h"
#include "h5diff/version_pages.h"
#include "hdf5/byte_source.h"

namespace h5mirror::tools {

// The proof that a comparison may end before it has looked at every object.
//
// Each byte of an HDF5 file's structures belongs to one object. While an object is compared, what
// HDF5 reads of it, in either version, is taken down as explained. Once no byte that differs is
// left, no other object can differ: the first difference on the way from the root to it would be a
// byte of a structure that was compared, or of the object itself.
//
// The objects that a link leads to on one side alone are another matter: should they have further
// names, they explain nothing (h5diff/walk.h).
//
// The values of a global heap's collection belong to several objects: there, each value that
// differs is explained by the reference to it that was read with an object.
//
// Not thread-safe.
class Evidence {
 public:
  explicit Evidence(VersionPages& pages);

  // Compares the changed ranges byte by byte. Where they are more than `pages_max` pages nothing is
  // known, and everything must be compared.
  absl::Status Load(uint64_t pages_max);
  // The same without a look at raw data: only `metadata` is compared, and what else has changed
  // counts as different all over.
  absl::Status LoadMetadata(const ExtentSet& metadata);
  bool known() const { return known_; }
  // Gives up: for files in which bytes have owners that this cannot tell.
  void Forget();
  // All bytes that differ are explained.
  bool complete() const { return known_ && left_.empty(); }

  // For HDF5's reads of one side.
  hdf5::ReadObserver& observer(Side side) { return observers_[IndexOf(side)]; }
  // Offset of the byte that addresses in the file count from.
  void set_base_offset(uint64_t base_offset) { base_offset_ = base_offset; }

  // Bytes read between them belong to the object that is compared.
  void Begin();
  absl::Status End();
  // Or may belong to others: nothing is explained.
  void Drop() { open_ = false; }
  // The same for raw data that HDF5 did not read, or that need not be read. `search`: it may hold
  // references to the global heap.
  enum class Search : uint8_t { kNo, kYes };
  void Add(Side side, Extent extent, Search search);
  // These bytes need no other explanation.
  void Explain(Extent extent);

  // Whether bytes of `extent` are not explained.
  bool Touches(Extent extent) const;
  // How far unexplained bytes are from what lies at `offset`: those that follow are nearer, as what
  // belongs together is made in this order. 0: right there.
  uint64_t Distance(uint64_t offset) const;

 private:
  class Observer final : public hdf5::ReadObserver {
   public:
    Observer(Evidence& evidence, Side side) : evidence_(evidence), side_(side) {}
    void OnRead(hdf5::ReadKind kind, uint64_t offset, absl::Span<const char> bytes) override;

   private:
    Evidence& evidence_;
    const Side side_;
  };
  struct Seen {
    Side side;
    Extent extent;
    Search search = Search::kYes;
  };
  // A collection of the global heap, at one address in either or both versions.
  struct Heap {
    std::vector<Extent> extents;
    std::set<uint32_t> open;  // values that differ and whose owner was not met
  };

  absl::Status Compare(Extent range);
  absl::Status MeetHeap(uint64_t offset);
  absl::StatusOr<std::string> ReadHeap(Side side, uint64_t offset);
  absl::Status FindOwners();
  void CloseHeaps();

  VersionPages& pages_;
  std::array<Observer, 2> observers_;
  bool known_ = false;
  bool open_ = false;
  uint64_t base_offset_ = 0;
  std::map<uint64_t, uint64_t> left_;  // offset -> end
  std::vector<Seen> seen_;             // since Begin(), but for heaps
  std::set<uint64_t> heaps_seen_;      // the same, their offsets
  std::map<uint64_t, Heap> heaps_;     // by offset; gone when all is explained
  std::set<uint64_t> heaps_done_;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_EVIDENCE_H_
