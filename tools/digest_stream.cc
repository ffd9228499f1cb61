#include "tools/digest_stream.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::tools {
namespace {

// Knows which block each digest is of.
class Splitter {
 public:
  Splitter(const DigestQuery& query, DigestSink sink) : query_(query), sink_(sink) {}

  absl::Status Take(const v1::DigestFileResponse& message) {
    if (message.has_version()) H5M_RETURN_IF_ERROR(TakeVersion(message.version()));
    pending_ += message.digests();
    BlockDigest digest;
    size_t used = 0;
    for (; pending_.size() - used >= digest.size(); used += digest.size()) {
      if (range_ >= ranges_.size()) return BadCount("more");
      std::memcpy(digest.data(), pending_.data() + used, digest.size());
      Extent& left = ranges_[range_];
      const Extent block{left.offset, std::min(query_.block_size_bytes, left.length)};
      H5M_RETURN_IF_ERROR(sink_(block, digest));
      left = {block.end(), left.length - block.length};
      if (left.length == 0) ++range_;
    }
    pending_.erase(0, used);
    return absl::OkStatus();
  }

  absl::StatusOr<v1::Version> Finish() const {
    if (version_.version() == 0 || !pending_.empty() || range_ != ranges_.size()) {
      return BadCount("fewer");
    }
    return version_;
  }

 private:
  absl::Status TakeVersion(const v1::Version& version) {
    if (version_.version() != 0 || version.version() <= 0 || version.size_bytes() < 0) {
      return BadCount("other");
    }
    version_ = version;
    ranges_.assign(query_.ranges.begin(), query_.ranges.end());
    if (ranges_.empty() && version.size_bytes() > 0) {
      ranges_.push_back({0, static_cast<uint64_t>(version.size_bytes())});
    }
    return absl::OkStatus();
  }

  absl::Status BadCount(std::string_view what) const {
    return absl::DataLossError(StrCat("compare with ", query_.name, ": the server sent ", what,
                                      " digests than a version of ", version_.size_bytes(),
                                      " bytes has; check the server with h5mirror doctor"));
  }

  const DigestQuery& query_;
  DigestSink sink_;
  v1::Version version_;
  std::vector<Extent> ranges_;  // from range_ on: what is missing
  size_t range_ = 0;
  std::string pending_;  // bytes of a digest that is split over two messages
};

}  // namespace

absl::StatusOr<v1::Version> StreamDigests(rpc::Client& client, const DigestQuery& query,
                                          uint64_t* wire_bytes, DigestSink sink) {
  v1::DigestFileRequest request;
  request.set_name(query.name);
  request.set_version(query.version);
  request.set_block_size_bytes(static_cast<uint32_t>(query.block_size_bytes));
  for (const Extent range : query.ranges) {
    v1::ByteRange& wanted = *request.add_ranges();
    wanted.set_offset(range.offset);
    wanted.set_length_bytes(range.length);
  }
  *wire_bytes += request.ByteSizeLong();
  Splitter splitter(query, sink);
  H5M_RETURN_IF_ERROR(client.DigestFile(request, [&](const v1::DigestFileResponse& message) {
    *wire_bytes += message.ByteSizeLong();
    return splitter.Take(message);
  }));
  return splitter.Finish();
}

}  // namespace h5mirror::tools
