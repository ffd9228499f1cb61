#include "onion_store/jobs/segment_recall.h"

#include <cstring>

#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/jobs/object_scan.h"

namespace h5mirror::store {
namespace {

// A new name, "run-N". If a crash leaves it, a recovery removes it.
std::string FreshName(const HistoryFiles& files) {
  const Bytes16 random = RandomBytes16();
  int64_t number = 0;
  std::memcpy(&number, random.data(), sizeof(number));
  return files.HistoryName(StrCat("run-", number & INT64_MAX));
}

absl::Status Fetch(const HistoryFiles& files, const ArchivedSegment& segment, EnvFile& to) {
  ObjectScan scan(files, segment);
  bool more = true;
  while (more) {
    H5M_ASSIGN_OR_RETURN(more, scan.Step([&](uint64_t offset, std::string_view bytes) {
      return WriteAt(to, offset, bytes);
    }));
  }
  return to.Sync();
}

}  // namespace

absl::Status RecallSegment(const HistoryFiles& files, const ArchivedSegment& segment,
                           const std::string& name) {
  EnvTree& tree = files.tree();
  const std::string fresh = FreshName(files);
  const auto bring = [&]() -> absl::Status {
    {
      H5M_ASSIGN_OR_RETURN(const auto file, tree.Open(fresh, OpenKind::kCreateFresh, 0600));
      H5M_RETURN_IF_ERROR(Fetch(files, segment, *file));
    }
    H5M_RETURN_IF_ERROR(tree.Rename(fresh, name));
    return tree.SyncDirectory(files.directory());
  };
  const absl::Status brought = bring();
  if (!brought.ok()) tree.Remove(fresh).IgnoreError();
  return brought;
}

}  // namespace h5mirror::store
