// Compares a local file, closed or being written, with its mirror. Only digests cross the network.
#ifndef H5MIRROR_SYNC_VERIFY_AGAINST_H_
#define H5MIRROR_SYNC_VERIFY_AGAINST_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/extent.h"
#include "cli/context/context.h"
#include "cli/context/file_arg.h"

namespace h5mirror::tools {

struct CheckRequest {
  std::string local;
  std::string name;     // that FILE stands for; empty: as the record beside `local` says
  FileArg mirror;       // whose server is asked, where it names one; else that of `local`
  absl::Duration wait;  // for the next cut of a program that writes the file
  // Asked now and then; true: the comparison ends with kCancelled.
  std::function<bool()> stopped = [] { return false; };
};

struct CheckResult {
  std::string name;
  std::string server;
  v1::Version version;  // that it was compared with
  bool live = false;    // while a program wrote it
  uint64_t size_bytes = 0;
  // Of 4 KiB blocks that differ; at least 1 where the sizes do.
  uint64_t differing_bytes = 0;
  // Of blocks that could not be compared, as they were written all the time. Neither equal nor not.
  uint64_t busy_bytes = 0;
  std::vector<Extent> differing;  // the first ones
  bool all_listed = true;
  int rounds = 1;
  uint64_t digest_bytes = 0;
  // Empty: the server knows of the check. Else why not.
  std::string not_recorded;
};

// Takes no lock on the file, so it never keeps a writer out. Instead it compares the file's times,
// and starts again if the file changed.
//
// Errors: kNotFound  no such file.
//         kAborted   it kept changing without a mirrored writer, or programs kept opening and
//                    closing it.
//         Those of the calls to the server.
absl::StatusOr<CheckResult> VerifyAgainst(Context& context, const CheckRequest& request);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_SYNC_VERIFY_AGAINST_H_
