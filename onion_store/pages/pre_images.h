// Saves the bytes of pages before they change. Chooses the runs, and the ones to compress.
#ifndef H5MIRROR_ONION_STORE_PAGES_PRE_IMAGES_H_
#define H5MIRROR_ONION_STORE_PAGES_PRE_IMAGES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "onion_store/pages/page_segments.h"
#include "onion_store/store.h"

namespace h5mirror::store {

// Saves pages of one version. Not thread-safe.
class PreImages {
 public:
  // Appends records to `pages` and their rows to `runs`. Both must outlive this.
  PreImages(PageSegments& pages, uint32_t page_size_bytes, PageCompression compression,
            int64_t generation, VersionNumber version, std::vector<PageRun>* runs)
      : pages_(pages),
        page_bytes_(page_size_bytes),
        compression_(compression),
        generation_(generation),
        version_(version),
        runs_(runs) {}

  // Saves the pages of `bytes` that are `wanted`. The first page of `bytes` is `first_page`; `crcs`
  // has the crc32c of each. Errors: as PageSegments::Append().
  absl::Status Save(uint64_t first_page, std::string_view bytes, absl::Span<const uint32_t> crcs,
                    const std::vector<bool>& wanted);

 private:
  // Pages that lie one after the other.
  struct Pages {
    uint64_t first = 0;
    std::string_view bytes;
    absl::Span<const uint32_t> crcs;
    Pages Part(uint64_t from, uint64_t count, uint32_t page_bytes) const {
      return {first + from, bytes.substr(from * page_bytes, count * page_bytes),
              crcs.subspan(from, count)};
    }
  };

  bool IsZeroPage(const Pages& pages, uint64_t page) const;
  void SaveZeros(const Pages& pages);
  absl::Status SavePlain(const Pages& pages);
  // Saves pages that shrink packed, the others plain.
  absl::Status SavePacked(const Pages& pages);

  PageSegments& pages_;
  const uint32_t page_bytes_;
  const PageCompression compression_;
  const int64_t generation_;
  const VersionNumber version_;
  std::vector<PageRun>* const runs_;
  std::string packed_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_PAGES_PRE_IMAGES_H_
