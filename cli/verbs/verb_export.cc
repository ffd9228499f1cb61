// h5mirror export: a version as a plain HDF5 file.
#include <string.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/connected_file.h"
#include "cli/output/progress.h"
#include "cli/verbs/verbs.h"
#include "sync/closed_copy.h"
#include "sync/download.h"
#include "sync/temp_file.h"

namespace h5mirror::tools {
namespace {

struct Options {
  std::string file;
  std::string out;
  bool force = false;
};

struct Source {
  rpc::Client* client;
  std::string name;
  int64_t version;
};

// Writes `data`, unless an earlier write has failed.
absl::Status Write(std::ostream& out, std::string_view data) {
  if (!out) return absl::InternalError("standard output could not be written");
  errno = 0;
  if (out.write(data.data(), static_cast<std::streamsize>(data.size()))) return absl::OkStatus();
  return absl::InternalError(errno == 0 ? "standard output could not be written"
                                        : StrCat("write to standard output: ", strerror(errno)));
}

absl::Status WriteZeros(std::ostream& out, uint64_t count) {
  static const std::string zeros(1 << 16, '\0');
  while (count > 0) {
    const uint64_t part = std::min<uint64_t>(count, zeros.size());
    H5M_RETURN_IF_ERROR(Write(out, std::string_view(zeros).substr(0, part)));
    count -= part;
  }
  return absl::OkStatus();
}

// A version as it was written out.
struct Exported {
  v1::Version version;
  std::optional<SuperblockPatch> patch;  // where it differs from the version
};

// Finds the superblock bytes to write instead of the version's own, before anything is written.
absl::StatusOr<std::optional<SuperblockPatch>> FindPatch(const Source& source,
                                                         const v1::Version& version,
                                                         Progress& progress) {
  return FindSuperblockPatch(static_cast<uint64_t>(version.size_bytes()),
                             [&](uint64_t offset, size_t length) {
                               return DownloadBytes(*source.client, source.name, version.version(),
                                                    {offset, length}, progress);
                             });
}

// Standard output cannot have holes: they are written out.
absl::StatusOr<Exported> ToStandardOutput(Context& context, const Source& source) {
  Progress progress(context.streams(), source.name, 0);
  Exported exported;
  v1::GetVersionRequest request;
  request.set_name(source.name);
  request.set_version(source.version);
  H5M_ASSIGN_OR_RETURN(exported.version, source.client->GetVersion(request));
  H5M_ASSIGN_OR_RETURN(exported.patch, FindPatch(source, exported.version, progress));
  std::ostream& out = context.streams().out;
  uint64_t written = 0;
  std::string patched;
  H5M_RETURN_IF_ERROR(Download(*source.client, source.name, exported.version.version(), progress,
                               [&](uint64_t offset, std::string_view data) {
                                 H5M_RETURN_IF_ERROR(WriteZeros(out, offset - written));
                                 written = offset + data.size();
                                 if (exported.patch && offset < exported.patch->extent().end()) {
                                   patched.assign(data);
                                   exported.patch->Apply(offset, &patched);
                                   data = patched;
                                 }
                                 return Write(out, data);
                               })
                          .status());
  H5M_RETURN_IF_ERROR(
      WriteZeros(out, static_cast<uint64_t>(exported.version.size_bytes()) - written));
  out.flush();
  return exported;
}

// A file in the directory `out`, named as the mirrored one.
absl::Status IsDirectory(const std::string& out, const std::string& name) {
  const auto file = std::filesystem::path(out) / std::filesystem::path(name).filename();
  return absl::InvalidArgumentError(
      StrCat(out, " is a directory: name a file, such as ", file.string()));
}

absl::StatusOr<Exported> ToFile(Context& context, const Source& source, const Options& options) {
  std::error_code ignored;
  if (std::filesystem::is_directory(options.out, ignored)) {
    return IsDirectory(options.out, source.name);
  }
  if (!options.force && std::filesystem::exists(std::filesystem::symlink_status(options.out))) {
    return absl::AlreadyExistsError(
        StrCat(options.out, " exists: give another name, or --force to replace it"));
  }
  H5M_ASSIGN_OR_RETURN(TempFile file, TempFile::Create(options.out));
  absl::StatusOr<v1::Version> version;
  {
    Progress progress(context.streams(), options.out, 0);
    version = DownloadToFile(*source.client, source.name, source.version, progress, file.fd(),
                             file.path());
  }
  H5M_RETURN_IF_ERROR(version.status());
  const auto size_bytes = static_cast<uint64_t>(version->size_bytes());
  H5M_ASSIGN_OR_RETURN(std::optional<SuperblockPatch> patch,
                       CloseCopy(file.fd(), size_bytes, file.path()));
  H5M_RETURN_IF_ERROR(file.Commit(options.force ? Existing::kReplace : Existing::kRefuse));
  return Exported{*std::move(version), std::move(patch)};
}

void NoteClosed(Context& context, const Source& source, const Exported& exported) {
  if (!exported.patch) return;
  context.Note(StrCat(source.name, "@", exported.version.version(),
                      " was cut while a writer had the file open: in the copy its superblock is "
                      "that of a closed file"));
}

absl::StatusOr<int> RunExport(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(const ConnectedVersion file, ConnectVersion(context, options.file));
  const Source source{file.client, file.name, file.version};
  if (options.out == "-") {
    H5M_ASSIGN_OR_RETURN(const Exported exported, ToStandardOutput(context, source));
    NoteClosed(context, source, exported);
    return kExitOk;  // Nothing else may go there, not even with --json.
  }
  H5M_ASSIGN_OR_RETURN(const Exported exported, ToFile(context, source, options));
  const v1::Version& version = exported.version;
  NoteClosed(context, source, exported);
  if (context.json()) {
    context.Print(Json{{"file", file.name},
                       {"out", options.out},
                       {"size_bytes", version.size_bytes()},
                       {"superblock_closed", exported.patch.has_value()},
                       {"version", VersionToJson(version)}});
  }
  context.Say(StrCat("exported ", file.name, "@", version.version(), " to ", options.out, " (",
                     HumanBytes(static_cast<uint64_t>(version.size_bytes())), ")"));
  return kExitOk;
}

}  // namespace

void AddExport(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("export", "Write a version to a plain HDF5 file");
  verb->add_option("FILE@VERSION", options->file, kVersionHelp)->required();
  verb->add_option("OUT", options->out, "file to write; - for standard output")->required();
  verb->add_flag("-f,--force", options->force, "replace OUT if it exists");
  OnVerb(*verb, context, action, options, RunExport);
}

}  // namespace h5mirror::tools
