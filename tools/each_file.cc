#include "tools/each_file.h"

#include "base/strings.h"

namespace h5mirror::tools {

absl::StatusOr<int> ForEachFile(
    Context& context, const std::vector<std::string>& locals,
    absl::FunctionRef<absl::StatusOr<FileOutcome>(const std::string& local)> one) {
  int code = kExitOk;
  Json json = Json::array();
  for (const std::string& local : locals) {
    const absl::StatusOr<FileOutcome> outcome = one(local);
    if (outcome.ok()) {
      json.push_back(outcome->json);
      context.Say(outcome->text);
      continue;
    }
    if (locals.size() == 1) return outcome.status();
    if (code == kExitOk) code = ExitCodeFor(outcome.status());
    context.Note(ToStd(outcome.status().message()));
    json.push_back(Json{{"local", local},
                        {"action", "failed"},
                        {"error", std::string(outcome.status().message())}});
    if (absl::IsUnavailable(outcome.status())) break;
  }
  if (context.json()) context.Print(Json{{"files", json}});
  return code;
}

}  // namespace h5mirror::tools
