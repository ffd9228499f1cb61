// The objects that all files of a store share.
#ifndef H5MIRROR_ONION_STORE_SHARED_STORE_CONTEXT_H_
#define H5MIRROR_ONION_STORE_SHARED_STORE_CONTEXT_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/env.h"
#include "base/machine.h"
#include "onion_store/disk/durable_names.h"
#include "onion_store/disk/name_directories.h"
#include "onion_store/disk/sqlite_vfs.h"
#include "onion_store/shared/background.h"
#include "onion_store/shared/glance_cache.h"
#include "onion_store/shared/history_stops.h"
#include "onion_store/shared/memory_budget.h"
#include "onion_store/shared/object_cache.h"
#include "onion_store/shared/open_indexes.h"
#include "onion_store/shared/owner_cache.h"
#include "onion_store/shared/time_keeper.h"
#include "onion_store/shared/token_source.h"
#include "onion_store/store.h"
#include "onion_store/store_health.h"

namespace h5mirror::store {

// A store serves a root with any number of files, or one file (embedded_store.h). The history of
// that one file holds what a root has in .h5mirror/.
enum class StoreKind : uint8_t { kRoot, kOneFile };

// Every file owns a share, so that a caller may hold a file longer than the store. Members are
// destroyed from the last to the first: threads end before the objects that they use.
struct StoreContext {
  StoreContext(Env& env_in, StoreOptions options_in, std::unique_ptr<EnvTree> tree_in,
               StoreKind kind_in = StoreKind::kRoot)
      : clock(env_in,
              [this](std::string text) {
                notices.Add({StoreNotice::Kind::kClock, "", std::move(text)});
              }),
        env(clock),
        kind(kind_in),
        options(std::move(options_in)),
        tree(std::move(tree_in)),
        file_sizes(FileSizesOf(*tree)),
        budget(options.memory_max_bytes),
        open_indexes(budget, OpenIndexes::MaxFor(options.memory_max_bytes)),
        objects(options.archive, budget, ObjectCache::MaxFor(options.memory_max_bytes)),
        vfs(*tree),
        tokens(*tree, kind == StoreKind::kRoot ? TokenSource::Keeping::kDurable
                                               : TokenSource::Keeping::kInMemory) {}

  static constexpr uint64_t kPageBytesMax = 65536;

  static FileSizeMax FileSizesOf(EnvTree& tree) {
    auto* knows = dynamic_cast<KnowsFileSizes*>(&tree);
    return knows == nullptr ? FileSizeMax() : knows->FileSizes();
  }

  StoreNotices notices;
  TimeKeeper clock;
  Env& env;  // with that clock
  const StoreKind kind;
  const StoreOptions options;
  int64_t group = -1;
  const std::unique_ptr<EnvTree> tree;
  const FileSizeMax file_sizes;
  std::unique_ptr<EnvLock> lock;
  // True: each change of a head takes its lock. Set before any file exists.
  bool locks_heads = false;
  MemoryBudget budget;
  OpenIndexes open_indexes;
  ObjectCache objects;
  SqliteVfs vfs;
  TokenSource tokens;
  DurableNames durable_names;
  NameDirectories name_directories{*tree, durable_names};
  HistoryStops history_stops;
  // The largest head here: whole pages, as a head is written in whole pages.
  uint64_t head_bytes_max() const { return file_sizes.bytes / kPageBytesMax * kPageBytesMax; }
  // kInvalidArgument: the head of `name` cannot have so many bytes on this file system.
  absl::Status CheckFileSize(const std::string& name, uint64_t size_bytes) const;
  // Set when the store closes: an apply ends after its present round.
  std::atomic<bool> stops_applying{false};
  // Null: none. The mutex is held, shared, over a call of the listener.
  absl::Mutex cut_listener_mutex;
  Store::CutListener cut_listener ABSL_GUARDED_BY(cut_listener_mutex);
  void TellOfCut(const std::string& name, CutNumber cut) ABSL_LOCKS_EXCLUDED(cut_listener_mutex) {
    absl::ReaderMutexLock lock(&cut_listener_mutex);
    if (cut_listener != nullptr) cut_listener(name, cut);
  }
  OwnerCache owners;
  GlanceCache glances;
  // As the cut listener.
  absl::Mutex owner_listener_mutex;
  Store::OwnerListener owner_listener ABSL_GUARDED_BY(owner_listener_mutex);
  // `name` has another file or owner, or no longer has one.
  void TellOfOwner(const std::string& name) ABSL_LOCKS_EXCLUDED(owner_listener_mutex) {
    owners.Forget(name);
    glances.Forget(name);
    absl::ReaderMutexLock lock(&owner_listener_mutex);
    if (owner_listener != nullptr) owner_listener(name);
  }
  std::atomic<uint64_t> lost_pages{0};
  std::atomic<bool> told_of_no_access_list{false};
  void TellNotice(StoreNotice::Kind kind, const std::string& file, std::string text) {
    notices.Add({kind, file, std::move(text)});
  }
  // Null: files are only read, and have no background work. Set before any file exists; the store
  // stops it, and does not destroy it.
  std::unique_ptr<Background> background;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_SHARED_STORE_CONTEXT_H_
