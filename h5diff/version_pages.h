// The pages of two versions of a file, or of two of its cuts, fetched as they are needed.
#ifndef H5MIRROR_H5DIFF_VERSION_PAGES_H_
#define H5MIRROR_H5DIFF_VERSION_PAGES_H_

#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/extent_set.h"
#include "hdf5/byte_source.h"
#include "rpc/client.h"

namespace h5mirror::tools {

// The two versions that are compared.
enum class Side : uint8_t { kOld, kNew };
inline constexpr Side kSides[] = {Side::kOld, Side::kNew};
inline size_t IndexOf(Side side) { return side == Side::kOld ? 0 : 1; }

// A page outside of the changed ranges is the same in both versions, and is fetched once. Pages are
// kept in a bounded cache. A read that follows the one before it reads ahead, up to a quarter of a
// mebibyte; others fetch the wanted bytes and nothing else. Not thread-safe.
class VersionPages {
 public:
  // For comparisons of which no server or file names a page size.
  static constexpr uint32_t kPageBytes = 4096;
  static constexpr uint64_t kCacheBytes = 128 << 20;

  struct Options {
    std::string file;  // under the server's root
    std::array<v1::Version, 2> versions;
    uint32_t page_size_bytes = kPageBytes;
    uint64_t cache_bytes = kCacheBytes;
  };

  // `client` must outlive it. `changed`: the ranges in which the versions may differ.
  VersionPages(rpc::Client& client, Options options, ExtentSet changed);

  // Fills `out`, which does not reach beyond the end.
  using ReadAt = std::function<absl::Status(uint64_t offset, absl::Span<char> out)>;
  struct OneSide {
    std::string name;
    uint64_t size_bytes = 0;
    ReadAt read_at;
  };
  VersionPages(std::array<OneSide, 2> sides, uint32_t page_size_bytes, uint64_t cache_bytes,
               ExtentSet changed);

  // What was new is old from here on: pages that are cached stay so. Forgets an error, and what was
  // counted.
  void Advance(OneSide next, ExtentSet changed);
  // Bytes of the new one, as they came otherwise; of whole pages, but for its end.
  void Learn(uint64_t offset, std::string_view bytes);
  // A read fails with kResourceExhausted where more pages would come from the server, and with
  // kDeadlineExceeded from `until` on.
  void Limit(uint64_t pages_max, absl::Time until);

  // "run.h5@12".
  const std::string& name(Side side) const { return sides_[IndexOf(side)].name; }
  uint64_t size_bytes(Side side) const { return sides_[IndexOf(side)].size_bytes; }
  uint32_t page_size_bytes() const { return page_size_bytes_; }
  const ExtentSet& changed() const { return changed_; }
  // As a file for HDF5; owned by this.
  hdf5::ByteSource& source(Side side) { return sources_[IndexOf(side)]; }

  // Fills `out` with the bytes at `offset`; beyond the end: zeros.
  // Errors: those of ReadVersion; kDataLoss a checksum does not match.
  absl::Status Read(Side side, uint64_t offset, absl::Span<char> out);

  // The first error of a read. HDF5 may have hidden it since; the comparison cannot go on.
  const absl::Status& error() const { return error_; }
  // That error is the end of the time that Limit() gave.
  bool time_is_up() const { return time_is_up_; }
  // Pages that came from the server, of both versions.
  uint64_t pages_read() const { return pages_read_; }
  // Called after each fetch.
  void set_on_fetch(std::function<void()> on_fetch) { on_fetch_ = std::move(on_fetch); }

 private:
  class Source final : public hdf5::ByteSource {
   public:
    Source(VersionPages& pages, Side side) : pages_(pages), side_(side) {}
    const std::string& name() const override { return pages_.name(side_); }
    uint64_t size_bytes() const override { return pages_.size_bytes(side_); }
    absl::Status Read(uint64_t offset, absl::Span<char> out) override {
      return pages_.Read(side_, offset, out);
    }

   private:
    VersionPages& pages_;
    const Side side_;
  };
  // Which page of which version; pages that both have go by the first one.
  using Key = std::pair<Side, uint64_t>;
  struct Cached {
    std::string bytes;
    std::list<Key>::iterator place;
  };
  struct Ahead {
    uint64_t next_page = UINT64_MAX;  // one past the last page fetched
    uint64_t page_count = 1;
  };

  Key KeyOf(Side side, uint64_t page) const;
  const std::string* Find(Side side, uint64_t page);
  void Put(Side side, uint64_t page, std::string bytes);
  // Fetches `page`, which is not cached, and as many behind it as are wanted and not cached.
  absl::Status Fetch(Side side, uint64_t page, uint64_t wanted_count);
  absl::Status CheckLimits(uint64_t page_count);

  std::array<OneSide, 2> sides_;
  const uint32_t page_size_bytes_;
  const uint64_t cache_bytes_;
  ExtentSet changed_;
  std::array<Source, 2> sources_;
  std::array<Ahead, 2> ahead_;
  absl::flat_hash_map<Key, Cached> cache_;
  std::list<Key> used_;  // the last one used first
  uint64_t pages_read_ = 0;
  uint64_t pages_max_ = UINT64_MAX;
  absl::Time until_ = absl::InfiniteFuture();
  absl::Status error_;
  bool time_is_up_ = false;
  std::function<void()> on_fetch_;
};

// One version of `file`, which is under the server's root. `client` must outlive it.
VersionPages::OneSide SideOfVersion(rpc::Client& client, const std::string& file,
                                    const v1::Version& version);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_VERSION_PAGES_H_
