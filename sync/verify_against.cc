#include "sync/verify_against.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/file_arg.h"
#include "cli/output/progress.h"
#include "cli/output/text.h"
#include "sync/compare.h"
#include "sync/live_compare.h"
#include "sync/local_file.h"
#include "sync/push_plan.h"

namespace h5mirror::tools {
namespace {

constexpr size_t kListedMax = 100;
// Programs open and close the file meanwhile.
constexpr int kAttemptsMax = 4;
// Beyond the wait: a cut still has to become durable.
constexpr absl::Duration kAnswerTime = absl::Minutes(6);

constexpr absl::Duration kJustWritten = absl::Seconds(10);

// A writer came or went: look again which of the two ways it is to be compared.
constexpr char kLookAgain[] = "a writer came or went";

class Checker {
 public:
  Checker(Context& context, const CheckRequest& request, rpc::Client& client, std::string name)
      : context_(context), request_(request), client_(client) {
    result_.name = std::move(name);
    result_.server = client.options().server;
  }

  absl::StatusOr<CheckResult> Run() {
    absl::Status status;
    for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
      status = Compare();
      if (!absl::IsAborted(status)) break;
    }
    if (absl::IsAborted(status)) return NeverAtRest(status);
    H5M_RETURN_IF_ERROR(status);
    Record();
    return std::move(result_);
  }

 private:
  absl::Status Compare() {
    // Before the server is asked: what was written since shows in the file's times.
    H5M_ASSIGN_OR_RETURN(const LocalFile file, LocalFile::Open(request_.local, FileLock::kNone));
    H5M_ASSIGN_OR_RETURN(const std::optional<v1::FileStatus> found,
                         FindServerFile(client_, result_.name));
    if (!found) {
      return absl::NotFoundError(StrCat(request_.local, ": the server has no file ", result_.name));
    }
    server_ = *found;
    H5M_ASSIGN_OR_RETURN(const v1::Origin here, LocalOrigin(file.path()));
    result_.size_bytes = file.size_bytes();
    result_.differing.clear();
    result_.all_listed = true;
    is_origin_ = IsSameOrigin(here, server_.origin());
    // Another file, perhaps a copy, does not change with the original.
    result_.live = server_.has_lease() && is_origin_;
    return result_.live ? CompareLive() : CompareClosed(file);
  }

  absl::Status NeverAtRest(const absl::Status& last) const {
    return absl::AbortedError(StrCat(request_.local, " and ", result_.name,
                                     " could not be compared in ", kAttemptsMax, " attempts (",
                                     ToStd(last.message()),
                                     "): try again when fewer programs open and close it (fuser ",
                                     request_.local, " names them), or while one keeps it open"));
  }

  // ---- closed ----

  absl::Status CompareClosed(const LocalFile& file) {
    H5M_ASSIGN_OR_RETURN(const v1::Version version, NewestAsVersion());
    Progress progress(context_.streams(), StrCat("comparing ", request_.local), file.size_bytes());
    LocalBlocks blocks(file.fd(), file.size_bytes(), request_.local, request_.stopped);
    Comparison comparison(client_, result_.name, version.version(), blocks, progress);
    H5M_RETURN_IF_ERROR(comparison.Coarse());
    const uint64_t size_max = std::max(file.size_bytes(), comparison.remote_size_bytes());
    H5M_RETURN_IF_ERROR(comparison.Fine([&](absl::Span<const Extent> differing) -> absl::Status {
      for (const Extent extent : differing) {
        List({extent.offset, std::min(extent.end(), size_max) - extent.offset});
      }
      return absl::OkStatus();
    }));
    H5M_RETURN_IF_ERROR(file.CheckUnchanged());
    result_.version = comparison.version();
    result_.differing_bytes = comparison.equal() ? 0 : comparison.differing_bytes();
    result_.busy_bytes = 0;
    result_.rounds = 1;
    result_.digest_bytes += comparison.digest_bytes();
    // Two writes within one tick of the filesystem's clock leave the same times.
    const absl::Time written = absl::FromUnixNanos(file.stat().mtime_ns);
    if (result_.differing_bytes > 0 && absl::Now() - written < kJustWritten && !looked_twice_) {
      looked_twice_ = true;
      return absl::AbortedError(kLookAgain);
    }
    // Of other sizes only: the longer one goes on with zeros.
    if (result_.differing_bytes > 0 && result_.differing.empty()) {
      const uint64_t size_min = std::min(file.size_bytes(), comparison.remote_size_bytes());
      List({size_min, size_max - size_min});
    }
    return absl::OkStatus();
  }

  // The newest cut need not be a version: a flush is none, and a close may have been folded.
  absl::StatusOr<v1::Version> NewestAsVersion() {
    const v1::Version& newest = server_.newest_version();
    if (newest.version() != 0 && newest.cut() == server_.last_cut()) return newest;
    absl::StatusOr<v1::Version> version = CommitVersion(absl::ZeroDuration());
    if (absl::IsDeadlineExceeded(version.status())) return absl::AbortedError(kLookAgain);
    return version;
  }

