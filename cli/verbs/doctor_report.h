// The findings of `h5mirror doctor`, one line a check.
#ifndef H5MIRROR_CLI_VERBS_DOCTOR_REPORT_H_
#define H5MIRROR_CLI_VERBS_DOCTOR_REPORT_H_

#include <string>
#include <vector>

#include "cli/context/context.h"

namespace h5mirror::tools {

enum class Health { kOk, kWarn, kFail };

struct Check {
  Health health = Health::kOk;
  std::string name;     // of the check: "plugin", "server", ...
  std::string detail;   // the finding
  std::string way_out;  // empty where nothing is wrong
};

// "OK", "WARN", "FAIL".
std::string_view HealthName(Health health);

// Prints each check as it is done (with --json all at the end). Not thread-safe.
class DoctorReport {
 public:
  explicit DoctorReport(Context& context) : context_(context) {}

  void Add(Check check);
  void Ok(std::string name, std::string detail) {
    Add({Health::kOk, std::move(name), std::move(detail), ""});
  }
  void Warn(std::string name, std::string detail, std::string way_out) {
    Add({Health::kWarn, std::move(name), std::move(detail), std::move(way_out)});
  }
  void Fail(std::string name, std::string detail, std::string way_out) {
    Add({Health::kFail, std::move(name), std::move(detail), std::move(way_out)});
  }
  // Prints the end; kExitFailure if a check failed.
  int Finish();

 private:
  Context& context_;
  std::vector<Check> checks_;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_DOCTOR_REPORT_H_
