#include "tests/crash/check_copies.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "archive/directory_store.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/restore_root.h"
#include "onion_store/testing/test_store.h"
#include "tests/crash/check_objects.h"

namespace h5mirror::store {
namespace {

constexpr char kArchiveId[] = "00000000000000000000000000000001";

absl::Status Violation(std::string_view what) {
  return absl::FailedPreconditionError(ToAbsl(what));
}

// Each version has the bytes of its cut.
absl::Status CheckFile(File& file, const FilePromises& promised) {
  const auto versions = file.ListVersions({}, 10'000);
  if (!versions.ok()) return Violation(versions.status().ToString());
  if (versions->empty()) return Violation(StrCat(file.name(), " was rebuilt without a version"));
  for (const VersionInfo& version : *versions) {
    const Bytes golden = promised.GoldenOf(version.cut);
    const std::string bytes = ReadVersion(file, version.version);
    // The cut of a failed rollback is unknown.
    const bool is_attempt = std::any_of(promised.attempts.begin(), promised.attempts.end(),
                                        [&](const Bytes& attempt) { return *attempt == bytes; });
    if (golden == nullptr ? !is_attempt : bytes != *golden) {
      return Violation(StrCat("the rebuilt ", file.name(), "@", version.version,
                              " has bytes that no cut ", version.cut, " had"));
    }
  }
  for (const FilePromises::Acked& copy : promised.copies) {
    if (versions->front().cut >= copy.cut) continue;
    return Violation(StrCat("the rebuilt ", file.name(), " is of cut ", versions->front().cut,
                            ", and a copy of cut ", copy.cut, " was acked"));
  }
  return absl::OkStatus();
}

absl::Status Rebuild(ObjectStore& archive, FaultEnv& fresh) {
  H5M_ASSIGN_OR_RETURN(auto files, ListRestorable(archive));
  H5M_ASSIGN_OR_RETURN(const auto restore, RootRestore::Begin(fresh, "/", kArchiveId));
  for (RestorableFile& file : files) {
    if (absl::IsNotFound(file.status)) continue;  // Its first copy was broken off.
    H5M_RETURN_IF_ERROR(restore->Restore(archive, {}, &file).status());
  }
  return restore->End();
}

}  // namespace

absl::Status CheckCopies(Env& env, const PlayOptions& options, const Promises& promises) {
  archive::DirectoryStore archive(*env.OpenTree("/"), kArchiveDirectory, "/arc");
  FaultEnv fresh;
  if (const absl::Status rebuilt = Rebuild(archive, fresh); !rebuilt.ok()) {
    return Violation(StrCat("rebuild the root: ", rebuilt.ToString()));
  }
  H5M_ASSIGN_OR_RETURN(const auto store, OpenOn(fresh, options, 0));
  for (const auto& [name, promised] : promises.files) {
    if (!promised.name_changes.empty()) continue;  // The file may have another name there.
    const auto file = store->OpenFile(name);
    if (file.ok()) {
      H5M_RETURN_IF_ERROR(CheckFile(**file, promised));
    } else if (!absl::IsNotFound(file.status()) || !promised.copies.empty()) {
      return Violation(StrCat("open the rebuilt ", name, ": ", file.status().ToString()));
    }
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::store
