// h5mirror verify --against: a local file and its mirror, once or on a schedule.
#include <algorithm>
#include <vector>

#include "absl/time/clock.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/exit_code.h"
#include "cli/context/file_arg.h"
#include "cli/process/stop_signal.h"
#include "cli/verbs/verb_verify.h"
#include "sync/verify_against.h"

namespace h5mirror::tools {
namespace {

constexpr absl::Duration kEveryMin = absl::Seconds(1);
// A check that failed, say for want of the server, is tried again sooner than the next is due.
constexpr absl::Duration kRetryMax = absl::Minutes(10);

Json ResultToJson(const CheckRequest& request, const CheckResult& result, double seconds) {
  Json ranges = Json::array();
  for (const Extent extent : result.differing) {
    ranges.push_back(Json{{"offset", extent.offset}, {"length", extent.length}});
  }
  return Json{{"file", result.name},
              {"server", result.server},
              {"local", request.local},
              {"live", result.live},
              {"version", result.version.version()},
              {"equal", result.differing_bytes == 0 && result.busy_bytes == 0},
              {"differing_bytes", result.differing_bytes},
              {"differing", ranges},
              {"all_listed", result.all_listed},
              {"busy_bytes", result.busy_bytes},
              {"rounds", result.rounds},
              {"digest_bytes", result.digest_bytes},
              {"recorded", result.not_recorded.empty()},
              {"seconds", seconds}};
}

std::string ResultToText(const CheckRequest& request, const CheckResult& result, double seconds) {
  const std::string what =
      StrCat(request.local, " and ", result.name, "@", result.version.version());
  const std::string cost =
      StrCat(" (", HumanBytes(result.size_bytes), " compared by ", HumanBytes(result.digest_bytes),
             " of digests, ", HumanDuration(absl::Seconds(seconds)), ")");
  const std::string busy =
      result.busy_bytes == 0
          ? ""
          : StrCat(
                "; ", HumanBytes(result.busy_bytes),
                " could not be compared, they are being written: try again, or once it is closed");
  if (result.differing_bytes == 0) {
    return StrCat(what, busy.empty() ? " are equal" : " are equal as far as they could be compared",
                  busy, cost);
  }
  return StrCat(what, " differ in ", HumanBytes(result.differing_bytes), busy, cost,
                "; h5mirror resync --from local|remote ", request.local, " makes them equal");
}

void Print(Context& context, const CheckRequest& request, const CheckResult& result, double seconds,
           bool many) {
  if (context.json()) {
    const Json json = ResultToJson(request, result, seconds);
    if (!many) return context.Print(json);
    context.streams().out << DumpLine(json) << "\n" << std::flush;
    return;
  }
  if (!result.differing.empty()) {
    Table table({{"OFFSET", Align::kRight}, {"LENGTH", Align::kRight}});
    for (const Extent extent : result.differing) {
      table.AddRow({StrCat(extent.offset), StrCat(extent.length)});
    }
    context.Print(table);
    if (!result.all_listed) context.Say("...");
  }
  context.Say(ResultToText(request, result, seconds));
  context.streams().out << std::flush;
}

int CodeOf(const CheckResult& result) {
  if (result.differing_bytes > 0) return kExitDataLoss;
  return result.busy_bytes > 0 ? kExitFailure : kExitOk;
}

absl::StatusOr<int> CheckOnce(Context& context, const CheckRequest& request, bool many) {
  const absl::Time start = absl::Now();
  H5M_ASSIGN_OR_RETURN(const CheckResult result, VerifyAgainst(context, request));
  Print(context, request, result, absl::ToDoubleSeconds(absl::Now() - start), many);
  if (!result.not_recorded.empty() && result.busy_bytes == 0) {
    context.Note(StrCat("the server has no note of this check: ", result.not_recorded));
  }
  return CodeOf(result);
}

// Each mirror in turn. A difference counts for more than a server that is away, in the exit code.
absl::StatusOr<int> CheckAll(Context& context, const std::vector<CheckRequest>& requests,
                             bool many) {
  if (requests.size() == 1) return CheckOnce(context, requests[0], many);
  int code = kExitOk;
  for (const CheckRequest& request : requests) {
    if (!context.json()) context.Say(StrCat(request.mirror.server, ":"));
    const absl::StatusOr<int> one = CheckOnce(context, request, /*many=*/true);
    if (!one.ok()) context.Note(StrCat(request.mirror.server, ": ", one.status().message()));
    const int one_code = one.ok() ? *one : ExitCodeFor(one.status());
    if (code == kExitOk || one_code == kExitDataLoss) code = one_code;
    if (request.stopped()) break;
  }
  return code;
}

// Ends, with 0, when the program is told to.
absl::StatusOr<int> CheckEvery(Context& context, std::vector<CheckRequest> requests,
                               absl::Duration every) {
  StopSignal stop;
  for (CheckRequest& request : requests) request.stopped = [&stop] { return stop.came(); };
  while (true) {
    const absl::Time start = absl::Now();
    const absl::StatusOr<int> code = CheckAll(context, requests, /*many=*/true);
    if (stop.came()) return kExitOk;
    if (!code.ok()) context.Note(ToStd(code.status().message()));
    // Of several mirrors one may have failed.
    const bool failed =
        !code.ok() || (requests.size() > 1 && *code != kExitOk && *code != kExitDataLoss);
    const absl::Time next = start + (failed ? std::min(every, kRetryMax) : every);
    if (stop.Wait(next - absl::Now())) return kExitOk;
  }
}

}  // namespace

absl::StatusOr<int> RunVerifyAgainst(Context& context, const AgainstOptions& options) {
  CheckRequest request;
  request.local = options.local;
  request.wait = absl::Seconds(options.wait_seconds);
  if (!options.file.empty()) {
    H5M_ASSIGN_OR_RETURN(const FileArg file,
                         ResolveFileArg(options.file, context.flags().client.server));
    request.name = file.name;
    request.mirror = file;
  }
  std::vector<CheckRequest> requests;
  if (options.file.empty()) {
    H5M_ASSIGN_OR_RETURN(const std::vector<FileArg> mirrors,
                         ResolveMirrorsOf(options.local, context.flags().client.server));
    for (const FileArg& mirror : mirrors) {
      request.name = mirror.name;
      request.mirror = mirror;
      requests.push_back(request);
    }
  } else {
    requests.push_back(request);
  }
  if (options.every.empty()) return CheckAll(context, requests, /*many=*/false);
  const absl::StatusOr<absl::Duration> every = ParseLongDuration(options.every);
  if (!every.ok() || *every < kEveryMin) {
    return absl::InvalidArgumentError(
        StrCat("--every ", options.every, ": write a time of at least 1s, as 24h or 7d"));
  }
  return CheckEvery(context, std::move(requests), *every);
}

}  // namespace h5mirror::tools
