// The kinds of events that [[notify]] tables name.
#ifndef H5MIRROR_SERVER_SETTINGS_EVENT_KIND_H_
#define H5MIRROR_SERVER_SETTINGS_EVENT_KIND_H_

#include <string_view>

#include "absl/status/statusor.h"

namespace h5mirror::server {

// Their meanings, and the way out of each: docs/how-to/be-told.md.
enum class EventKind {
  kWriterLost,      // a writer ended without a clean close
  kDiverged,        // a local file and its mirror have both changed
  kDiskLow,         // min_free is reached; names no file
  kVerifyFailed,    // damage, or a difference from the local file, was found
  kHistoryStopped,  // no new versions are made: of one file, or of all
  kQuotaNear,       // a quota is nearly used up
  kCellTakenOver,   // a cell of a lost server is served by this one; the file is the directory
  kCellMoved,       // this server has given a cell to another one, in order; likewise
  kServerDrained,   // this server has handed over its last cell; names no file
  kServerEvicted,   // this server has given up another one, as an operator wanted it; likewise
  kServerFenced,    // this server has fenced another one; likewise
  kArchiveFailed,   // calls of the archive fail, and are tried again later; names no file
  kArchiveWell,     // they do not any more; likewise
  kTest,            // of `h5mirrord notify test`; no table names it, each takes it
};

// "writer_lost".
std::string_view EventName(EventKind kind);

// The inverse, without kTest. kInvalidArgument lists all names.
absl::StatusOr<EventKind> ParseEventKind(std::string_view name);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_EVENT_KIND_H_
