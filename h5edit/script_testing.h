// Scripts in tests: their statements, or their first error.
#ifndef H5MIRROR_H5EDIT_SCRIPT_TESTING_H_
#define H5MIRROR_H5EDIT_SCRIPT_TESTING_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/strings.h"
#include "h5edit/parser.h"

namespace h5mirror::edit::testing {

inline bool NoFile(const std::string& path, std::string*, std::string* error) {
  *error = "cannot read " + path;
  return false;
}

// The only statement of a script.
inline Statement OneOf(const std::string& script, FileReader read_file = NoFile) {
  std::vector<Statement> statements;
  Problem problem;
  const Source source("s", script);
  EXPECT_TRUE(Parse(source, read_file, &statements, &problem)) << source.Explain(problem);
  EXPECT_EQ(statements.size(), 1u) << script;
  return statements.empty() ? Statement() : statements[0];
}

// "LINE:COLUMN: message" of a script that is wrong; "parsed" of one that is not.
inline std::string WrongIn(const std::string& script, FileReader read_file = NoFile) {
  std::vector<Statement> statements;
  Problem problem;
  if (Parse(Source("s", script), read_file, &statements, &problem)) return "parsed";
  return StrCat(problem.at.line, ":", problem.at.column, ": ", problem.message);
}

}  // namespace h5mirror::edit::testing

#endif  // H5MIRROR_H5EDIT_SCRIPT_TESTING_H_
