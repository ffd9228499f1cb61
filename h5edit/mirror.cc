#include "h5edit/mirror.h"

#include <dlfcn.h>

#include <array>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/process/install_dirs.h"

namespace h5mirror::edit {
namespace {

constexpr size_t kErrorBytes = 4096;

absl::StatusOr<const H5mEditMirrorApi*> LoadModule() {
  H5M_ASSIGN_OR_RETURN(const std::filesystem::path directory, tools::FindPluginDir(""));
  const std::string path = (directory / H5M_EDIT_MIRROR_LIBRARY).string();
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const reason = dlerror();
    return absl::NotFoundError(StrCat("the module that talks to servers cannot be loaded: ",
                                      reason != nullptr ? reason : path));
  }
  const auto get = reinterpret_cast<H5mGetEditMirrorApi>(dlsym(handle, H5M_EDIT_MIRROR_SYMBOL));
  const H5mEditMirrorApi* const api = get != nullptr ? get() : nullptr;
  if (api == nullptr || api->abi != H5M_EDIT_MIRROR_ABI || api->size != sizeof(H5mEditMirrorApi)) {
    return absl::FailedPreconditionError(
        StrCat(path, ": belongs to another release; install h5edit and its modules together"));
  }
  return api;
}

}  // namespace

bool IsMirrored(const std::filesystem::path& path) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(path.string() + ".h5m", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name == "client.json" || (name.starts_with("client-") && name.ends_with(".json")))
      return true;
  }
  return false;
}

absl::StatusOr<std::unique_ptr<Mirror>> Mirror::Open(const std::filesystem::path& path,
                                                     const std::string& server,
                                                     const std::string& config) {
  H5M_ASSIGN_OR_RETURN(const H5mEditMirrorApi* const api, LoadModule());
  std::unique_ptr<Mirror> mirror(new Mirror(api));
  std::array<char, kErrorBytes> error{};
  mirror->module_ =
      api->open(path.c_str(), server.c_str(), config.c_str(), error.data(), error.size());
  if (mirror->module_ == nullptr) return absl::FailedPreconditionError(error.data());
  mirror->lag_ = error.data();
  return mirror;
}

Mirror::~Mirror() {
  if (module_ != nullptr) api_->close(module_);
}

void Mirror::Commit(const std::string& comment, Moment moment) {
  std::array<char, kErrorBytes> error{};
  const int last = moment == Moment::kLast ? 1 : 0;
  const bool failed = api_->commit(module_, comment.c_str(), last, error.data(), error.size()) != 0;
  lag_ = failed ? error.data() : "";
}

}  // namespace h5mirror::edit
