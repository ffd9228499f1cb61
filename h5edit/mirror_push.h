// The part of h5edit that talks to servers: brings the mirrors of one file level with it.
#ifndef H5MIRROR_H5EDIT_MIRROR_PUSH_H_
#define H5MIRROR_H5EDIT_MIRROR_PUSH_H_

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/context/context.h"
#include "cli/context/file_arg.h"
#include "cli/output/streams.h"

namespace h5mirror::edit {

// Not thread-safe.
class MirrorPush {
 public:
  // As H5mEditMirrorApi::open. Errors: those of the configuration and of tools::Resync();
  // kUnavailable and kDeadlineExceeded only where the mirrors are required.
  static absl::StatusOr<std::unique_ptr<MirrorPush>> Open(const std::string& path,
                                                          const std::string& server,
                                                          const std::string& config);

  enum class Moment { kBetween, kLast };
  // As H5mEditMirrorApi::commit.
  absl::Status Commit(const std::string& comment, Moment moment);
  bool is_required() const { return is_required_; }
  // The servers that are away, since which step, and the command that brings them level; empty:
  // none.
  std::string Lag() const;

 private:
  struct OneMirror {
    tools::FileArg arg;
    std::string away;  // why it was last not reached; empty: it was
    bool was_there = false;
    bool has_missed = false;  // a commit
  };

  MirrorPush() : streams_{out_, err_}, context_(flags_, streams_) {}
  absl::Status Configure(const std::string& server, const std::string& config);
  absl::Status Find(const std::string& path, const std::string& server);
  absl::Status BringLevel(OneMirror& mirror);
  absl::Status SendMap(const OneMirror& mirror, const std::string& comment);

  bool is_required_ = false;
  bool is_named_ = false;            // the server, by --server
  std::vector<std::string> listed_;  // servers of the driver's configuration
  std::string root_, new_name_;      // of a file without a record, as the driver would name it
  tools::GlobalFlags flags_;
  std::ostringstream out_, err_;  // nobody reads them
  tools::Streams streams_;
  tools::Context context_;
  std::vector<OneMirror> mirrors_;
};

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_MIRROR_PUSH_H_
