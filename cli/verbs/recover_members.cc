#include "cli/verbs/recover_members.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/verbs/verbs.h"
#include "rpc/version_request.h"
#include "sync/local_file.h"
#include "sync/resync.h"

namespace h5mirror::tools {
namespace {

constexpr absl::Duration kStatusTime = absl::Seconds(30);
constexpr absl::Duration kCommitTime = absl::Minutes(6);

// `name` beside the local file of the member that was named.
FileArg MirrorOfMember(const FileArg& named, const std::string& name) {
  FileArg mirror = named;
  mirror.name = name;
  mirror.local = named.local.parent_path() / std::filesystem::path(name).filename();
  return mirror;
}

// The members with their state on the server, all of it read before anything is changed.
struct Member {
  FileArg mirror;
  v1::FileStatus status;
  v1::Version version;  // of the cut

  bool has_newer_cut() const { return status.last_cut() != status.newest_version().cut(); }
  bool is_ahead() const {
    return has_newer_cut() || status.newest_version().version() != version.version();
  }
};

absl::StatusOr<std::vector<Member>> Look(const MembersToRecover& members) {
  std::vector<Member> found;
  for (const rpc::MemberVersion& each : members.cut.members) {
    Member member{MirrorOfMember(members.mirror, each.name), {}, each.version};
    v1::GetFileRequest request;
    request.set_name(each.name);
    H5M_ASSIGN_OR_RETURN(member.status, members.client.GetFile(request, kStatusTime));
    H5M_RETURN_IF_ERROR(CheckNoLease(member.mirror.local.string(), member.status));
    found.push_back(std::move(member));
  }
  return found;
}

// Makes a version of flushed bytes that are in none yet, so that they are not lost.
absl::Status Keep(const MembersToRecover& members, const Member& member) {
  v1::CommitVersionRequest commit =
      NewCommit(member.mirror.name, "the newest cut, kept by h5mirror recover");
  commit.mutable_wait();  // Nobody writes it.
  return members.client.CommitVersion(commit, kCommitTime).status();
}

absl::Status GoBack(Context& context, const MembersToRecover& members, const Member& member) {
  const std::string to = StrCat(member.mirror.name, "@", member.version.version());
  const std::string why =
      StrCat(to, " is of cut ", members.cut.number, " of all ", members.cut.members.size(),
             " members; version ", member.status.newest_version().version(), " is of one that ",
             "others lack");
  if (members.dry_run) {
    context.Note(StrCat(why, ": would go back"));
    return absl::OkStatus();
  }
  if (member.has_newer_cut()) H5M_RETURN_IF_ERROR(Keep(members, member));
  v1::RollbackVersionRequest request;
  request.set_name(member.mirror.name);
  request.set_version(member.version.version());
  request.set_comment(StrCat("recover: version ", member.version.version(), ", cut ",
                             members.cut.number, " of all members"));
  *request.mutable_writer() = LocalWriter();
  request.set_request_id(ToByteString(RandomBytes16()));
  H5M_ASSIGN_OR_RETURN(const v1::Version made, members.client.RollbackVersion(request));
  context.Note(StrCat(why, ": went back, as version ", made.version()));
  return absl::OkStatus();
}

// The digits of `name` around `at`.
struct Digits {
  size_t begin = 0;
  size_t end = 0;
};

Digits DigitsAt(std::string_view name, size_t at) {
  Digits digits{at, at};
  while (digits.begin > 0 && absl::ascii_isdigit(name[digits.begin - 1])) --digits.begin;
  while (digits.end < name.size() && absl::ascii_isdigit(name[digits.end])) ++digits.end;
  return digits;
}

// HDF5 would take them for the end of the file.
absl::Status MoveLaterAside(Context& context, const MembersToRecover& members) {
  std::vector<std::string> names;
  for (const rpc::MemberVersion& each : members.cut.members) names.push_back(each.name);
  for (size_t index = names.size();; ++index) {
    const std::string name = FamilyMemberName(names, index);
    const std::filesystem::path local = MirrorOfMember(members.mirror, name).local;
    std::error_code failed;
    if (name.empty() || !std::filesystem::exists(local, failed)) return absl::OkStatus();
    const std::string aside = NameForOldFile(local.string());
    const std::string why = StrCat(local.string(), " came after cut ", members.cut.number);
    if (members.dry_run) {
      context.Note(StrCat(why, ": would be kept as ", aside));
      continue;
    }
    std::filesystem::rename(local, aside, failed);
    if (failed)
      return absl::InternalError(StrCat(why, ", and cannot be moved: ", failed.message()));
    context.Note(StrCat(why, ": it is kept as ", aside));
  }
}

}  // namespace

std::string NameForOldFile(const std::string& local) {
  const std::string first = StrCat(
      local, kOldFileMark, absl::FormatTime("%Y%m%dT%H%M%SZ", absl::Now(), absl::UTCTimeZone()));
  std::string name = first;
  std::error_code ignored;
  for (int n = 2; std::filesystem::symlink_status(name, ignored).type() !=
                  std::filesystem::file_type::not_found;
       ++n) {
    name = StrCat(first, "-", n);
  }
  return name;
}

std::string FamilyMemberName(const std::vector<std::string>& names, size_t index) {
  if (names.size() < 2) return "";
  const std::string& first = names[0];
  const size_t differs =
      std::mismatch(first.begin(), first.end(), names[1].begin(), names[1].end()).first -
      first.begin();
  const Digits digits = DigitsAt(first, differs);
  const std::string_view number =
      std::string_view(first).substr(digits.begin, digits.end - digits.begin);
  uint64_t begin = 0;
  if (!absl::SimpleAtoi(std::string(number), &begin)) return "";
  const bool is_padded = number.size() > 1 && number.front() == '0';
  const auto name_of = [&](size_t at) {
    const std::string text = std::to_string(begin + at);
    const size_t zeros = is_padded && text.size() < number.size() ? number.size() - text.size() : 0;
    return StrCat(first.substr(0, digits.begin), std::string(zeros, '0'), text,
                  first.substr(digits.end));
  };
  for (size_t at = 1; at < names.size(); ++at) {
    if (names[at] != name_of(at)) return "";
  }
  return name_of(index);
}

absl::StatusOr<std::optional<rpc::WholeCut>> FindMembers(rpc::Client& client,
                                                         const std::string& name) {
  const auto find = [&client](const v1::FindVersionRequest& request) {
    return client.FindVersion(request);
  };
  absl::StatusOr<v1::Version> version = find(rpc::FindRequest(name, {}));
  // It has no version yet, or the server is an older one.
  if (absl::IsNotFound(version.status()) || absl::IsUnimplemented(version.status())) {
    return std::nullopt;
  }
  H5M_RETURN_IF_ERROR(version.status());
  const std::string first = rpc::FirstMember(name, *version);
  if (first.empty()) return std::nullopt;
  if (first != name) {
    version = find(rpc::FindRequest(first, {}));
    H5M_RETURN_IF_ERROR(version.status());
  }
  H5M_ASSIGN_OR_RETURN(rpc::WholeCut cut, rpc::NewestWholeCut(first, *std::move(version), find));
  return cut;
}

absl::StatusOr<std::vector<FileArg>> GoBackToCut(Context& context,
                                                 const MembersToRecover& members) {
  H5M_ASSIGN_OR_RETURN(const std::vector<Member> found, Look(members));
  std::vector<FileArg> mirrors;
  for (const Member& member : found) {
    if (member.is_ahead()) H5M_RETURN_IF_ERROR(GoBack(context, members, member));
    mirrors.push_back(member.mirror);
  }
  H5M_RETURN_IF_ERROR(MoveLaterAside(context, members));
  return mirrors;
}

}  // namespace h5mirror::tools
