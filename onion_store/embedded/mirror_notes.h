// An edit of a file that is mirrored to servers, and goes around the driver's sessions: the cut
// comes to the head through its journal (cut_journal.h), and what each server lacks then is in the
// dirty map beside the file (base/dirty_map.h), whenever the process ends. So the next session, or
// the editor itself, sends that and no more. On disk: docs/reference/format.md, "The client's dirty
// map"; steps: docs/design/034-edit-journal.md.
#ifndef H5MIRROR_ONION_STORE_EMBEDDED_MIRROR_NOTES_H_
#define H5MIRROR_ONION_STORE_EMBEDDED_MIRROR_NOTES_H_

#include <filesystem>

#include "absl/status/status.h"
#include "onion_store/embedded/cut_journal.h"

namespace h5mirror::store {

// Before a cut's journal is written: all that it changes goes into the maps, which are of the head
// as it is until then. A record that is not of the head as it is stays as it is: that mirror and
// the file have diverged. The caller has the lease and the head's lock.
absl::Status NoteComingCut(const std::filesystem::path& head, const JournalCut& cut);

// Once the head has moved: the maps and records that know of the cut are of the head as it is now.
// Where somebody else may have changed the head meanwhile, the map has all of the file in it. A
// record that was not of the head before the cut stays as it is, and so do all where the head's
// name is another file's by now.
// A record that cannot be written is as one of a file that was changed outside: nothing is lost,
// and the user is asked at the next open.
HeadMoved NoteMovesOf(const std::filesystem::path& head);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_EMBEDDED_MIRROR_NOTES_H_
