// The plan of `h5mirror push` and `resync` for a local file, made before a byte is sent.
#ifndef H5MIRROR_SYNC_PUSH_PLAN_H_
#define H5MIRROR_SYNC_PUSH_PLAN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/local_record.h"
#include "cli/context/context.h"
#include "cli/context/file_arg.h"
#include "h5mirror/v1/files.pb.h"
#include "h5mirror/v1/versions.pb.h"
#include "rpc/client.h"
#include "sync/local_file.h"

namespace h5mirror::tools {

enum class PushAction {
  kSkip,     // both sides are the same already
  kUpload,   // the server has no such file
  kReplace,  // a new generation; older versions stay
};

// The name of a local file's mirror: `name` (--name) if it is not empty, else the record's, else as
// the driver would name it: below `root` (--root), or that of client.toml.
absl::StatusOr<std::string> MirrorName(const Context& context, const std::string& name,
                                       const std::string& root, const FileArg& arg);

// OK: no edit of the file is unfinished. A journal beside it means that h5edit is at work, or was
// killed. kFailedPrecondition tells the way out.
absl::Status CheckNoEdit(const LocalFile& file);

// The server's state of a file; nullopt: it has no such file.
absl::StatusOr<std::optional<v1::FileStatus>> FindServerFile(rpc::Client& client,
                                                             const std::string& name);

// Whether the user has the right to restore that file.
absl::StatusOr<bool> MayRestore(rpc::Client& client, const std::string& name);

// Asks for a version that this process makes, with an identity for repeats.
v1::CommitVersionRequest NewCommit(const std::string& name, const std::string& comment);

// kFailedPrecondition names the writer that holds the lease.
absl::Status CheckNoLease(const std::string& local, const v1::FileStatus& server);

// Refuses a file that was renamed here, under the name that it had. A push there would make it that
// name's. A program that opens it next would find none of its history under the new name.
// `server`: of `name`, which nobody has asked for but the record. kFailedPrecondition: what to do.
absl::Status CheckNotRenamed(rpc::Client& client, const std::string& name, const LocalFile& file,
                             const std::optional<LocalRecord>& record,
                             const std::optional<v1::FileStatus>& server);

// Whether record, local file and server say that both sides are the same.
bool IsLevel(const std::string& name, const LocalFile& file,
             const std::optional<LocalRecord>& record, const v1::FileStatus& server);

// Whether the server's file may be replaced by a local file without any known relation to it.
enum class ForeignFile { kRefuse, kReplace };

// Decides by the record, the local file and the server's state (unset: no such file).
// kFailedPrecondition: the server has a file of that name that is not known to be this one.
absl::StatusOr<PushAction> DecidePush(const std::string& name, const LocalFile& file,
                                      const std::optional<LocalRecord>& record,
                                      const std::optional<v1::FileStatus>& server,
                                      ForeignFile foreign);

// Which content may become a head.
enum class Content { kHdf5Only, kAny };

// kFailedPrecondition: not HDF5, or HDF5 that was not closed cleanly, as far as its superblock
// and the record tell; names the way out.
absl::Status CheckContent(const LocalFile& file, const std::optional<LocalRecord>& record,
                          Content content);

// Between the name of a local file that `recover` has replaced and when. (Former releases said
// ".broken-".)
inline constexpr char kOldFileMark[] = ".before-recover-";

// As IsLevel(), for a `record` of whatever address: the server was told of the local file's state
// when it was closed, and both name the same one.
bool IsLevelWherever(const LocalFile& file, const LocalRecord& record,
                     const v1::FileStatus& server);

// The files to push.
struct FilesToPush {
  std::vector<std::string> files;
  uint64_t total_bytes = 0;       // of them
  size_t skipped = 0;             // files of directories that are not HDF5
  std::vector<std::string> gone;  // of directories, with a record of a mirror and no file
};

// The files to push for `locals`. With `recursive`, a directory stands for the files below it that
// look like HDF5 (with kAny, for all regular files), in byte order. It leaves out our own
// directories (*.h5m), old files that `recover` keeps, and symbolic links.
// Errors: kNotFound; kInvalidArgument a directory without `recursive`.
absl::StatusOr<FilesToPush> FindFilesToPush(const std::vector<std::string>& locals, bool recursive,
                                            Content content);

// `version` of a file is the same as the local file now: told to the server where its last
// comparison, as `before` says, found a difference. The server and the file are right without it.
void NoteFoundEqual(rpc::Client& client, const v1::FileStatus& before, int64_t version);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_SYNC_PUSH_PLAN_H_
