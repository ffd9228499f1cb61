#include "server/state/convert.h"

#include <algorithm>

#include "base/hex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "rpc/channel.h"

namespace h5mirror::server {
namespace {

absl::Status CheckSize(std::string_view field, const std::string& value, size_t max) {
  if (value.size() <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(field, " has ", value.size(), " bytes; at most ", max, " are allowed"));
}

constexpr size_t kNameBytesMax = 256;
constexpr size_t kTextBytesMax = 4096;
// The most bytes of one version's tags in an answer: many more than the store allows now.
constexpr size_t kTagsBytesMax = 256 << 10;
constexpr int kMembersMax = 4096;
constexpr size_t kMembersBytesMax = 256 << 10;

v1::PagePlace ToProto(store::PagePlace place) {
  switch (place) {
    case store::PagePlace::kHole:
      return v1::PAGE_PLACE_HOLE;
    case store::PagePlace::kHead:
      return v1::PAGE_PLACE_HEAD;
    case store::PagePlace::kStage:
      return v1::PAGE_PLACE_STAGE;
    case store::PagePlace::kPages:
      return v1::PAGE_PLACE_PAGES;
    case store::PagePlace::kPacked:
      return v1::PAGE_PLACE_PACKED;
    case store::PagePlace::kZeros:
      return v1::PAGE_PLACE_ZEROS;
    case store::PagePlace::kLost:
      return v1::PAGE_PLACE_LOST;
  }
  return v1::PAGE_PLACE_UNSPECIFIED;
}

}  // namespace

v1::Origin ToProto(const store::Origin& origin) {
  v1::Origin proto;
  proto.set_machine_id(origin.machine_id);
  proto.set_host(origin.host);
  proto.set_path(origin.path);
  return proto;
}

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

store::Origin FromProto(const v1::Origin& origin) {
  return {origin.machine_id(), origin.host(), origin.path()};
}

v1::LocalStat ToProto(const store::LocalStat& local) {
  v1::LocalStat proto;
  proto.set_inode(local.inode);
  proto.set_size_bytes(local.size_bytes);
  proto.set_mtime_ns(local.mtime_ns);
  proto.set_ctime_ns(local.ctime_ns);
  return proto;
}

store::LocalStat FromProto(const v1::LocalStat& local) {
  return {local.inode(), local.size_bytes(), local.mtime_ns(), local.ctime_ns()};
}

v1::SourceVersion ToProto(const store::SourceVersion& source) {
  v1::SourceVersion proto;
  proto.set_kind(source.kind == store::SourceKind::kFork ? v1::SOURCE_KIND_FORK
                                                         : v1::SOURCE_KIND_PROMOTION);
  proto.set_file_id(ToByteString(source.file_id));
  proto.set_name(source.name);
  proto.set_version(source.version);
  proto.set_cut(source.cut);
  *proto.mutable_server_time() = ToProto(source.time);
  proto.set_claimed_user(source.claimed_user);
  proto.set_verified_user(source.verified_user);
  return proto;
}

v1::GroupCut ToProto(const store::GroupCut& group) {
  v1::GroupCut proto;
  proto.set_group_id(ToByteString(group.id));
  proto.set_number(group.number);
  proto.set_whole_number(group.whole_number);
  for (const std::string& member : group.members) proto.add_member(member);
  return proto;
}

store::GroupCut FromProto(const v1::GroupCut& group) {
  store::GroupCut cut;
  std::copy_n(group.group_id().begin(), std::min(group.group_id().size(), cut.id.size()),
              cut.id.begin());
  cut.number = group.number();
  cut.whole_number = group.whole_number();
  cut.members.assign(group.member().begin(), group.member().end());
  return cut;
}

v1::Version ToProto(const store::VersionInfo& version) {
  v1::Version proto;
  proto.set_version(version.version);
  proto.set_cut(version.cut);
  *proto.mutable_server_time() = ToProto(version.server_time);
  if (version.provenance.client_time != absl::InfinitePast()) {
    *proto.mutable_client_time() = ToProto(version.provenance.client_time);
  }
  v1::Writer& writer = *proto.mutable_writer();
  writer.set_claimed_user(version.provenance.claimed_user);
  writer.set_host(version.provenance.host);
  writer.set_program(version.provenance.program);
  writer.set_pid(version.provenance.pid);
  proto.set_verified_user(version.provenance.verified_user);
  proto.set_comment(version.provenance.comment);
  proto.set_size_bytes(static_cast<int64_t>(version.size_bytes));
  proto.set_changed_pages(static_cast<int64_t>(version.changed_pages));
  proto.set_changed_bytes(static_cast<int64_t>(version.changed_bytes));
  proto.set_generation(version.generation);
  size_t tag_bytes = 0;
  for (const std::string& tag : version.tags) {
    tag_bytes += tag.size() + 4;
    if (tag_bytes > kTagsBytesMax) break;
    proto.add_tags(tag);
  }
  if (version.source) *proto.mutable_source() = ToProto(*version.source);
  if (version.group) *proto.mutable_group() = ToProto(*version.group);
  return proto;
}

v1::PageRun ToProto(const store::PlacedRun& run) {
  v1::PageRun proto;
  proto.set_page(run.page);
  proto.set_page_count(run.page_count);
  proto.set_place(ToProto(run.place));
  proto.set_file(run.file);
  proto.set_offset(run.offset);
  proto.mutable_page_crc32c()->Add(run.page_crc32c.begin(), run.page_crc32c.end());
  return proto;
}

v1::LeaseHolder ToProto(const LeaseHolder& holder) {
  v1::LeaseHolder proto;
  v1::Writer& writer = *proto.mutable_writer();
  writer.set_claimed_user(holder.claimed_user);
  writer.set_host(holder.host);
  writer.set_program(holder.program);
  writer.set_pid(holder.pid);
  proto.set_verified_user(holder.verified_user);
  proto.set_peer(holder.peer);
  *proto.mutable_since_time() = ToProto(holder.since);
  proto.set_token(holder.token);
  return proto;
}

std::optional<v1::LastWriter> LastWriterOf(const store::FileInfo& info,
                                           const std::optional<LeaseHolder>& holder) {
  v1::LastWriter proto;
  if (holder.has_value()) {
    v1::LeaseHolder live = ToProto(*holder);
    *proto.mutable_writer() = std::move(*live.mutable_writer());
    proto.set_verified_user(holder->verified_user);
    proto.set_is_writing(true);
    *proto.mutable_time() = ToProto(holder->since);
    return proto;
  }
  const store::VersionInfo& newest = info.newest_version;
  if (newest.version == 0) return std::nullopt;
  v1::Writer& writer = *proto.mutable_writer();
  writer.set_claimed_user(newest.provenance.claimed_user);
  writer.set_host(newest.provenance.host);
  writer.set_program(newest.provenance.program);
  writer.set_pid(newest.provenance.pid);
  proto.set_verified_user(newest.provenance.verified_user);
  *proto.mutable_time() = ToProto(newest.server_time);
  return proto;
}

v1::MirrorCheck ToProto(const store::CheckInfo& check) {
  v1::MirrorCheck proto;
  *proto.mutable_check_time() = ToProto(check.time);
  proto.set_version(check.version);
  proto.set_differing_bytes(static_cast<int64_t>(check.differing_bytes));
  if (check.equal_time != absl::InfinitePast()) {
    *proto.mutable_equal_time() = ToProto(check.equal_time);
  }
  return proto;
}

v1::FileStatus ToProto(const std::string& name, const store::FileInfo& info,
                       const std::optional<LeaseHolder>& holder) {
  v1::FileStatus proto;
  proto.set_name(name);
  proto.set_file_id(ToByteString(info.file_id));
  proto.set_size_bytes(static_cast<int64_t>(info.size_bytes));
  proto.set_page_size_bytes(info.page_size_bytes);
  proto.set_owner(info.owner);
  proto.set_generation(info.generation);
  proto.set_last_cut(info.last_cut);
  proto.set_durable_cut(info.durable_cut);
  proto.set_applied_cut(info.applied_cut);
  if (info.newest_version.version != 0) {
    *proto.mutable_newest_version() = ToProto(info.newest_version);
  }
  proto.set_version_count(info.version_count);
  *proto.mutable_origin() = ToProto(info.origin);
  *proto.mutable_local() = ToProto(info.local);
  if (holder.has_value()) *proto.mutable_lease() = ToProto(*holder);
  proto.set_stage_bytes(static_cast<int64_t>(info.stage_bytes));
  proto.set_history_bytes(static_cast<int64_t>(info.history_bytes));
  if (info.last_check) *proto.mutable_last_check() = ToProto(*info.last_check);
  if (info.forked_from) *proto.mutable_forked_from() = ToProto(*info.forked_from);
  return proto;
}

void SetWriter(const store::CutInfo& cut, v1::Snapshot& snapshot) {
  if (cut.writer == store::SessionId{}) return;
  snapshot.set_writer_session_id(cut.writer.data(), cut.writer.size());
}

store::Provenance MakeProvenance(const v1::Writer& writer, const std::string& verified_user,
                                 const std::string& comment, absl::Time client_time) {
  store::Provenance provenance;
  provenance.claimed_user = writer.claimed_user();
  provenance.verified_user = verified_user;
  provenance.host = writer.host();
  provenance.program = writer.program();
  provenance.pid = writer.pid();
  provenance.comment = comment;
  provenance.client_time = client_time;
  return provenance;
}

absl::StatusOr<store::BarrierKind> FromProto(v1::BarrierKind kind) {
  switch (kind) {
    case v1::BARRIER_KIND_TICK:
      return store::BarrierKind::kTick;
    case v1::BARRIER_KIND_SYNC:
      return store::BarrierKind::kSync;
    case v1::BARRIER_KIND_COMMIT:
      return store::BarrierKind::kCommit;
    default:
      return absl::InvalidArgumentError(
          StrCat("barrier.kind ", static_cast<int>(kind), " is not one of tick, sync, commit"));
  }
}

absl::Status CheckWriter(const v1::Writer& writer) {
  H5M_RETURN_IF_ERROR(CheckSize("writer.claimed_user", writer.claimed_user(), kNameBytesMax));
  H5M_RETURN_IF_ERROR(CheckSize("writer.host", writer.host(), kNameBytesMax));
  return CheckSize("writer.program", writer.program(), kNameBytesMax);
}

absl::Status CheckOrigin(const v1::Origin& origin) {
  H5M_RETURN_IF_ERROR(CheckSize("origin.machine_id", origin.machine_id(), kNameBytesMax));
  H5M_RETURN_IF_ERROR(CheckSize("origin.host", origin.host(), kNameBytesMax));
  return CheckSize("origin.path", origin.path(), kTextBytesMax);
}

absl::Status CheckComment(const std::string& comment) {
  return CheckSize("comment", comment, kTextBytesMax);
}

absl::Status CheckGroupId(std::string_view field, const v1::GroupCut& group) {
  if (group.group_id().size() != sizeof(store::GroupCut::id)) {
    return absl::InvalidArgumentError(
        StrCat(field, ".group_id has ", group.group_id().size(), " bytes; it has 16"));
  }
  if (group.number() >= 1 && group.number() <= kBarrierSeqMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(field, ".number ", group.number(), " is not in the range from 1 to 2^63-1"));
}

absl::Status CheckGroup(const v1::GroupCut& group) {
  H5M_RETURN_IF_ERROR(CheckGroupId("barrier.group", group));
  if (group.whole_number() > group.number()) {
    return absl::InvalidArgumentError(StrCat("barrier.group.whole_number ", group.whole_number(),
                                             " is beyond number ", group.number()));
  }
  size_t bytes = 0;
  for (const std::string& member : group.member()) {
    bytes += member.size();
    if (member.empty() || member.find('\0') != std::string::npos) {
      return absl::InvalidArgumentError("barrier.group.member has a name that no file has");
    }
  }
  if (group.member_size() >= 1 && group.member_size() <= kMembersMax && bytes <= kMembersBytesMax) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(StrCat("barrier.group.member has ", group.member_size(),
                                           " names of ", bytes, " bytes; it has 1 to ", kMembersMax,
                                           ", at most ", kMembersBytesMax, " bytes"));
}

absl::StatusOr<uint32_t> NegotiateProtocol(const v1::ProtocolRange& client) {
  const uint32_t newest = std::min(std::max(client.newest(), 1u), rpc::kProtocolNewest);
  if (newest >= rpc::kProtocolOldest && newest >= client.oldest()) return newest;
  return absl::FailedPreconditionError(StrCat("no common protocol version: the client speaks ",
                                              client.oldest(), "..", client.newest(),
                                              ", this server ", rpc::kProtocolOldest, "..",
                                              rpc::kProtocolNewest, "; update the older side"));
}

}  // namespace h5mirror::server
