// Keeps records and dirty maps right while an edit moves a mirrored file without a session. The cut
// comes to the head through its journal (cut_journal.h). At any moment the dirty map beside the
// file (base/dirty_map.h) names the bytes that each server lacks, even if the process is killed
// then. So the next session, or the editor itself, sends only these bytes. On disk:
// docs/reference/format.md, "The client's dirty map"; steps: docs/design/034-edit-journal.md.
#ifndef H5MIRROR_ONION_STORE_EMBEDDED_MIRROR_NOTES_H_
#define H5MIRROR_ONION_STORE_EMBEDDED_MIRROR_NOTES_H_

#include <filesystem>

#include "absl/status/status.h"
#include "onion_store/embedded/cut_journal.h"

namespace h5mirror::store {

// Call this before a cut's journal is written. Adds all bytes that the cut changes to the maps that
// are about the present head. A record of another state of the head stays as it is: that mirror and
// the file have diverged. The caller has the lease and the head's lock.
absl::Status NoteComingCut(const std::filesystem::path& head, const JournalCut& cut);

// A function to be called once the head has moved. Updates the maps and records that know of the
// cut to the present head. If other programs may have changed the head meanwhile, the map gets the
// whole file. A record that was not about the head before the cut stays as it is. So do all records
// if the head's name belongs to another file by now.
//
// If a record cannot be written, the next open finds a file that was changed from outside: nothing
// is lost, and the user is asked.
HeadMoved NoteMovesOf(const std::filesystem::path& head);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_EMBEDDED_MIRROR_NOTES_H_
