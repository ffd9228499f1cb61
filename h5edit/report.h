// The output of a run: errors, --verbose, --json, --diff.
#ifndef H5MIRROR_H5EDIT_REPORT_H_
#define H5MIRROR_H5EDIT_REPORT_H_

#include <string>
#include <string_view>

#include "h5edit/ast.h"
#include "h5edit/options.h"
#include "h5edit/source.h"

namespace h5mirror::edit {

// Text as a JSON string, quotes included. A byte that is not UTF-8 becomes U+FFFD.
std::string JsonString(std::string_view text);

// Where a change is told: "/g/d a".
std::string TargetText(const Statement& statement);

// Writes to standard output, errors to standard error.
class Report {
 public:
  // Both must outlive it.
  Report(const Options& options, const Source& source) : options_(options), source_(source) {}

  // True: the output shows attributes before and after each change.
  bool wants_ddl() const { return options_.json || options_.diff; }
  void Done(const Statement& statement, const std::string& before, const std::string& after,
            const std::string& output);
  void Failed(const Statement& statement, const Problem& problem);
  // An error that ends the run, and has no place in the script.
  void Error(const std::string& message);
  // An error of the script's syntax. No command is known, so with --json the line names none.
  void SyntaxError(const Problem& problem);
  // The last line: the state of the file.
  void Left(const Statement& statement, const std::string& left);
  void Summary(int exit_code, size_t statement_count);

 private:
  void JsonLine(const Statement& statement, const char* status, const std::string& message,
                const std::string& before, const std::string& after);

  const Options& options_;
  const Source& source_;
  size_t done_count_ = 0;
};

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_REPORT_H_
