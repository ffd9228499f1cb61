#include "h5diff/diff_ends.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/file_at_version.h"
#include "cli/output/progress.h"
#include "cli/process/io.h"
#include "h5diff/changed_ranges.h"

namespace h5mirror::tools {
namespace {

absl::StatusOr<DiffEnd> FindVersionEnd(Context& context, const FileAtVersion& wanted) {
  DiffEnd end;
  H5M_ASSIGN_OR_RETURN(end.file, ResolveFileArg(wanted.file, context.flags().client.server));
  H5M_ASSIGN_OR_RETURN(end.client, context.Connect(end.file));
  H5M_ASSIGN_OR_RETURN(const int64_t number,
                       ResolveVersion(context, *end.client, end.file.name, wanted.version));
  end.version.set_version(number);
  return end;
}

// A version where there is one in `text`; else a local file.
absl::StatusOr<DiffEnd> FindEnd(Context& context, const std::string& text) {
  const auto wanted = ParseFileAtVersion(text, context.streams().zone);
  if (wanted.ok()) return FindVersionEnd(context, *wanted);
  std::error_code error;
  if (!std::filesystem::is_regular_file(text, error)) return wanted.status();
  H5M_ASSIGN_OR_RETURN(LocalFile local, LocalFile::Open(text, FileLock::kNone));
  DiffEnd end;
  end.local = std::make_shared<const LocalFile>(std::move(local));
  return end;
}

VersionPages::OneSide SideOfLocal(const std::shared_ptr<const LocalFile>& local) {
  return {local->path().string(), local->size_bytes(),
          [local](uint64_t offset, absl::Span<char> out) -> absl::Status {
            H5M_ASSIGN_OR_RETURN(const size_t got, PreadUpTo(local->fd(), offset, out.data(),
                                                             out.size(), local->path().string()));
            if (got == out.size()) return absl::OkStatus();
            return absl::AbortedError(
                StrCat(local->path().string(), ": became shorter while it was read; try again"));
          }};
}

absl::StatusOr<VersionPages::OneSide> SideOf(DiffEnd& end) {
  if (end.local != nullptr) return SideOfLocal(end.local);
  v1::GetVersionRequest request;
  request.set_name(end.file.name);
  request.set_version(end.version.version());
  H5M_ASSIGN_OR_RETURN(end.version, end.client->GetVersion(request));
  return SideOfVersion(*end.client, end.file.name, end.version);
}

Json VersionOrNull(const DiffEnd& end) {
  return end.local == nullptr ? VersionToJson(end.version) : Json(nullptr);
}

Json NameOrNull(const DiffEnd& end) {
  return end.local == nullptr ? Json(end.file.name) : Json(nullptr);
}

}  // namespace

absl::StatusOr<DiffEnds> FindDiffEnds(Context& context, const DiffOptions& options) {
  DiffEnds ends;
  H5M_ASSIGN_OR_RETURN(ends.one, FindEnd(context, options.old_version));
  if (options.new_version.empty()) {
    if (ends.one.local != nullptr) {
      return absl::InvalidArgumentError(
          StrCat(options.old_version, " names no version: write FILE@VERSION; or name, as the ",
                 "second argument, the version or file to compare this local file with"));
    }
    ends.other = ends.one;
    H5M_ASSIGN_OR_RETURN(const int64_t newest, ResolveVersion(context, *ends.one.client,
                                                              ends.one.file.name, VersionSpec()));
    ends.other.version.set_version(newest);
    return ends;
  }
  H5M_ASSIGN_OR_RETURN(ends.other, FindEnd(context, options.new_version));
  ends.one_file = ends.one.local == nullptr && ends.other.local == nullptr &&
                  ends.one.file.name == ends.other.file.name &&
                  ends.one.client == ends.other.client;
  return ends;
}

absl::StatusOr<std::unique_ptr<VersionPages>> OpenPages(Context& context, DiffEnds& ends) {
  DiffEnd &one = ends.one, &other = ends.other;
  if (ends.one_file) {
    Progress progress(context.streams(), StrCat("look for changes in ", one.file.name), 0);
    H5M_ASSIGN_OR_RETURN(const ChangedRanges changes,
                         FindChangedRanges(*one.client, one.file.name, one.version.version(),
                                           other.version.version(),
                                           [&](uint64_t bytes) { progress.Update(bytes); }));
    one.version = changes.old_version;
    other.version = changes.new_version;
    return std::make_unique<VersionPages>(
        *one.client,
        VersionPages::Options{.file = one.file.name,
                              .versions = {one.version, other.version},
                              .page_size_bytes = changes.page_size_bytes},
        changes.changed);
  }
  H5M_ASSIGN_OR_RETURN(VersionPages::OneSide one_side, SideOf(one));
  H5M_ASSIGN_OR_RETURN(VersionPages::OneSide other_side, SideOf(other));
  ExtentSet everything;
  everything.Add({0, std::max(one_side.size_bytes, other_side.size_bytes)});
  return std::make_unique<VersionPages>(
      std::array<VersionPages::OneSide, 2>{std::move(one_side), std::move(other_side)},
      VersionPages::kPageBytes, VersionPages::kCacheBytes, std::move(everything));
}

Json EndsToJson(const DiffEnds& ends) {
  Json json{{"file", NameOrNull(ends.one)}};
  if (!ends.one_file) json["new_file"] = NameOrNull(ends.other);
  json["old"] = VersionOrNull(ends.one);
  json["new"] = VersionOrNull(ends.other);
  if (ends.one.local != nullptr) json["old_local"] = ends.one.local->path().string();
  if (ends.other.local != nullptr) json["new_local"] = ends.other.local->path().string();
  return json;
}

absl::Status CheckUnchanged(const DiffEnds& ends) {
  for (const DiffEnd* end : {&ends.one, &ends.other}) {
    if (end->local != nullptr) H5M_RETURN_IF_ERROR(end->local->CheckUnchanged());
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::tools
