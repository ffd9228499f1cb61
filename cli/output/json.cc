#include "cli/output/json.h"

#include "absl/strings/escaping.h"
#include "base/hex.h"
#include "base/utf8.h"
#include "cli/output/text.h"
#include "rpc/mirror_state_name.h"

namespace h5mirror::tools {
namespace {

std::string Text(const Json& json, int indent) {
  return PrintableJson(json.dump(indent, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

Json TimeToJson(absl::Time time) {
  const std::string text = UtcTime(time);
  return text.empty() ? Json(nullptr) : Json(text);
}

Json SourceToJson(const v1::SourceVersion& source) {
  const bool verified = !source.verified_user().empty();
  return Json{
      {"kind", source.kind() == v1::SOURCE_KIND_PROMOTION ? "promotion" : "fork"},
      {"name", source.name()},
      {"file_id", absl::BytesToHexString(source.file_id())},
      {"version", source.version()},
      {"cut", source.cut()},
      {"time", TimeToJson(FromProto(source.server_time()))},
      {"user", verified ? source.verified_user() : source.claimed_user()},
      {"user_verified", verified},
  };
}

Json GroupToJson(const v1::GroupCut& group) {
  const absl::StatusOr<Bytes16> id = FromByteString(group.group_id());
  return Json{{"id", id.ok() ? Json(HexOf(*id)) : Json(nullptr)}, {"number", group.number()}};
}

Json VersionToJson(const v1::Version& version) {
  Json tags = Json::array();
  for (const std::string& tag : version.tags()) tags.push_back(tag);
  const bool verified = !version.verified_user().empty();
  Json json{
      {"version", version.version()},
      {"cut", version.cut()},
      {"time", TimeToJson(FromProto(version.server_time()))},
      {"client_time", TimeToJson(FromProto(version.client_time()))},
      {"user", verified ? version.verified_user() : version.writer().claimed_user()},
      {"user_verified", verified},
      {"claimed_user", version.writer().claimed_user()},
      {"host", version.writer().host()},
      {"program", version.writer().program()},
      {"pid", version.writer().pid()},
      {"size_bytes", version.size_bytes()},
      {"changed_pages", version.changed_pages()},
      {"changed_bytes", version.changed_bytes()},
      {"generation", version.generation()},
      {"comment", version.comment()},
      {"tags", tags},
  };
  if (version.has_source()) json["source"] = SourceToJson(version.source());
  if (version.has_group()) json["group"] = GroupToJson(version.group());
  return json;
}

namespace {

Json MirrorToJson(const v1::MirrorStatus& mirror) {
  if (mirror.state() == v1::MIRROR_STATE_UNSPECIFIED) return nullptr;
  const bool resyncs = mirror.state() == v1::MIRROR_STATE_RESYNCING;
  return Json{{"state", rpc::MirrorStateName(mirror.state())},
              {"since", TimeToJson(FromProto(mirror.since_time()))},
              {"pending_bytes", mirror.pending_bytes()},
              {"pending_cuts", mirror.pending_cuts()},
              {"pending_since", TimeToJson(FromProto(mirror.pending_since_time()))},
              {"resync_total_bytes", resyncs ? Json(mirror.resync_total_bytes()) : Json(nullptr)},
              {"resync_sent_bytes", resyncs ? Json(mirror.resync_sent_bytes()) : Json(nullptr)},
              {"detail", mirror.detail()}};
}

Json LastWriterToJson(const v1::LastWriter& last) {
  const bool verified = !last.verified_user().empty();
  return Json{{"user", verified ? last.verified_user() : last.writer().claimed_user()},
              {"user_verified", verified},
              {"host", last.writer().host()},
              {"program", last.writer().program()},
              {"pid", last.writer().pid()},
              {"is_writing", last.is_writing()},
              {"time", TimeToJson(FromProto(last.time()))}};
}

Json RecentWritesToJson(const v1::RecentWrites& writes) {
  Json bytes = Json::array();
  for (const int64_t each : writes.received_bytes()) bytes.push_back(each);
  return Json{{"interval_seconds", writes.interval_seconds()},
              {"end_time", TimeToJson(FromProto(writes.end_time()))},
              {"received_bytes", bytes}};
}

}  // namespace

Json SummaryToJson(const v1::FileSummary& summary) {
  Json json{{"name", summary.name()},
            {"size_bytes", summary.size_bytes()},
            {"modify_time", TimeToJson(FromProto(summary.modify_time()))}};
  if (summary.has_mirror()) json["mirror"] = MirrorToJson(summary.mirror());
  if (!summary.has_history_bytes()) return json;  // The server has looked at no file.
  json["last_writer"] =
      summary.has_last_writer() ? LastWriterToJson(summary.last_writer()) : Json(nullptr);
  json["history_bytes"] = summary.history_bytes();
  json["recent_writes"] =
      summary.has_recent_writes() ? RecentWritesToJson(summary.recent_writes()) : Json(nullptr);
  return json;
}

Json StatusToJson(const v1::FileStatus& status) {
  Json lease = nullptr;
  if (status.has_lease()) {
    const v1::LeaseHolder& holder = status.lease();
    const bool verified = !holder.verified_user().empty();
    lease = Json{{"user", verified ? holder.verified_user() : holder.writer().claimed_user()},
                 {"user_verified", verified},
                 {"host", holder.writer().host()},
                 {"program", holder.writer().program()},
                 {"pid", holder.writer().pid()},
                 {"peer", holder.peer()},
                 {"since", TimeToJson(FromProto(holder.since_time()))},
                 {"token", holder.token()}};
  }
  Json check = nullptr;
  if (status.has_last_check()) {
    check = Json{{"time", TimeToJson(FromProto(status.last_check().check_time()))},
                 {"version", status.last_check().version()},
                 {"differing_bytes", status.last_check().differing_bytes()},
                 {"equal_time", TimeToJson(FromProto(status.last_check().equal_time()))}};
  }
  return Json{
      {"name", status.name()},
      {"file_id", absl::BytesToHexString(status.file_id())},
      {"size_bytes", status.size_bytes()},
      {"page_size_bytes", status.page_size_bytes()},
      {"generation", status.generation()},
      {"last_cut", status.last_cut()},
      {"durable_cut", status.durable_cut()},
      {"applied_cut", status.applied_cut()},
      {"version_count", status.version_count()},
      {"newest_version",
       status.has_newest_version() ? VersionToJson(status.newest_version()) : Json(nullptr)},
      {"origin", Json{{"machine_id", status.origin().machine_id()},
                      {"host", status.origin().host()},
                      {"path", status.origin().path()}}},
      {"owner", status.owner().empty() ? Json(nullptr) : Json(status.owner())},
      {"lease", lease},
      {"mirror", MirrorToJson(status.mirror())},
      {"stage_bytes", status.stage_bytes()},
      {"history_bytes", status.history_bytes()},
      {"history_notice",
       status.history_notice().empty() ? Json(nullptr) : Json(status.history_notice())},
      {"last_check", check},
      {"forked_from",
       status.has_forked_from() ? SourceToJson(status.forked_from()) : Json(nullptr)},
  };
}

Json RecordToJson(const LocalRecord& record) {
  return Json{
      {"state", RecordStateName(record.state)},
      {"file_id", HexOf(record.file_id)},
      {"server", record.server},
      {"name", record.name},
      {"cut", record.cut},
      {"version", record.version},
      {"detail", record.detail},
      {"since", TimeToJson(record.since)},
  };
}

Json ServerToJson(const v1::GetServerResponse& server, std::string_view address) {
  const auto range = [](const v1::ProtocolRange& r) {
    return Json{{"oldest", r.oldest()}, {"newest", r.newest()}};
  };
  Json rights = Json::array();
  for (const std::string& right : server.rights()) rights.push_back(right);
  Json told{
      {"server", address},
      {"server_version", server.server_version()},
      {"protocol", range(server.protocol())},
      {"store_format", range(server.store_format())},
      {"incarnation", absl::BytesToHexString(server.incarnation())},
      {"start_time", TimeToJson(FromProto(server.start_time()))},
      {"root", server.root()},
      {"memory_max_bytes", server.memory_max_bytes()},
      {"memory_used_bytes", server.memory_used_bytes()},
      {"open_files", server.open_files()},
      {"open_sessions", server.open_sessions()},
      {"free_bytes", server.free_bytes()},
      {"verified_user", server.verified_user()},
      {"rights", rights},
  };
  if (!server.root().empty()) return told;
  // The server does not tell this user, and zeros would be taken for what they say.
  for (const char* hidden : {"start_time", "root", "memory_max_bytes", "memory_used_bytes",
                             "open_files", "open_sessions", "free_bytes"}) {
    told[hidden] = nullptr;
  }
  return told;
}

std::string_view RecordStateName(RecordState state) {
  switch (state) {
    case RecordState::kClean:
      return "clean";
    case RecordState::kOpen:
      return "open";
    case RecordState::kBehind:
      return "behind";
    case RecordState::kDiverged:
      return "diverged";
  }
  return "unknown";
}

std::string Dump(const Json& json) { return Text(json, 2); }
std::string DumpLine(const Json& json) { return Text(json, -1); }

}  // namespace h5mirror::tools
