#include "h5edit/beside.h"

#include <dirent.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>

#include "base/env.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5edit/edit_file.h"
#include "onion_store/embedded/cut_journal.h"

namespace h5mirror::edit {
namespace {

// 0 where it is there, else why it is not, or why that cannot be told.
int WhyNot(const std::string& path) {
  struct stat st {};
  return lstat(path.c_str(), &st) == 0 ? 0 : errno;
}

int WhyNotListed(const std::string& directory) {
  DIR* const stream = opendir(directory.c_str());
  if (stream == nullptr) return errno;
  closedir(stream);
  return 0;
}

absl::Status NoneUnknown(const std::filesystem::path& real, std::initializer_list<int> answers) {
  for (const int why : answers) {
    if (why == 0 || why == ENOENT || why == ENOTDIR) continue;
    return absl::PermissionDeniedError(
        StrCat("cannot open ", real.string(), ": whether a change is on its way to it cannot be ",
               "told, as ", real.string(), ".h5m cannot be looked into (", strerror(why),
               "). Its owner can, and may let others list and search it"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCanAskBeside(const std::filesystem::path& real) {
  const std::string beside = real.string() + ".h5m";
  return NoneUnknown(
      real, {WhyNot(beside + "/journal"), WhyNot(beside + "/open"), WhyNot(beside + "/index")});
}

absl::Status CheckCanLookBeside(const std::filesystem::path& real) {
  H5M_RETURN_IF_ERROR(CheckCanAskBeside(real));
  return NoneUnknown(real, {WhyNotListed(real.string() + ".h5m")});
}

bool HasOpenHistory(const std::filesystem::path& real) {
  return HasHistory(real) && WhyNot(real.string() + ".h5m/open") == 0;
}

absl::Status CheckAtRest(const std::filesystem::path& real, const std::string& given) {
  H5M_ASSIGN_OR_RETURN(const auto tree, Env::Posix().OpenTree(real.parent_path()));
  H5M_ASSIGN_OR_RETURN(const store::JournalLeft left,
                       store::ReadJournal(*tree, real.filename().string()));
  if (left.is_committed) {
    return absl::FailedPreconditionError(
        StrCat("cannot read ", given, ": a change is on its way to it (", left.cut.comment,
               "). If nobody edits it now, an edit was broken off: h5edit --recover ", given,
               " finishes that"));
  }
  if (!HasOpenHistory(real)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("cannot read ", given,
             ": its history is open, and a version may be on its way to it. If nobody writes it "
             "now, a program died while it did: h5edit --recover ",
             given, " puts it in order"));
}

}  // namespace h5mirror::edit
