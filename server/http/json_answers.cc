#include "server/http/json_answers.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/glob.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/store.h"
#include "server/calls/page_budget.h"
#include "server/http/event_stream.h"
#include "server/http/file_stream.h"
#include "server/http/file_target.h"

namespace h5mirror::server {
namespace {

constexpr std::string_view kVersionsSuffix = "/versions";
constexpr std::string_view kEventsSuffix = "/events";
// Small, because events are short and a thousand idle streams may hold such a buffer.
constexpr uint32_t kEventBlockBytes = 4 << 10;
// Most rows of a page, with any page_size. A row of JSON has some 1,000 bytes beside its texts, and
// as many more for the zeros of its recent_writes. A byte of a text may be written as six.
constexpr int kRowsMax = 1000;
constexpr uint64_t kPageJsonBytes = 6 * kPageBytesMax + 2000 * kRowsMax;
// JSON that is longer is sent in parts.
constexpr size_t kWholeTextMax = 16 << 10;

absl::StatusOr<int32_t> ParsePageSize(const std::string& text) {
  int32_t size = 0;
  if (absl::SimpleAtoi(text, &size) && size > 0) return std::min(size, kRowsMax);
  return absl::InvalidArgumentError(
      StrCat("page_size \"", text, "\" must be a whole number, 1 or more"));
}

absl::Status UnknownKey(const std::string& key, std::string_view known) {
  return absl::InvalidArgumentError(StrCat("unknown query \"", key, "\"; there are ", known));
}

absl::StatusOr<bool> ParseBool(const std::string& key, const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  return absl::InvalidArgumentError(StrCat(key, " \"", text, "\" must be true or false"));
}

struct ListQuery {
  v1::ListFilesRequest request;
  std::string match;  // a glob; empty: all
};

absl::StatusOr<ListQuery> ParseListQuery(const HttpRequest& request) {
  ListQuery query;
  query.request.set_page_size(kRowsMax);
  for (const auto& [key, value] : request.query) {
    if (key == "directory") {
      query.request.set_directory(value);
    } else if (key == "page_token") {
      query.request.set_page_token(value);
    } else if (key == "page_size") {
      H5M_ASSIGN_OR_RETURN(const int32_t size, ParsePageSize(value));
      query.request.set_page_size(size);
    } else if (key == "match") {
      H5M_RETURN_IF_ERROR(CheckGlob(value));
      query.match = value;
    } else if (key == "state") {
      v1::MirrorState state;
      if (!v1::MirrorState_Parse(StrCat("MIRROR_STATE_", value), &state)) {
        return absl::InvalidArgumentError(
            StrCat("state \"", value,
                   "\" is not one of CONNECTED, DEGRADED, RESYNCING, IN_SYNC, "
                   "DIVERGED"));
      }
      query.request.add_states(state);
    } else if (key == "forks") {
      H5M_ASSIGN_OR_RETURN(const bool is_set, ParseBool(key, value));
      query.request.set_forks_only(is_set);
    } else if (key == "details") {
      H5M_ASSIGN_OR_RETURN(const bool is_set, ParseBool(key, value));
      query.request.set_details(is_set);
    } else if (key != kSentKey) {
      return UnknownKey(key, "directory, match, state, forks, details, page_size and page_token");
    }
  }
  return query;
}

absl::StatusOr<v1::ListVersionsRequest> ParseVersionsQuery(const HttpRequest& request) {
  v1::ListVersionsRequest query;
  query.set_page_size(kRowsMax);
  for (const auto& [key, value] : request.query) {
    if (key == "page_token") {
      query.set_page_token(value);
    } else if (key == "page_size") {
      H5M_ASSIGN_OR_RETURN(const int32_t size, ParsePageSize(value));
      query.set_page_size(size);
    } else if (key != kSentKey) {
      return UnknownKey(key, "page_size and page_token");
    }
  }
  return query;
}

HttpAnswer JsonAnswer(std::string json) {
  HttpAnswer answer;
  answer.text = std::move(json);
  answer.headers = {{"Content-Type", "application/json"},
                    {"Cache-Control", "private, no-store"},
                    {"X-Content-Type-Options", "nosniff"}};
  return answer;
}

bool LooksInto(const v1::ListFilesRequest& query) {
  return query.details() || query.forks_only() || query.states_size() > 0;
}

// The name before `suffix`, which is written as it stands.
absl::StatusOr<std::string> NameIn(std::string_view path, std::string_view suffix) {
  path.remove_suffix(suffix.size());
  H5M_ASSIGN_OR_RETURN(std::string name, DecodePercent(path));
  H5M_RETURN_IF_ERROR(store::CheckName(name));
  return name;
}

}  // namespace

HttpAnswer JsonAnswers::Run(const HttpRequest& request, const char* method, const Needs& needs,
                            Size size, Body body) {
  const absl::Duration start = environment_.clock.Monotonic();
  const CallUse use = size == Size::kPage ? CallUse::kRead : CallUse::kThread;
  const uint64_t cost = size == Size::kPage ? ReadCost(0) + kPageJsonBytes : 1;
  absl::StatusOr<Callers::Ticket> ticket =
      AdmitCall(environment_, request.source, method, needs, use, cost);
  if (!ticket.ok()) {
    NoteRefused(environment_, *request.source, method, start, ticket.status());
    return others_.ErrorOrRedirect(request, ticket.status());
  }
  absl::StatusOr<std::string> json = body(ticket->principal());
  // Between the check and the look the name may have got another file, of another owner.
  if (absl::Status may = CheckAgain(environment_, ticket->principal(), needs); !may.ok()) {
    json = std::move(may);
  }
  if (size == Size::kPage && json.ok() && json->size() > kWholeTextMax && !request.is_head) {
    HttpAnswer answer = JsonAnswer("");
    answer.stream_bytes = json->size();
    answer.stream = std::make_unique<TextStream>(*std::move(json));
    answer.ticket = *std::move(ticket);
    answer.method = method;
    return answer;
  }
  HttpAnswer answer =
      json.ok() ? JsonAnswer(*std::move(json)) : others_.ErrorOrRedirect(request, json.status());
  ticket->Done(json.status(), {}, answer.status);
  NoteCallDone(environment_, *request.source, method, start, json.status());
  return answer;
}

HttpAnswer JsonAnswers::List(const HttpRequest& request) {
  const absl::StatusOr<ListQuery> query = ParseListQuery(request);
  if (!query.ok()) return ErrorAnswer(query.status());
  return Run(request, "HttpListFiles", AnyFile(Right::kRead), Size::kPage,
             [&](const Principal& principal) -> absl::StatusOr<std::string> {
               H5M_ASSIGN_OR_RETURN(v1::ListFilesResponse response,
                                    ListAll(request, principal, query->request));
               if (!query->match.empty()) {
                 v1::ListFilesResponse matching;
                 matching.set_next_page_token(response.next_page_token());
                 for (const v1::FileSummary& file : response.files()) {
                   if (GlobMatches(query->match, file.name())) *matching.add_files() = file;
                 }
                 response = std::move(matching);
               }
               return ToJson(response, /*is_indented=*/true);
             });
}

absl::StatusOr<v1::ListFilesResponse> JsonAnswers::ListAll(const HttpRequest& request,
                                                           const Principal& principal,
                                                           const v1::ListFilesRequest& query) {
  H5M_ASSIGN_OR_RETURN(std::vector<std::string> cells, others_.CellsBelow(query.directory()));
  // Callers without rights there must not see the cells' names.
  std::erase_if(cells, [&](const std::string& cell) {
    return !environment_.authenticator.MayBelow(principal, cell);
  });
  if (!cells.empty()) return ListCells(request, principal, query, cells);
  v1::ListFilesResponse response;
  H5M_RETURN_IF_ERROR(files_.List(request.is_cancelled, principal, query, response));
  return response;
}

absl::StatusOr<v1::ListFilesResponse> JsonAnswers::ListCells(
    const HttpRequest& request, const Principal& principal, const v1::ListFilesRequest& query,
    const std::vector<std::string>& cells) {
  v1::ListFilesResponse all;
  ListPlace place = PlaceOf(cells, query.page_token());
  const size_t first = place.cell;
  for (; place.cell < cells.size(); place = {place.cell + 1}) {
    const std::string& cell = cells[place.cell];
    v1::ListFilesRequest part = query;
    part.set_directory(cell);
    part.set_page_token(place.after);
    part.set_page_size(query.page_size() - all.files_size());
    v1::ListFilesResponse files;
    const absl::Status listed = files_.List(request.is_cancelled, principal, part, files);
    // The caller may read none of it.
    if (absl::IsNotFound(listed)) continue;
    if (!listed.ok() && place.cell == first) return listed;
    // The rows found so far go out, and the next page begins with this cell. Otherwise two servers
    // with an empty cell each would redirect the caller in a circle.
    const bool fits =
        all.files_size() == 0 || all.ByteSizeLong() + files.ByteSizeLong() <= kPageBytesMax;
    if (!listed.ok() || !fits) {
      all.set_next_page_token(BeginOf(cell));
      return all;
    }
    for (v1::FileSummary& file : *files.mutable_files()) *all.add_files() = std::move(file);
    all.set_next_page_token(files.next_page_token());
    if (!all.next_page_token().empty()) return all;
    const bool is_last = place.cell + 1 == cells.size();
    // Looks into files take long: one cell a page.
    const bool is_full = all.files_size() >= query.page_size() || LooksInto(query);
    if (is_full && !is_last) {
      all.set_next_page_token(BeginOf(cells[place.cell + 1]));
      return all;
    }
  }
  return all;
}

HttpAnswer JsonAnswers::OfFile(const HttpRequest& request, std::string_view path) {
  const std::string_view suffix = path.ends_with(kVersionsSuffix) ? kVersionsSuffix
                                  : path.ends_with(kEventsSuffix) ? kEventsSuffix
                                                                  : std::string_view();
  const absl::StatusOr<std::string> name = NameIn(path, suffix);
  if (!name.ok()) return ErrorAnswer(name.status());
  if (suffix == kVersionsSuffix) return Versions(request, *name);
  if (suffix == kEventsSuffix) return Events(request, *name);
  return Run(request, "HttpGetStatus", OneFile(Right::kRead, *name), Size::kRow,
             [&](const Principal&) -> absl::StatusOr<std::string> {
               H5M_ASSIGN_OR_RETURN(const v1::FileStatus status, files_.GetStatus(*name));
               return ToJson(status, /*is_indented=*/true);
             });
}

HttpAnswer JsonAnswers::Versions(const HttpRequest& request, const std::string& name) {
  absl::StatusOr<v1::ListVersionsRequest> query = ParseVersionsQuery(request);
  if (!query.ok()) return ErrorAnswer(query.status());
  query->set_name(name);
  return Run(request, "HttpListVersions", OneFile(Right::kRead, name), Size::kPage,
             [&](const Principal&) -> absl::StatusOr<std::string> {
               v1::ListVersionsResponse response;
               H5M_RETURN_IF_ERROR(versions_.List(*query, response));
               return ToJson(response, /*is_indented=*/true);
             });
}

HttpAnswer JsonAnswers::Events(const HttpRequest& request, const std::string& name) {
  constexpr const char* kMethod = "HttpFollowEvents";
  const absl::Duration start = environment_.clock.Monotonic();
  const Needs needs = OneFile(Right::kRead, name);
  absl::StatusOr<Callers::Ticket> ticket =
      AdmitCall(environment_, request.source, kMethod, needs, CallUse::kWait);
  if (!ticket.ok()) {
    NoteRefused(environment_, *request.source, kMethod, start, ticket.status());
    return others_.ErrorOrRedirect(request, ticket.status());
  }
  absl::Status there = files_.GetStatus(name).status();
  // As in Run().
  if (absl::Status may = CheckAgain(environment_, ticket->principal(), needs); !may.ok()) {
    there = std::move(may);
  }
  // The stream begins, and says nothing until the file's next server is known.
  if (others_.IsOnItsWay(there)) there = absl::OkStatus();
  HttpAnswer answer = there.ok() ? HttpAnswer() : others_.ErrorOrRedirect(request, there);
  if (!there.ok() || request.is_head) {
    ticket->Done(there, {}, answer.status);
    NoteCallDone(environment_, *request.source, kMethod, start, there);
  }
  if (!there.ok()) return answer;
  answer.headers = {{"Content-Type", "text/event-stream"},
                    {"Cache-Control", "private, no-store"},
                    {"X-Content-Type-Options", "nosniff"}};
  answer.is_endless = request.is_head;
  if (request.is_head) return answer;
  ticket->Began();
  const auto after = ParseEventPlace(request.last_event_id.value_or(""));
  answer.stream = std::make_unique<EventStream>(
      files_, versions_, *environment_.cuts, environment_.clock, name, after,
      [&authenticator = environment_.authenticator, principal = ticket->principal(), needs] {
        return authenticator.asks_owners() ? authenticator.StillMay(principal, needs)
                                           : absl::OkStatus();
      });
  answer.block_bytes = kEventBlockBytes;
  answer.ticket = *std::move(ticket);
  answer.method = kMethod;
  return answer;
}

}  // namespace h5mirror::server
