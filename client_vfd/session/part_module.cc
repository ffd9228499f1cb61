#include "client_vfd/session/part_module.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/extent_set.h"
#include "base/hex.h"
#include "base/status_macros.h"
#include "client_vfd/session/c_face.h"
#include "client_vfd/session/engine.h"
#include "client_vfd/session/file_reader.h"
#include "client_vfd/session/reader_calls.h"
#include "client_vfd/session/session.h"
#include "rpc/frame_codec.h"

namespace h5mirror::vfd {
namespace {

constexpr size_t kFrameExtentsMax = 8192;
// A frame that is on its way while the next one is read: half of the most that one may have.
constexpr uint64_t kFrameBytes = 512 << 10;
constexpr absl::Duration kFrameTimeoutMin = absl::Seconds(5);

Session* Of(H5mSession* session) { return reinterpret_cast<Session*>(session); }

std::vector<Extent> ExtentsOf(const H5mRange* ranges, size_t count) {
  std::vector<Extent> extents;
  extents.reserve(count);
  for (size_t i = 0; i < count; ++i) extents.push_back({ranges[i].offset, ranges[i].length_bytes});
  return extents;
}

// The frames of a part, one after the other, read from the file as they are asked for.
class PartFrames {
 public:
  PartFrames(const FileReader& file, const std::vector<Extent>& extents, bool has_checksum)
      : file_(file), has_checksum_(has_checksum) {
    left_.Unbound();
    for (const Extent& extent : extents) left_.Add(extent);
  }
  uint64_t byte_count() const { return left_.byte_count(); }

  absl::StatusOr<std::optional<grpc::ByteBuffer>> Next() {
    const std::vector<Extent> taken = left_.Take(0, kFrameBytes, kFrameExtentsMax);
    if (taken.empty()) return std::nullopt;
    uint64_t bytes = 0;
    for (const Extent& extent : taken) bytes += extent.length;
    std::string buffer(bytes, '\0');
    uint64_t used = 0;
    for (const Extent& extent : taken) {
      H5M_RETURN_IF_ERROR(file_.Read(extent, buffer.data() + used));
      used += extent.length;
    }
    std::optional<uint32_t> crc32c;
    if (has_checksum_) crc32c = Crc32c(buffer);
    const grpc::Slice data(buffer);
    return rpc::EncodeWrites(taken, crc32c, absl::MakeConstSpan(&data, 1));
  }

 private:
  const FileReader& file_;
  const bool has_checksum_;
  ExtentSet left_;
};

v1::JoinSession JoinOf(const H5mPart& part) {
  const auto bytes = [](const uint8_t(&id)[16]) {
    return std::string(reinterpret_cast<const char*>(id), sizeof id);
  };
  v1::JoinSession join;
  join.set_name(part.name);
  join.set_session_id(bytes(part.ticket.session_id));
  join.set_join_secret(bytes(part.ticket.join_secret));
  join.set_token(part.ticket.token);
  join.set_after_cuts(part.ticket.after_cuts);
  return join;
}

absl::Status Send(const H5mPart& part) {
  ReaderServer server;
  H5M_ASSIGN_OR_RETURN(static_cast<rpc::ClientOptions&>(server),
                       ServerOf(part.server, part.ca, part.token));
  H5M_ASSIGN_OR_RETURN(const std::unique_ptr<FileReader> file,
                       FileReader::Open(part.fd, Engine::Get().mark()));
  const bool has_checksum =
      part.checksum == H5M_CHECKSUM_ON || (part.checksum == H5M_CHECKSUM_AUTO && !server.loopback);
  PartFrames frames(*file, ExtentsOf(part.ranges, part.range_count), has_checksum);
  const uint64_t bytes = frames.byte_count();
  const absl::Duration timeout = absl::Milliseconds(part.timeout_ms);
  return ReaderCalls::Get().SendPart(server,
                                     {JoinOf(part), bytes, [&frames] { return frames.Next(); }},
                                     std::max(timeout, kFrameTimeoutMin));
}

}  // namespace

int TicketForPart(H5mSession* session, H5mPartTicket* ticket) {
  return Guarded(nullptr, 0, [&] {
    const std::optional<PartTicket> found = Of(session)->TicketForPart();
    if (!found) return EAGAIN;
    std::copy(found->session_id.begin(), found->session_id.end(), ticket->session_id);
    std::copy(found->join_secret.begin(), found->join_secret.end(), ticket->join_secret);
    ticket->token = found->place.token;
    ticket->after_cuts = found->place.after_cuts;
    return 0;
  });
}

int EndPart(H5mSession* session, const H5mPartTicket* ticket, const H5mRange* ranges,
            size_t range_count, int is_sent) {
  return Guarded(nullptr, 0, [&] {
    const StreamParts::Place place{ticket->token, ticket->after_cuts};
    const auto end = is_sent != 0 ? Session::PartEnd::kSent : Session::PartEnd::kFailed;
    return Of(session)->EndPart(place, ExtentsOf(ranges, range_count), end) ? 0 : EAGAIN;
  });
}

int SendPart(const H5mPart* part, char* error, size_t error_size) {
  return Guarded(error, error_size, [&] {
    const absl::Status status = Send(*part);
    return status.ok() ? 0 : Tell(status, error, error_size);
  });
}

}  // namespace h5mirror::vfd
