#include "server/http/file_answers.h"

#include <string.h>

#include <utility>
#include <vector>

#include "base/hex.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/http/byte_ranges.h"
#include "server/http/file_stream.h"

namespace h5mirror::server {
namespace {

constexpr char kMethod[] = "HttpGetFile";
// A request may name many tags; each is a look into the store.
constexpr size_t kTagsTried = 4;
// The library's buffer and the part that is being sent.
constexpr uint64_t kHeldBytes = 128 << 10;

uint64_t RandomNumber() {
  const Bytes16 random = RandomBytes16();
  uint64_t number = 0;
  memcpy(&number, random.data(), sizeof(number));
  return number;
}

// If-Range is a condition of Range only (RFC 9110, 13.1.5), and a HEAD has no ranges.
std::vector<EntityTag> TagsOf(const HttpRequest& request) {
  const Conditions& conditions = request.conditions;
  std::vector<const std::optional<std::string>*> headers = {&conditions.if_match};
  if (request.range && !request.is_head) headers.push_back(&conditions.if_range);
  std::vector<EntityTag> tags;
  for (const auto* header : headers) {
    if (!header->has_value()) continue;
    for (const std::string& text : SplitEntityTags(**header)) {
      const std::optional<EntityTag> tag = ParseEntityTag(text);
      if (tag && tags.size() < kTagsTried) tags.push_back(*tag);
    }
  }
  return tags;
}

HttpAnswer NoSuchRange(uint64_t size) {
  HttpAnswer refused = ErrorAnswer(
      416,
      absl::OutOfRangeError(StrCat("no such range: the file has ", size,
                                   " bytes, and a request may have ", kByteRangesMax, " ranges")));
  refused.headers.emplace_back("Content-Range", StrCat("bytes */", size));
  return refused;
}

// The pieces of the body. Sets the status and the headers that tell them. Not for kNone.
std::vector<FileStream::Piece> TakePieces(const ByteRanges& wanted, uint64_t size,
                                          HttpAnswer& answer) {
  const bool is_part = wanted.kind == ByteRanges::Kind::kSome;
  if (is_part) answer.status = 206;
  if (is_part && wanted.ranges.size() > 1) {
    const std::string boundary = HexOf(RandomBytes16());
    answer.headers.emplace_back("Content-Type",
                                StrCat("multipart/byteranges; boundary=", boundary));
    return MultipartPieces(wanted.ranges, size, boundary);
  }
  const Extent range = is_part ? wanted.ranges.front() : Extent{0, size};
  if (is_part) answer.headers.emplace_back("Content-Range", ContentRange(range, size));
  answer.headers.emplace_back("Content-Type", kFileType);
  std::vector<FileStream::Piece> pieces;
  pieces.push_back({"", range});
  return pieces;
}

}  // namespace

FileAnswers::FileAnswers(const ServiceEnvironment& environment, VersionsService& versions,
                         SnapshotsService& snapshots, Ownership* cells)
    : environment_(environment),
      versions_(versions),
      snapshots_(snapshots),
      others_(cells),
      start_id_(RandomNumber()),
      reader_id_(ToByteString(RandomBytes16())) {}

absl::StatusOr<FileAnswers::Opened> FileAnswers::OpenedOf(
    absl::StatusOr<std::unique_ptr<FileBytes>> bytes) const {
  H5M_RETURN_IF_ERROR(bytes.status());
  Opened opened;
  opened.bytes = *std::move(bytes);
  opened.info = opened.bytes->bytes_info();
  const FileBytesInfo& info = opened.info;
  opened.tag = info.version != 0
                   ? EntityTag{EntityTag::Kind::kVersion, info.version, info.file_id, 0}
                   : EntityTag{EntityTag::Kind::kCut, info.cut, info.file_id, start_id_};
  return opened;
}

absl::StatusOr<std::optional<FileAnswers::Opened>> FileAnswers::OpenTagged(const std::string& name,
                                                                           const EntityTag& tag) {
  const bool is_cut = tag.kind == EntityTag::Kind::kCut;
  if (is_cut && tag.start_id != start_id_) return std::optional<Opened>();
  rpc::VersionSpec spec;
  spec.number = tag.number;
  auto opened = OpenedOf(
      is_cut ? snapshots_.OpenBytes(name, tag.number, ToByteString(tag.file_id), reader_id_)
             : versions_.OpenBytes(name, spec));
  const bool is_gone = absl::IsNotFound(opened.status()) || absl::IsOutOfRange(opened.status());
  if (is_gone) return std::optional<Opened>();
  H5M_RETURN_IF_ERROR(opened.status());
  if (opened->info.file_id != tag.file_id) return std::optional<Opened>();
  opened->tag = tag;  // A cut may have become a version since.
  return std::optional<Opened>(*std::move(opened));
}

absl::StatusOr<FileAnswers::Opened> FileAnswers::Open(const FileTarget& target,
                                                      const HttpRequest& request) {
  if (target.version) return OpenedOf(versions_.OpenBytes(target.name, *target.version));
  for (const EntityTag& tag : TagsOf(request)) {
    H5M_ASSIGN_OR_RETURN(std::optional<Opened> opened, OpenTagged(target.name, tag));
    if (opened) return *std::move(opened);
  }
  return OpenedOf(snapshots_.OpenBytes(target.name, 0, "", reader_id_));
}

HttpAnswer FileAnswers::Answer(const HttpRequest& request, std::string_view path) {
  const absl::Duration start = environment_.clock.Monotonic();
  const absl::StatusOr<FileTarget> target = ParseFileTarget(path);
  if (!target.ok()) return ErrorAnswer(target.status());
  const Needs needs =
      OneFile(Right::kRead, target->name, target->version ? target->version->number : int64_t{0});
  absl::StatusOr<Callers::Ticket> ticket = AdmitCall(environment_, request.source, kMethod, needs,
                                                     CallUse::kRead, ReadCost(0) + kHeldBytes);
  if (!ticket.ok()) {
    NoteRefused(environment_, *request.source, kMethod, start, ticket.status());
    return others_.ErrorOrRedirect(request, ticket.status());
  }
  absl::StatusOr<Opened> opened = Open(*target, request);
  // The open may have waited for a move, and found the moved file. An error tells of it, too.
  if (absl::Status may = CheckAgain(environment_, ticket->principal(), needs); !may.ok()) {
    opened = std::move(may);
  }
  HttpAnswer answer = opened.ok() ? AnswerOpened(request, *std::move(opened))
                                  : others_.ErrorOrRedirect(request, opened.status());
  if (answer.stream != nullptr) {
    answer.ticket = *std::move(ticket);
    answer.method = kMethod;
    return answer;
  }
  ticket->Done(opened.status(), {}, answer.status);
  NoteCallDone(environment_, *request.source, kMethod, start, opened.status());
  return answer;
}

HttpAnswer FileAnswers::HeadersOf(const Opened& opened) const {
  HttpAnswer answer;
  answer.headers = {{"ETag", Format(opened.tag)},
                    {"Cache-Control", "private, no-cache"},
                    {"Vary", "Authorization"},
                    {"Accept-Ranges", "bytes"},
                    {"X-Content-Type-Options", "nosniff"},
                    {"H5mirror-Cut", StrCat(opened.info.cut)}};
  if (opened.info.version != 0) {
    answer.headers.emplace_back("H5mirror-Version", StrCat(opened.info.version));
  }
  // Only if the time lies in an earlier second: a later state within the same second would have the
  // same time.
  const absl::Time now = environment_.clock.Now();
  if (absl::ToUnixSeconds(now) > absl::ToUnixSeconds(opened.info.time)) {
    answer.headers.emplace_back("Last-Modified", FormatHttpTime(opened.info.time));
  }
  return answer;
}

HttpAnswer FileAnswers::AnswerOpened(const HttpRequest& request, Opened opened) const {
  const uint64_t size = opened.info.size_bytes;
  HttpAnswer answer = HeadersOf(opened);
  switch (Decide(request.conditions, opened.tag, opened.info.time)) {
    case Verdict::kNotModified:
      answer.status = 304;
      answer.stream_bytes = size;  // Content-Length is that of a 200, or is missing.
      return answer;
    case Verdict::kFailed:
      return ErrorAnswer(412, absl::FailedPreconditionError(
                                  "the file has changed, or the cut of that ETag is not held any "
                                  "more: read it anew"));
    case Verdict::kProceed:
      break;
  }
  ByteRanges wanted;
  if (!request.is_head && request.range && CountsRange(request.conditions, opened.tag)) {
    wanted = ParseByteRanges(*request.range, size);
  }
  if (wanted.kind == ByteRanges::Kind::kNone) return NoSuchRange(size);
  std::vector<FileStream::Piece> pieces = TakePieces(wanted, size, answer);
  auto stream = std::make_unique<FileStream>(std::move(opened.bytes), std::move(pieces));
  answer.stream_bytes = stream->size_bytes();
  // An empty body needs no worker.
  if (*answer.stream_bytes > 0 && !request.is_head) answer.stream = std::move(stream);
  return answer;
}

}  // namespace h5mirror::server
