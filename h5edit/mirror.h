// The servers that the edited file is mirrored to: each cut becomes a version there once the file
// holds it. A module of its own (mirror_api.h) talks to them; it is loaded with the first mirrored
// file.
#ifndef H5MIRROR_H5EDIT_MIRROR_H_
#define H5MIRROR_H5EDIT_MIRROR_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "h5edit/mirror_api.h"

namespace h5mirror::edit {

// Whether a record beside the file says that it is mirrored to a server.
bool IsMirrored(const std::filesystem::path& path);

// Not thread-safe.
class Mirror {
 public:
  // `path` is absolute, without symlinks; nobody has the file open for writing. `server`: --server,
  // or empty; `config`: Options::driver_config. Errors: why the file must not be edited; nothing
  // was changed then.
  static absl::StatusOr<std::unique_ptr<Mirror>> Open(const std::filesystem::path& path,
                                                      const std::string& server,
                                                      const std::string& config);
  ~Mirror();

  // Of a cut: whether others may follow it.
  enum class Moment : uint8_t { kBetween, kLast };
  // The file holds another cut. Bytes that cannot be sent are noted beside the file, and lag()
  // reports them.
  void Commit(const std::string& comment, Moment moment);
  // The bytes that the servers lack, for a user; empty: none.
  const std::string& lag() const { return lag_; }
  // Whether that is an error.
  bool is_required() const { return api_->is_required(module_) != 0; }

 private:
  explicit Mirror(const H5mEditMirrorApi* api) : api_(api) {}

  const H5mEditMirrorApi* const api_;
  H5mEditMirror* module_ = nullptr;
  std::string lag_;
};

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_MIRROR_H_
