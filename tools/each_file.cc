#include "tools/each_file.h"

#include <set>

#include "base/strings.h"

namespace h5mirror::tools {
namespace {

// What became of each in turn.
class Outcomes {
 public:
  Outcomes(Context& context, const EachFileExtras& extras) : context_(context), extras_(extras) {}

  void Add(const FileOutcome& outcome) {
    json_.push_back(outcome.json);
    if (!extras_.is_quiet) context_.Say(outcome.text);
  }

  void AddUntried() { ++failed_; }

  void AddError(const std::string& local, const std::string& server, const absl::Status& error) {
    ++failed_;
    if (code_ == kExitOk) code_ = ExitCodeFor(error);
    context_.Note(StrCat(server, server.empty() ? "" : ": ", error.message()));
    Json json{{"local", local}, {"action", "failed"}, {"error", std::string(error.message())}};
    if (!server.empty()) json["server"] = server;
    json_.push_back(std::move(json));
  }

  int Finish() {
    Json document{{"files", json_}};
    if (extras_.summary) {
      const FileOutcome summary = extras_.summary(failed_);
      document.update(summary.json);
      if (!extras_.is_quiet && !summary.text.empty()) context_.Say(summary.text);
    }
    if (context_.json()) context_.Print(document);
    return code_;
  }

 private:
  Context& context_;
  const EachFileExtras& extras_;
  int failed_ = 0;
  int code_ = kExitOk;
  Json json_ = Json::array();
};

}  // namespace

absl::StatusOr<int> ForEachMirror(
    Context& context, const std::vector<std::string>& locals,
    absl::FunctionRef<absl::StatusOr<FileOutcome>(const std::string& local, const FileArg& mirror)>
        one,
    const EachFileExtras& extras) {
  Outcomes outcomes(context, extras);
  std::set<std::string> away;
  for (const std::string& local : locals) {
    if (extras.before) extras.before(local);
    const auto mirrors = ResolveMirrorsOf(local, context.flags().client.server);
    if (!mirrors.ok()) {
      if (locals.size() == 1) return mirrors.status();
      outcomes.AddError(local, "", mirrors.status());
      continue;
    }
    for (const FileArg& mirror : *mirrors) {
      if (away.contains(mirror.server)) {
        outcomes.AddUntried();
        continue;
      }
      const std::string server = mirrors->size() > 1 ? mirror.server : "";
      absl::StatusOr<FileOutcome> outcome = one(local, mirror);
      if (outcome.ok()) {
        if (!server.empty()) outcome->text = StrCat(server, ": ", outcome->text);
        outcomes.Add(*outcome);
        continue;
      }
      if (locals.size() == 1 && server.empty()) return outcome.status();
      outcomes.AddError(local, server, outcome.status());
      if (absl::IsUnavailable(outcome.status())) away.insert(mirror.server);
    }
  }
  return outcomes.Finish();
}

}  // namespace h5mirror::tools
