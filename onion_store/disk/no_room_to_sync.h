// A sync that failed as the disk has no room. Unlike a write it is never repeated: to SQLite it is
// an I/O error as any other, and to people a full disk.
#ifndef H5MIRROR_ONION_STORE_DISK_NO_ROOM_TO_SYNC_H_
#define H5MIRROR_ONION_STORE_DISK_NO_ROOM_TO_SYNC_H_

#include <string>

#include <sqlite3.h>

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace h5mirror::store {

// The result code of SqliteVfs, beyond all of SQLite's own.
constexpr int kNoRoomToSync = SQLITE_IOERR | (200 << 8);
constexpr char kNoRoomPayload[] = "h5mirror/no-room-to-sync";

// kInternal. IsNoRoomToSync() knows it again.
inline absl::Status NoRoomToSync(const std::string& text) {
  absl::Status failed = absl::InternalError(text);
  failed.SetPayload(kNoRoomPayload, absl::Cord());
  return failed;
}

inline bool IsNoRoomToSync(const absl::Status& status) {
  return status.GetPayload(kNoRoomPayload).has_value();
}

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_DISK_NO_ROOM_TO_SYNC_H_
