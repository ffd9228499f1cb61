// h5mirror rollback: a new version with the content of an old one.
#include <memory>

#include "base/hex.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/connected_file.h"
#include "cli/verbs/verbs.h"
#include "sync/local_file.h"

namespace h5mirror::tools {
namespace {

struct Options {
  std::string file;
  std::string comment;
  bool revoke_lease = false;
};

absl::StatusOr<int> RunRollback(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(const ConnectedVersion file, ConnectVersion(context, options.file));
  v1::RollbackVersionRequest request;
  request.set_name(file.name);
  request.set_version(file.version);
  request.set_comment(options.comment.empty() ? StrCat("rollback to version ", file.version)
                                              : options.comment);
  *request.mutable_writer() = LocalWriter();
  request.set_request_id(ToByteString(RandomBytes16()));
  request.set_revoke_lease(options.revoke_lease);
  absl::StatusOr<v1::Version> version = file.client->RollbackVersion(request);
  if (absl::IsFailedPrecondition(version.status()) && !options.revoke_lease) {
    return absl::FailedPreconditionError(StrCat(
        version.status().message(), "; let the writer close, or fence it with --revoke-lease"));
  }
  H5M_RETURN_IF_ERROR(version.status());
  if (context.json()) {
    context.Print(Json{
        {"file", file.name}, {"from_version", file.version}, {"version", VersionToJson(*version)}});
  }
  context.Say(StrCat(file.name, " is as in version ", file.version, " again: version ",
                     version->version()));
  if (file.record.has_value()) {
    context.Note(StrCat("the local file is as it was: h5mirror recover ", file.local.string(),
                        " brings it to version ", version->version()));
  }
  return kExitOk;
}

}  // namespace

void AddRollback(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "rollback", "Make an old version the newest again, on the server (can be undone)");
  verb->add_option("FILE@VERSION", options->file, kVersionHelp)->required();
  verb->add_option("-m,--comment", options->comment, "comment of the new version");
  verb->add_flag("--revoke-lease", options->revoke_lease,
                 "fence the writer that holds the lease, if any");
  OnVerb(*verb, context, action, options, RunRollback);
}

}  // namespace h5mirror::tools
