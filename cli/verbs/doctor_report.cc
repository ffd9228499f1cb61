#include "cli/verbs/doctor_report.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/strings.h"
#include "cli/context/exit_code.h"

namespace h5mirror::tools {

std::string_view HealthName(Health health) {
  switch (health) {
    case Health::kOk:
      return "OK";
    case Health::kWarn:
      return "WARN";
    case Health::kFail:
      return "FAIL";
  }
  return "FAIL";
}

void DoctorReport::Add(Check check) {
  context_.Say(absl::StrFormat("%-4s  %-12s  %s%s%s", HealthName(check.health), check.name,
                               check.detail, check.way_out.empty() ? "" : "; ", check.way_out));
  context_.streams().out.flush();
  checks_.push_back(std::move(check));
}

int DoctorReport::Finish() {
  const auto count = [&](Health health) {
    return std::count_if(checks_.begin(), checks_.end(),
                         [&](const Check& check) { return check.health == health; });
  };
  const auto failed = count(Health::kFail);
  const auto warned = count(Health::kWarn);
  if (context_.json()) {
    Json list = Json::array();
    for (const Check& check : checks_) {
      list.push_back(Json{{"health", HealthName(check.health)},
                          {"name", check.name},
                          {"detail", check.detail},
                          {"way_out", check.way_out}});
    }
    context_.Print(Json{{"checks", list}, {"failed", failed}, {"warned", warned}});
  } else if (failed + warned == 0) {
    context_.Say("all is well");
  } else {
    context_.Say(StrCat(failed, " failed, ", warned, " to look at"));
  }
  return failed > 0 ? kExitFailure : kExitOk;
}

}  // namespace h5mirror::tools
