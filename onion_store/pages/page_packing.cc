#include "onion_store/pages/page_packing.h"

#include <zstd.h>

#include <memory>

#include "base/strings.h"

namespace h5mirror::store {
namespace {

// zstd's fast mode: it sees at gigabytes a second that noise does not shrink, where level 1 takes
// eight times as long for a result a tenth smaller. `./dev bench versions --only compression` has
// figures.
constexpr int kLevel = -1;
constexpr size_t kGainPart = 8;

struct Free {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

}  // namespace

bool PackPages(std::string_view bytes, std::string* packed) {
  thread_local const std::unique_ptr<ZSTD_CCtx, Free> context(ZSTD_createCCtx());
  if (context == nullptr) return false;
  // zstd ends as soon as it sees that there is no room.
  packed->resize(bytes.size() - bytes.size() / kGainPart);
  const size_t size = ZSTD_compressCCtx(context.get(), packed->data(), packed->size(), bytes.data(),
                                        bytes.size(), kLevel);
  if (ZSTD_isError(size) != 0U) return false;
  packed->resize(size);
  return true;
}

absl::Status UnpackPages(std::string_view packed, absl::Span<char> out) {
  thread_local const std::unique_ptr<ZSTD_DCtx, Free> context(ZSTD_createDCtx());
  if (context == nullptr) return absl::ResourceExhaustedError("no memory to unpack pages");
  const size_t size =
      ZSTD_decompressDCtx(context.get(), out.data(), out.size(), packed.data(), packed.size());
  if (ZSTD_isError(size) != 0U) {
    return absl::DataLossError(StrCat("it cannot be unpacked: ", ZSTD_getErrorName(size)));
  }
  if (size == out.size()) return absl::OkStatus();
  return absl::DataLossError(StrCat("it unpacks to ", size, " bytes, and should to ", out.size()));
}

}  // namespace h5mirror::store
