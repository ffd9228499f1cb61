// GET and HEAD of a file's bytes: /f/NAME and /f/NAME@VERSION.
//
// The newest state of an open file is no version. Its cut is pinned for the entity tag of the
// answer. A request that names the tag, by If-Match or If-Range, reads the same cut.
#ifndef H5MIRROR_SERVER_HTTP_FILE_ANSWERS_H_
#define H5MIRROR_SERVER_HTTP_FILE_ANSWERS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/calls/call.h"
#include "server/http/file_target.h"
#include "server/http/message.h"
#include "server/http/other_servers.h"
#include "server/live/snapshots_service.h"
#include "server/services/versions_service.h"

namespace h5mirror::server {

// Thread-safe.
class FileAnswers {
 public:
  // All must outlive this. `cells`: null, where this server is in no cluster.
  FileAnswers(const ServiceEnvironment& environment, VersionsService& versions,
              SnapshotsService& snapshots, Ownership* cells);

  // `path` is the part after "/f/". Looks at the caller's rights before the file is opened, and
  // once it is open. May wait for a disk.
  HttpAnswer Answer(const HttpRequest& request, std::string_view path);

 private:
  // The bytes that a request reads, and the tag that stands for them.
  struct Opened {
    std::unique_ptr<FileBytes> bytes;
    FileBytesInfo info;
    EntityTag tag;
  };

  absl::StatusOr<Opened> Open(const FileTarget& target, const HttpRequest& request);
  // nullopt: the bytes of the tag are not there any more.
  absl::StatusOr<std::optional<Opened>> OpenTagged(const std::string& name, const EntityTag& tag);
  absl::StatusOr<Opened> OpenedOf(absl::StatusOr<std::unique_ptr<FileBytes>> bytes) const;
  // The headers of each answer about these bytes, also of a 304.
  HttpAnswer HeadersOf(const Opened& opened) const;
  HttpAnswer AnswerOpened(const HttpRequest& request, Opened opened) const;

  const ServiceEnvironment environment_;
  VersionsService& versions_;
  SnapshotsService& snapshots_;
  const OtherServers others_;
  // Of this start of the server: in the tags of cuts, and the reader that has these open.
  const uint64_t start_id_;
  const std::string reader_id_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HTTP_FILE_ANSWERS_H_