  absl::StatusOr<v1::Version> CommitVersion(absl::Duration wait) {
    v1::CommitVersionRequest commit = NewCommit(result_.name, "compared with the local file");
    commit.mutable_wait()->set_seconds(absl::ToInt64Seconds(wait));
    H5M_ASSIGN_OR_RETURN(const v1::CommitVersionResponse answer,
                         client_.CommitVersion(commit, wait + kAnswerTime));
    return answer.version();
  }

  // Extents rise, except those around the version's end. Adjacent ones are merged.
  void List(Extent extent) {
    std::vector<Extent>& listed = result_.differing;
    if (!listed.empty() && listed.back().end() == extent.offset) {
      listed.back().length += extent.length;
    } else if (listed.size() < kListedMax) {
      listed.push_back(extent);
    } else {
      result_.all_listed = false;
    }
  }

  // ---- live ----

  absl::Status CompareLive() {
    std::optional<LocalFile> open;  // that the blocks of the round in hand are read from
    const auto open_blocks = [&]() -> absl::StatusOr<LocalBlocks> {
      H5M_ASSIGN_OR_RETURN(LocalFile file, LocalFile::Open(request_.local, FileLock::kNone));
      open.emplace(std::move(file));
      return LocalBlocks(open->fd(), open->size_bytes(), request_.local, request_.stopped);
    };
    const auto await_cut = [&](absl::Time since) { return AwaitCut(since); };
    LiveComparison comparison(client_, result_.name, open_blocks, await_cut);
    H5M_RETURN_IF_ERROR(comparison.Run());
    result_.version = comparison.version();
    result_.rounds = comparison.rounds();
    result_.busy_bytes = comparison.busy_bytes();
    result_.digest_bytes += comparison.digest_bytes();
    for (const Extent extent : comparison.differing().ToVector()) List(extent);
    result_.differing_bytes = comparison.differing().byte_count();
    return absl::OkStatus();
  }

  // A cut may have been on its way when it was asked for: only the writer's clock tells, which is
  // this machine's.
  absl::StatusOr<LiveComparison::Cut> AwaitCut(absl::Time since) {
    const absl::Time deadline = since + request_.wait;
    while (true) {
      const absl::Duration left = std::max(deadline - absl::Now(), absl::Seconds(1));
      absl::StatusOr<v1::Version> version = CommitVersion(left);
      H5M_ASSIGN_OR_RETURN(const std::optional<v1::FileStatus> now,
                           FindServerFile(client_, result_.name));
      if (!now || !now->has_lease()) return absl::AbortedError(kLookAgain);
      if (version.ok() && FromProto(version->client_time()) > since) {
        return LiveComparison::Cut{*std::move(version), true};
      }
      if (!version.ok() && !absl::IsDeadlineExceeded(version.status())) return version.status();
      if (request_.stopped()) return absl::CancelledError("stopped");
      if (absl::Now() < deadline) continue;
      if (!version.ok() && now->newest_version().version() == 0) return version.status();
      return LiveComparison::Cut{version.ok() ? *version : now->newest_version(), false};
    }
  }

  // A check that could not compare all says nothing, unless it has found a difference.
  void Record() {
    if (!is_origin_) {  // It says nothing of the file that is mirrored.
      const v1::Origin& origin = server_.origin();
      result_.not_recorded = origin.path().empty() ? "the mirror is written from no file"
                                                   : StrCat("it is not the file that is mirrored, ",
                                                            origin.host(), ":", origin.path());
      return;
    }
    if (result_.busy_bytes > 0 && result_.differing_bytes == 0) {
      result_.not_recorded = "not all could be compared";
      return;
    }
    v1::RecordCheckRequest record;
    record.set_name(result_.name);
    record.set_version(result_.version.version());
    record.set_differing_bytes(static_cast<int64_t>(result_.differing_bytes));
    const absl::Status status = client_.RecordCheck(record).status();
    if (!status.ok()) result_.not_recorded = std::string(status.message());
  }

  Context& context_;
  const CheckRequest& request_;
  rpc::Client& client_;
  v1::FileStatus server_;
  bool is_origin_ = false;  // the local file is the one that the mirror is written from
  bool looked_twice_ = false;
  CheckResult result_;
};

}  // namespace

absl::StatusOr<CheckResult> VerifyAgainst(Context& context, const CheckRequest& request) {
  H5M_ASSIGN_OR_RETURN(const FileArg arg,
                       ResolveLocalArg(request.local, context.flags().client.server));
  H5M_ASSIGN_OR_RETURN(std::string name, MirrorName(context, request.name, "", arg));
  H5M_ASSIGN_OR_RETURN(rpc::Client * client,
                       context.Connect(request.mirror.server.empty() ? arg : request.mirror));
  return Checker(context, request, *client, std::move(name)).Run();
}

}  // namespace h5mirror::tools
