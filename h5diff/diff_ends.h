// The two sides of `h5mirror diff`: versions of a file or of two, and local files.
#ifndef H5MIRROR_H5DIFF_DIFF_ENDS_H_
#define H5MIRROR_H5DIFF_DIFF_ENDS_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/context/context.h"
#include "cli/context/file_arg.h"
#include "cli/output/json.h"
#include "cli/verbs/verb_diff.h"
#include "h5diff/version_pages.h"
#include "sync/local_file.h"

namespace h5mirror::tools {

struct DiffEnd {
  // A version on a server; `client` is the context's, and null for a local file.
  FileArg file;
  rpc::Client* client = nullptr;
  v1::Version version;
  // A local file. No lock is taken: a writer is never kept out.
  std::shared_ptr<const LocalFile> local;
};

struct DiffEnds {
  DiffEnd one, other;
  // Two versions of one file on one server: it tells where they may differ.
  bool one_file = true;
};

// Errors: those of ParseFileAtVersion(), ResolveFileArg(), Connect(), ResolveVersion() and
//         LocalFile::Open(); kInvalidArgument also: nothing to compare a local file with.
absl::StatusOr<DiffEnds> FindDiffEnds(Context& context, const DiffOptions& options);

// The pages of both, and where they may differ: of two files everywhere. Takes the versions into
// `ends`. The objects that `ends` names must outlive it.
absl::StatusOr<std::unique_ptr<VersionPages>> OpenPages(Context& context, DiffEnds& ends);

// "file", "old" and "new"; see h5mirror.1.md.
Json EndsToJson(const DiffEnds& ends);

// kAborted: a local file has changed since it was opened.
absl::Status CheckUnchanged(const DiffEnds& ends);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_DIFF_ENDS_H_
