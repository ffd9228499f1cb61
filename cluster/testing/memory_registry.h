// A registry in memory, for tests and the simulation.
#ifndef H5MIRROR_CLUSTER_TESTING_MEMORY_REGISTRY_H_
#define H5MIRROR_CLUSTER_TESTING_MEMORY_REGISTRY_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "cluster/registry.h"

namespace h5mirror::cluster {

// Thread-safe. Never waits.
class MemoryRegistry final : public Registry {
 public:
  absl::StatusOr<RegistryView> ReadAll() override {
    absl::MutexLock lock(&mutex_);
    return view_;
  }

  absl::StatusOr<RegistryView> Read(absl::Span<const std::string> names) override {
    absl::MutexLock lock(&mutex_);
    RegistryView found;
    for (const std::string& name : names) {
      if (const auto text = TextOf(view_, name); text.has_value()) found[name] = *text;
    }
    return found;
  }

  absl::Status CompareAndSet(absl::Span<const Expectation> expected,
                             absl::Span<const NewText> changes) override {
    H5M_RETURN_IF_ERROR(CheckChange(expected, changes));
    absl::MutexLock lock(&mutex_);
    if (!Holds(view_, expected)) return absl::AbortedError("the registry is not as expected");
    for (const NewText& each : changes) view_[each.name] = each.text;
    return absl::OkStatus();
  }

 private:
  absl::Mutex mutex_;
  RegistryView view_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_TESTING_MEMORY_REGISTRY_H_
