#include "h5diff/open_version.h"

#include "base/extent_set.h"
#include "h5diff/version_pages.h"
#include "hdf5/open_check.h"

namespace h5mirror::tools {

absl::Status OpenVersion(rpc::Client& client, const VersionToOpen& wanted) {
  // Both sides are the same version: nothing differs, and each page is fetched once.
  VersionPages pages(client,
                     {.file = wanted.file,
                      .versions = {wanted.version, wanted.version},
                      .page_size_bytes = wanted.page_size_bytes},
                     ExtentSet());
  const auto opened = hdf5::OpenAllObjects(pages.source(Side::kNew));
  return pages.error().ok() ? opened.status() : pages.error();
}

}  // namespace h5mirror::tools
