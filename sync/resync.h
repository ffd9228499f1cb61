// Makes a local file and its mirror equal again. Sends only the differences, and keeps the losing
// side as a version.
#ifndef H5MIRROR_SYNC_RESYNC_H_
#define H5MIRROR_SYNC_RESYNC_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/context/context.h"
#include "cli/context/file_arg.h"
#include "sync/push_plan.h"

namespace h5mirror::tools {

// Which side is right, as the user decides.
enum class Side { kUndecided, kLocal, kRemote };

struct ResyncRequest {
  std::string verb = "resync";  // for messages and comments
  std::string local;
  FileArg mirror;    // one of ResolveMirrorsOf(local)
  std::string name;  // --name; empty: as the record or the driver's rule says
  std::string comment;
  Side from = Side::kUndecided;
  Content content = Content::kHdf5Only;
  bool dry_run = false;
};

enum class ResyncAction {
  kLevel,   // record and server said so already, nothing was read
  kEqual,   // they were the same; the record says so now
  kSent,    // the server's file has become the local one
  kUpload,  // the server had no such file
  kFetch,   // the local file has become the server's
};

struct ResyncOutcome {
  std::string name;
  std::string server;
  ResyncAction action = ResyncAction::kLevel;
  int64_t version = 0;  // of both sides now; with dry_run that of the server
  int64_t cut = 0;
  int64_t kept_version = 0;  // that holds the side that lost; 0: nothing did
  uint64_t differing_bytes = 0;
  uint64_t sent_bytes = 0;      // of the file, to the server
  uint64_t received_bytes = 0;  // of the file, from the server
  uint64_t digest_bytes = 0;
  // With kFetch and kEqual, Side::kRemote: the server's version was cut while a writer had the file
  // open. The local file has the superblock of a closed file now. So has `version`, unless a note
  // has said that this was not possible.
  bool superblock_closed = false;
};

// With kUndecided it only acts if it is certain which side is right: by the record nobody else
// wrote since, or both sides are equal.
//
// Errors: kFailedPrecondition  it is not certain, and the message names both states and how to
//                              decide; a program has the file open, or holds its lease; the local
//                              file was not closed cleanly.
//         kAborted             one side changed meanwhile; nothing was lost, try again.
//         kPermissionDenied    Side::kRemote needs the right "restore" to the file.
//         others               as the calls to the server.
absl::StatusOr<ResyncOutcome> Resync(Context& context, const ResyncRequest& request);

// For a local file that equals the server's newest version but for the superblock of a closed file
// (sync/closed_record.h). Sends that superblock, so that the server's head is a file that opens.
// Where that is not possible, as without the right to write, a note says so. The next program that
// changes the file then sends it. Reads the record anew instead of `request`'s, and ignores `from`.
std::optional<ResyncOutcome> SendClosedSuperblock(Context& context, ResyncRequest request);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_SYNC_RESYNC_H_
