// Wire values <-> store values: the only place that knows both.
#ifndef H5MIRROR_SERVER_STATE_CONVERT_H_
#define H5MIRROR_SERVER_STATE_CONVERT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "h5mirror/v1/files.pb.h"
#include "h5mirror/v1/mirror.pb.h"
#include "h5mirror/v1/snapshots.pb.h"
#include "h5mirror/v1/types.pb.h"
#include "h5mirror/v1/versions.pb.h"
#include "onion_store/store.h"
#include "onion_store/types.h"
#include "rpc/timestamp.h"
#include "server/state/lease_table.h"

namespace h5mirror::server {

// Largest offset or size that a file may have: HDF5's haddr_t ends at 2^63-1, as off_t does.
inline constexpr uint64_t kFileSizeMax = (uint64_t{1} << 63) - 1;
// The store keeps sequence numbers as signed 64-bit integers.
inline constexpr uint64_t kBarrierSeqMax = (uint64_t{1} << 63) - 1;

using rpc::FromProto;  // of a timestamp
using rpc::ToProto;    // of a time
absl::Duration FromProto(const google::protobuf::Duration& duration);

v1::Origin ToProto(const store::Origin& origin);
store::Origin FromProto(const v1::Origin& origin);
v1::LocalStat ToProto(const store::LocalStat& local);
store::LocalStat FromProto(const v1::LocalStat& local);
v1::SourceVersion ToProto(const store::SourceVersion& source);
v1::GroupCut ToProto(const store::GroupCut& group);
store::GroupCut FromProto(const v1::GroupCut& group);
v1::Version ToProto(const store::VersionInfo& version);
v1::PageRun ToProto(const store::PlacedRun& run);
v1::LeaseHolder ToProto(const LeaseHolder& holder);
// Of a file and of the holder of its lease, if any; nullopt: nobody has ever written it.
std::optional<v1::LastWriter> LastWriterOf(const store::FileInfo& info,
                                           const std::optional<LeaseHolder>& holder);
v1::MirrorCheck ToProto(const store::CheckInfo& check);
v1::FileStatus ToProto(const std::string& name, const store::FileInfo& info,
                       const std::optional<LeaseHolder>& holder);

// Fills in the writer's session, where it is known.
void SetWriter(const store::CutInfo& cut, v1::Snapshot& snapshot);

store::Provenance MakeProvenance(const v1::Writer& writer, const std::string& verified_user,
                                 const std::string& comment, absl::Time client_time);

// kInvalidArgument: unspecified or unknown.
absl::StatusOr<store::BarrierKind> FromProto(v1::BarrierKind kind);

// Checks a client's account of itself: each string has at most 256 bytes, a path 4096, a comment
// 4096. kInvalidArgument names the field.
absl::Status CheckWriter(const v1::Writer& writer);
absl::Status CheckOrigin(const v1::Origin& origin);
absl::Status CheckComment(const std::string& comment);
// kInvalidArgument names the field: an id that has not 16 bytes, numbers out of order, or, of a
// barrier's group, no members or too many.
absl::Status CheckGroupId(std::string_view field, const v1::GroupCut& group);
absl::Status CheckGroup(const v1::GroupCut& group);

// The newest protocol that both sides speak. A client that sets no range speaks 1.
// kFailedPrecondition: there is none; the message names both ranges.
absl::StatusOr<uint32_t> NegotiateProtocol(const v1::ProtocolRange& client);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_STATE_CONVERT_H_
