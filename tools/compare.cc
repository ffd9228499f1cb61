#include "tools/compare.h"

#include <xxhash.h>

#include <algorithm>
#include <string_view>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::tools {
namespace {

constexpr uint64_t kBlockBytes = 1 << 20;
constexpr size_t kDigestBytes = sizeof(XXH128_canonical_t);

std::string DigestOf(const char* data, size_t size) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, size));
  return std::string(reinterpret_cast<const char*>(canonical.digest), kDigestBytes);
}

// Reads the local file beside the server's digests as they come.
class Comparer {
 public:
  Comparer(const LocalFile& file, Progress& progress) : file_(file), progress_(progress) {}

  absl::Status Take(const v1::DigestFileResponse& message) {
    if (message.has_version()) result_.version = message.version();
    pending_ += message.digests();
    size_t used = 0;
    for (; pending_.size() - used >= kDigestBytes; used += kDigestBytes) {
      H5M_RETURN_IF_ERROR(TakeDigest(std::string_view(pending_).substr(used, kDigestBytes)));
    }
    pending_.erase(0, used);
    return absl::OkStatus();
  }

  absl::StatusOr<Comparison> Finish() {
    const auto server_size = static_cast<uint64_t>(result_.version.size_bytes());
    const uint64_t blocks_wanted = (server_size + kBlockBytes - 1) / kBlockBytes;
    if (result_.version.version() == 0 || !pending_.empty() || blocks_ != blocks_wanted) {
      return absl::DataLossError(StrCat("compare ", file_.path().string(), ": the server sent ",
                                        blocks_, " digests for ", server_size,
                                        " bytes; try again"));
    }
    const uint64_t local_size = file_.size_bytes();
    if (!result_.difference.has_value() && local_size != server_size) {
      Differ(std::min(local_size, server_size));
    }
    if (result_.difference.has_value()) result_.difference->server_size_bytes = server_size;
    H5M_RETURN_IF_ERROR(file_.CheckUnchanged());
    return result_;
  }

 private:
  absl::Status TakeDigest(std::string_view digest) {
    const uint64_t offset = blocks_++ * kBlockBytes;
    if (result_.difference.has_value()) return absl::OkStatus();
    H5M_ASSIGN_OR_RETURN(const size_t got, PreadUpTo(file_.fd(), offset, buffer_.data(),
                                                     buffer_.size(), file_.path().string()));
    if (DigestOf(buffer_.data(), got) != digest) Differ(offset);
    progress_.Update(offset + got);
    return absl::OkStatus();
  }

  void Differ(uint64_t offset) {
    result_.difference = Difference{
        .offset = offset, .block_size_bytes = kBlockBytes, .local_size_bytes = file_.size_bytes()};
  }

  const LocalFile& file_;
  Progress& progress_;
  std::string buffer_ = std::string(kBlockBytes, '\0');
  std::string pending_;  // bytes of a digest that is split over two messages
  uint64_t blocks_ = 0;
  Comparison result_;
};

}  // namespace

absl::StatusOr<Comparison> CompareWithNewest(rpc::Client& client, const std::string& name,
                                             const LocalFile& file, Progress& progress) {
  v1::DigestFileRequest request;
  request.set_name(name);
  request.set_block_size_bytes(kBlockBytes);
  Comparer comparer(file, progress);
  H5M_RETURN_IF_ERROR(client.DigestFile(
      request, [&](const v1::DigestFileResponse& message) { return comparer.Take(message); }));
  return comparer.Finish();
}

}  // namespace h5mirror::tools
