#include "client_vfd/session/reader.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/superblock_image.h"
#include "client_vfd/session/reader_calls.h"
#include "rpc/agent_open.h"
#include "rpc/agent_socket.h"
#include "rpc/cut_map.h"
#include "rpc/shared_blocks.h"
#include "rpc/timestamp.h"
#include "rpc/version_request.h"

namespace h5mirror::vfd {
struct Reader::Found {
  // The open of a live file `name`.
  void Take(const std::string& name, const v1::Snapshot& opened);

  v1::Version version;
  v1::Snapshot snapshot;    // of a live file
  std::string first_bytes;  // one block or the whole version; empty: not read yet
  absl::Time open_time = absl::InfinitePast();
  std::shared_ptr<SnapshotPins> pins = nullptr;
  std::shared_ptr<const OpenGroup> group = nullptr;
  Maps maps = Maps::kAsk;
  std::shared_ptr<const rpc::CutMap> map = nullptr;
};

namespace {

// Attempts to open the newest cut while connections break under the answer.
constexpr int kLiveAttempts = 3;
// For what is only quicker than asking.
constexpr absl::Duration kMapWait = absl::Seconds(1);
// After such a wait in vain nothing is mapped for a while, rather than each open waiting anew.
constexpr absl::Duration kMapSuspectFor = absl::Seconds(10);
std::atomic<int64_t> map_suspect_until_ns = 0;

bool IsMapSuspect(absl::Time now) { return absl::ToUnixNanos(now) < map_suspect_until_ns.load(); }

// `ask` gets its deadline.
template <typename Ask>
auto AskToMap(Ask ask) -> decltype(ask(absl::Time())) {
  const absl::Time begin = absl::Now();
  if (IsMapSuspect(begin)) return absl::UnavailableError("the agent did not answer just now");
  auto map = ask(begin + kMapWait);
  if (absl::IsDeadlineExceeded(map.status())) {
    map_suspect_until_ns = absl::ToUnixNanos(begin + kMapSuspectFor);
  }
  return map;
}

// Puts a part of the first block where it belongs.
absl::Status Place(uint64_t offset, std::string_view data, std::string* bytes) {
  if (offset > bytes->size() || data.size() > bytes->size() - offset) {
    return absl::InternalError("the server sent bytes that were not asked for");
  }
  std::memcpy(bytes->data() + offset, data.data(), data.size());
  return absl::OkStatus();
}

absl::Status CheckBytes(const v1::ReadSnapshotResponse& answer) {
  if (Crc32c(answer.data()) == answer.data_crc32c()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("bytes at ", answer.offset(), " were damaged on the way"));
}

ReaderConfig AtVersion(const ReaderConfig& config, int64_t version) {
  ReaderConfig at = config;
  at.live.reset();
  at.version = rpc::VersionSpec();
  at.version.number = version;
  return at;
}

v1::Version VersionOf(const v1::Snapshot& snapshot) {
  v1::Version version;
  version.set_version(snapshot.version());
  version.set_cut(snapshot.cut());
  version.set_size_bytes(snapshot.size_bytes());
  *version.mutable_server_time() = snapshot.server_time();
  return version;
}

// Both ways to read a version or cut: a range, and on and on.
struct Ranges {
  rpc::RangeReader ranges;
  rpc::StreamReader stream;
};

template <typename Read>
Ranges BothWays(Read read) {
  return {
      [read](uint64_t offset, uint64_t length, rpc::RangeSink sink, rpc::MetadataAhead* ahead) {
        return read(offset, length, sink, ahead, nullptr);
      },
      [read](uint64_t offset, uint64_t length, rpc::RangeSink sink, rpc::CallCanceller& canceller) {
        return read(offset, length, sink, nullptr, &canceller);
      }};
}

Ranges VersionRanges(const ReaderConfig& config, const v1::Version& version,
                     std::shared_ptr<const AgentPass> passes_agent) {
  ReaderServer direct = config.server;
  direct.passes_agent = true;
  const auto read = [through_agent = config.server, direct = std::move(direct),
                     passes_agent = std::move(passes_agent), name = config.name,
                     timeout = config.timeout,
                     version](uint64_t offset, uint64_t length, rpc::RangeSink sink,
                              rpc::MetadataAhead* ahead, rpc::CallCanceller* canceller) {
    v1::ReadVersionRequest request;
    request.set_name(name);
    request.set_version(version.version());
    request.set_offset(offset);
    request.set_length_bytes(length);
    rpc::AskAhead(ahead, request);
    return ReaderCalls::Get().ReadVersion(
        // With metadata the agent may bring more, which it has for all readers.
        passes_agent->IsNow() && ahead == nullptr ? direct : through_agent, std::move(request),
        timeout,
        [&](const v1::ReadVersionResponse& answer) {
          H5M_RETURN_IF_ERROR(rpc::CheckAnswer(answer, version));
          return answer.has_version() ? absl::OkStatus() : rpc::TakeData(answer, sink, ahead);
        },
        canceller);
  };
  return BothWays(read);
}

Ranges SnapshotRanges(const ReaderConfig& config, const v1::Snapshot& opened,
                      const SnapshotPins& pins) {
  const auto read = [server = config.server, name = config.name, timeout = config.timeout, opened,
                     reader_id = pins.reader_id()](uint64_t offset, uint64_t length,
                                                   rpc::RangeSink sink, rpc::MetadataAhead* ahead,
                                                   rpc::CallCanceller* canceller) {
    v1::ReadSnapshotRequest request;
    request.set_name(name);
    request.set_cut(opened.cut());
    request.set_file_id(opened.file_id());
    request.set_reader_id(reader_id);
    request.set_offset(offset);
    request.set_length_bytes(length);
    rpc::AskAhead(ahead, request);
    return ReaderCalls::Get().ReadSnapshot(
        server, std::move(request), timeout,
        [&](const v1::ReadSnapshotResponse& answer) {
          if (answer.has_snapshot()) return rpc::CheckSnapshot(answer.snapshot(), opened);
          H5M_RETURN_IF_ERROR(CheckBytes(answer));
          return rpc::TakeData(answer, sink, ahead);
        },
        canceller);
  };
  return BothWays(read);
}

// Numbers are not enough: a file that replaces another one under its name counts from 1 again. So a
// version's identity includes its time. A cut's includes the file's id, because its time changes
// when the server restarts.
std::string IdentityOf(const ReaderConfig& config, const v1::Version& version,
                       const std::string& file_id) {
  const std::string which =
      version.version() != 0
          ? absl::StrCat(version.server_time().seconds(), ".", version.server_time().nanos())
          : absl::BytesToHexString(file_id);
  return absl::StrCat(version.version(), "\n", version.cut(), "\n", which, "\n", config.name, "\n",
                      config.server.target);
}

}  // namespace

void Reader::Found::Take(const std::string& name, const v1::Snapshot& opened) {
  snapshot = opened;
  version = VersionOf(opened);
  open_time = opened.has_open_time() ? rpc::FromProto(opened.open_time()) : absl::UnixEpoch();
  if (version.version() == 0) pins->Add(name, version.cut());
}

bool Reader::FindAtAgent(const ReaderConfig& config, Found* found) {
  const std::string agent = ReaderCalls::Get().AgentFor(config.server);
  if (agent.empty() || IsMapSuspect(absl::Now())) return false;
  rpc::CutMapQuestion question{.target = config.server.target, .name = config.name, .file_id = ""};
  question.kind = rpc::CutMapQuestion::Kind::kOpen;
  question.reader_id = found->pins->reader_id();
  const absl::Duration wait = std::min(config.timeout, ReaderCalls::kAgentTimeout);
  absl::StatusOr<rpc::OpenedAtAgent> opened =
      rpc::OpenAtAgent(rpc::CutMapSocket(agent), question, absl::Now() + wait);
  if (absl::IsDeadlineExceeded(opened.status())) ReaderCalls::Get().PassByAgent(config.server);
  if (absl::IsInvalidArgument(opened.status())) found->maps = Maps::kNone;
  if (!opened.ok()) return false;
  found->Take(config.name, opened->snapshot);
  found->maps = Maps::kTold;
  found->map = std::move(opened->map);
  return true;
}

absl::StatusOr<Reader::Found> Reader::FindLive(const ReaderConfig& config) {
  const LiveCut& live = *config.live;
  Found found;
  found.pins = live.root_id ? SnapshotPins::Find(*live.root_id, config.server, config.timeout)
                            : SnapshotPins::MakeFor(config.server, config.timeout);
  const bool is_newest = live.cut == 0 && live.not_after == absl::InfinitePast();
  if (is_newest && FindAtAgent(config, &found)) return found;
  std::string bytes(rpc::BlockCache::kBlockBytes, '\0');
  v1::ReadSnapshotRequest request;
  request.set_name(config.name);
  request.set_cut(live.cut);
  request.set_reader_id(found.pins->reader_id());
  request.set_length_bytes(bytes.size());
  if (live.not_after != absl::InfinitePast()) {
    const int64_t nanos = absl::ToUnixNanos(live.not_after);
    request.mutable_not_after_time()->set_seconds(nanos / 1'000'000'000);
    request.mutable_not_after_time()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  }
  const auto take = [&](const v1::ReadSnapshotResponse& answer) -> absl::Status {
    if (!answer.has_snapshot()) {
      H5M_RETURN_IF_ERROR(CheckBytes(answer));
      return Place(answer.offset(), answer.data(), &bytes);
    }
    // The connection broke under the answer, and by now there is a newer cut.
    if (found.snapshot.cut() != 0 && !rpc::CheckSnapshot(answer.snapshot(), found.snapshot).ok()) {
      return absl::AbortedError("a newer cut was made while the newest one was opened");
    }
    found.Take(config.name, answer.snapshot());
    return absl::OkStatus();
  };
  H5M_RETURN_IF_ERROR(
      ReaderCalls::Get().ReadSnapshot(config.server, request, config.timeout, take));
  bytes.resize(std::min<uint64_t>(bytes.size(), static_cast<uint64_t>(found.version.size_bytes())));
  found.first_bytes = std::move(bytes);
  return found;
}

absl::StatusOr<Reader::Found> Reader::OpenLive(const ReaderConfig& config) {
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<Found> found = FindLive(config);
    if (!absl::IsAborted(found.status()) || attempt == kLiveAttempts) return found;
  }
}

// One call for both, where the server need not look for the version by tag, time or place.
absl::StatusOr<Reader::Found> Reader::Find(const ReaderConfig& config) {
  if (config.live) return OpenLive(config);
  Found found;
  if (config.version.number == 0 && config.version != rpc::VersionSpec()) {
    H5M_ASSIGN_OR_RETURN(
        found.version,
        ReaderCalls::Get().FindVersion(config.server, rpc::FindRequest(config.name, config.version),
                                       config.timeout));
    return found;
  }
  std::string bytes(rpc::BlockCache::kBlockBytes, '\0');
  v1::ReadVersionRequest request;
  request.set_name(config.name);
  request.set_version(config.version.number);
  request.set_length_bytes(bytes.size());
  const auto take = [&](const v1::ReadVersionResponse& answer) -> absl::Status {
    if (!found.version.has_server_time()) found.version = answer.version();
    H5M_RETURN_IF_ERROR(rpc::CheckAnswer(answer, found.version));
    return Place(answer.offset(), answer.data(), &bytes);
  };
  H5M_RETURN_IF_ERROR(ReaderCalls::Get().ReadVersion(config.server, request, config.timeout, take));
  bytes.resize(std::min<uint64_t>(bytes.size(), static_cast<uint64_t>(found.version.size_bytes())));
  found.first_bytes = std::move(bytes);
  return found;
}

// `to`, which is opened instead of `from`: files that it leads to are of the same open.
Reader::Found Reader::KeepOpen(Found from, Found to) {
  to.pins = std::move(from.pins);
  to.open_time = from.open_time;
  return to;
}

absl::StatusOr<Reader::Found> Reader::FindOfMembers(const ReaderConfig& config, Found found) {
  const auto find = [&config](const v1::FindVersionRequest& request) {
    return ReaderCalls::Get().FindVersion(config.server, request, config.timeout);
  };
  const std::string& server = config.server.target;
  v1::Version version = found.version;
  if (config.live) {  // The newest cut says no more than that it is one of those.
    if (!found.snapshot.of_group()) return found;
    H5M_ASSIGN_OR_RETURN(version, find(rpc::FindRequest(config.name, {})));
  }
  const std::string first = rpc::FirstMember(config.name, version);
  // Its first cut of that kind is no version yet: all members are read as the version before.
  if (config.live && first.empty()) {
    H5M_ASSIGN_OR_RETURN(Found before, Find(AtVersion(config, version.version())));
    return KeepOpen(std::move(found), std::move(before));
  }
  if (first != config.name) {
    if (!OpenGroups::Get().HasFirst(server, first)) return found;
    return absl::NotFoundError(
        absl::StrCat(config.name, " did not exist yet at the cut at which ", first, " is open"));
  }
  const bool is_named = !config.live && (config.version.number != 0 || !config.version.tag.empty());
  H5M_ASSIGN_OR_RETURN(const rpc::WholeCut cut, is_named
                                                    ? rpc::WholeCutOf(first, version, find)
                                                    : rpc::NewestWholeCut(first, version, find));
  Found whole = std::move(found);
  if (whole.version.version() != cut.members.front().version.version()) {
    H5M_ASSIGN_OR_RETURN(Found at, Find(AtVersion(config, cut.members.front().version.version())));
    whole = KeepOpen(std::move(whole), std::move(at));
  }
  whole.group = std::make_shared<const OpenGroup>(server, cut);
  OpenGroups::Get().Add(whole.group);
  return whole;
}

absl::StatusOr<std::unique_ptr<Reader>> Reader::Open(const ReaderConfig& config) {
  const int64_t member_version = OpenGroups::Get().VersionOf(config.server.target, config.name);
  Found found;
  if (member_version != 0) {
    H5M_ASSIGN_OR_RETURN(found, Find(AtVersion(config, member_version)));
  } else {
    H5M_ASSIGN_OR_RETURN(found, Find(config));
    H5M_ASSIGN_OR_RETURN(found, FindOfMembers(config, std::move(found)));
  }
  std::string identity = IdentityOf(config, found.version, found.snapshot.file_id());
  std::string first_bytes = std::move(found.first_bytes);
  const std::string file_id = found.snapshot.file_id();
  const Maps maps = found.maps;
  std::shared_ptr<const rpc::CutMap> map = std::move(found.map);
  const auto passes_agent = std::make_shared<AgentPass>();
  Ranges ranges = found.version.version() == 0 ? SnapshotRanges(config, found.snapshot, *found.pins)
                                               : VersionRanges(config, found.version, passes_agent);
  auto reader =
      std::unique_ptr<Reader>(new Reader(config, std::move(found), std::move(identity),
                                         std::move(ranges.ranges), std::move(ranges.stream)));
  reader->source_.Preload(std::move(first_bytes));
  if (map != nullptr) reader->UseMap(std::move(map));
  if (maps != Maps::kNone) reader->ShareWithHost(config, file_id, maps, passes_agent);
  H5M_RETURN_IF_ERROR(reader->Describe(reader->FindSuperblock()));
  return reader;
}

Reader::Reader(const ReaderConfig& config, Found found, std::string identity,
               rpc::RangeReader ranges, rpc::StreamReader stream)
    : version_(std::move(found.version)),
      open_time_(found.open_time),
      pins_(std::move(found.pins)),
      group_(std::move(found.group)),
      name_(config.name),
      identity_(std::move(identity)),
      writer_session_id_(found.snapshot.writer_session_id()),
      source_(identity_, static_cast<uint64_t>(version_.size_bytes()), std::move(ranges),
              ReaderCalls::Get().Cache(config.cache_bytes), std::move(stream)) {}

void Reader::ShareWithHost(const ReaderConfig& config, const std::string& file_id, Maps maps,
                           std::shared_ptr<AgentPass> passes_agent) {
  const std::string agent = ReaderCalls::Get().AgentFor(config.server);
  if (agent.empty()) return;
  rpc::CutMapQuestion question{
      config.server.target,
      config.name,
      file_id,
      version_.cut(),
      version_.version(),
      version_.server_time().seconds() * 1'000'000'000 + version_.server_time().nanos()};
  if (maps == Maps::kAsk && !MapMetadata(agent, question)) return;
  ShareBlocks(agent, std::move(question), std::move(passes_agent));
}

void Reader::UseMap(std::shared_ptr<const rpc::CutMap> map) {
  has_all_metadata_ = map->has_all();
  source_.UseKnown([map = std::move(map)](uint64_t offset,
                                          absl::Span<char> out) { return map->Read(offset, out); },
                   has_all_metadata_);
}

bool Reader::MapMetadata(const std::string& agent, const rpc::CutMapQuestion& question) {
  const auto ask = [&](absl::Time deadline) {
    return rpc::CutMap::Ask(rpc::CutMapSocket(agent), question, source_.size_bytes(), deadline);
  };
  auto map = AskToMap(ask);
  if (!map.ok()) return absl::IsNotFound(map.status());  // What is wanted is asked for.
  UseMap(*std::move(map));
  return true;
}

void Reader::ShareBlocks(std::string agent, rpc::CutMapQuestion question,
                         std::shared_ptr<AgentPass> passes_agent) {
  question.kind = rpc::CutMapQuestion::Kind::kBlocks;
  const auto ask = [agent = std::move(agent), question = std::move(question),
                    size_bytes = source_.size_bytes()](absl::Time deadline) {
    return rpc::SharedBlocks::Ask(rpc::CutMapSocket(agent), question, size_bytes, deadline);
  };
  // By the first read of raw data: a reader that looks at metadata only needs no memory. Where all
  // metadata is mapped, what HDF5 reads behind an object header is raw data. Where it is not, the
  // rest is taken where it lies there, and else comes with more of it.
  source_.UseShared(
      [ask, has_all = has_all_metadata_, has_asked = false, passes_agent = std::move(passes_agent),
       blocks = std::shared_ptr<rpc::SharedBlocks>()](uint64_t offset, absl::Span<char> out,
                                                      rpc::ReadKind kind) mutable -> uint64_t {
        const bool is_raw = kind == rpc::ReadKind::kRaw;
        if ((is_raw || has_all) && !std::exchange(has_asked, true)) {
          if (auto asked = AskToMap(ask); asked.ok()) blocks = *std::move(asked);
        }
        if (blocks == nullptr) return 0;
        const uint64_t read = is_raw    ? blocks->Read(offset, out)
                              : has_all ? blocks->ReadBeside(offset, out)
                                        : blocks->Peek(offset, out);
        passes_agent->Set(blocks->alone_until());
        return read;
      });
}

absl::Status Reader::FindSuperblock() {
  const uint64_t size = source_.size_bytes();
  for (uint64_t offset = 0; offset < size; offset = offset == 0 ? 512 : 2 * offset) {
    std::string bytes(std::min<uint64_t>(kSuperblockImageBytes, size - offset), '\0');
    H5M_RETURN_IF_ERROR(source_.Read(offset, absl::MakeSpan(bytes), rpc::ReadKind::kMetadata));
    if (LooksLikeSuperblock(bytes) == HasSuperblock::kNo) continue;
    is_swmr_ = SwmrFlagIn(bytes) == HasSwmrFlag::kYes;
    patch_offset_ = offset;
    patch_ = ClosedSuperblock(bytes, offset, size).value_or("");
    break;
  }
  return absl::OkStatus();
}

absl::Status Reader::Read(uint64_t offset, absl::Span<char> out, rpc::ReadKind kind) {
  H5M_RETURN_IF_ERROR(Describe(source_.Read(offset, out, kind)));
  const uint64_t from = std::max(offset, patch_offset_);
  const uint64_t to = std::min(offset + out.size(), patch_offset_ + patch_.size());
  if (from < to) {
    std::memcpy(out.data() + (from - offset), patch_.data() + (from - patch_offset_), to - from);
  }
  return absl::OkStatus();
}

absl::Status Reader::Describe(const absl::Status& status) const {
  if (status.ok()) return status;
  const std::string which = version_.version() != 0 ? absl::StrCat("@", version_.version())
                                                    : absl::StrCat(" at cut ", version_.cut());
  return absl::Status(status.code(), absl::StrCat("read ", name_, which, ": ", status.message()));
}

}  // namespace h5mirror::vfd
