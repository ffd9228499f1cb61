// An archive in memory for tests, which is slow, busy, full or wrong on demand.
#ifndef H5MIRROR_ONION_STORE_TESTING_FAULT_OBJECT_STORE_H_
#define H5MIRROR_ONION_STORE_TESTING_FAULT_OBJECT_STORE_H_

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/object_store.h"

namespace h5mirror::store {

// Thread-safe.
class FaultObjectStore final : public ObjectStore {
 public:
  FaultObjectStore() = default;
  // With these objects.
  explicit FaultObjectStore(std::map<std::string, std::string> objects)
      : objects_(std::move(objects)) {}

  // ---- Faults ----
  // The next `count` calls fail with `status`, before they do anything.
  void FailCalls(int count, absl::Status status) {
    const absl::MutexLock lock(&mutex_);
    fail_count_ = count;
    failure_ = std::move(status);
  }
  // Called with the bytes of each object that is put; may change them. Null: not called.
  void SetOnPut(std::function<void(std::string* bytes)> on_put) {
    const absl::MutexLock lock(&mutex_);
    on_put_ = std::move(on_put);
  }
  // Called at the beginning of each call, with no lock held: "get files/...". Null: not called.
  void SetOnCall(std::function<void(const std::string& call)> on_call) {
    const absl::MutexLock lock(&mutex_);
    on_call_ = std::move(on_call);
  }
  // Changes an existing object.
  void Change(const std::string& name, const std::function<void(std::string* bytes)>& change) {
    const absl::MutexLock lock(&mutex_);
    change(&objects_.at(name));
  }
  void Lose(const std::string& name) {
    const absl::MutexLock lock(&mutex_);
    objects_.erase(name);
  }

  // ---- What there is, and what was called ----
  std::vector<std::string> names() const {
    const absl::MutexLock lock(&mutex_);
    std::vector<std::string> names;
    for (const auto& [name, bytes] : objects_) names.push_back(name);
    return names;
  }
  std::map<std::string, std::string> objects() const {
    const absl::MutexLock lock(&mutex_);
    return objects_;
  }
  // How many calls began with `verb`: "get", "put", "head", "list", "delete".
  int CountCalls(std::string_view verb) const {
    const absl::MutexLock lock(&mutex_);
    return static_cast<int>(std::count_if(calls_.begin(), calls_.end(), [&](const auto& call) {
      return std::string_view(call).starts_with(verb);
    }));
  }

  std::string Describe() const override { return "mem://archive"; }
  absl::Status Put(std::string_view name, ObjectSource& source, absl::Duration) override {
    H5M_RETURN_IF_ERROR(Begin("put", name));
    std::string bytes(source.size_bytes(), '\0');
    H5M_RETURN_IF_ERROR(source.Read(0, absl::MakeSpan(bytes)));
    const absl::MutexLock lock(&mutex_);
    if (on_put_ != nullptr) on_put_(&bytes);
    if (objects_.emplace(name, std::move(bytes)).second) return absl::OkStatus();
    return absl::AlreadyExistsError(StrCat("put ", name, ": there is one already"));
  }
  absl::Status Get(std::string_view name, uint64_t offset, absl::Span<char> out,
                   absl::Duration) override {
    H5M_RETURN_IF_ERROR(Begin("get", name));
    const absl::MutexLock lock(&mutex_);
    const auto found = objects_.find(std::string(name));
    if (found == objects_.end()) return None("get", name);
    if (offset + out.size() > found->second.size()) {
      return absl::DataLossError(StrCat("get ", name, ": it ends before ", offset + out.size()));
    }
    found->second.copy(out.data(), out.size(), offset);
    return absl::OkStatus();
  }
  absl::StatusOr<ObjectInfo> Head(std::string_view name, absl::Duration) override {
    H5M_RETURN_IF_ERROR(Begin("head", name));
    const absl::MutexLock lock(&mutex_);
    const auto found = objects_.find(std::string(name));
    if (found == objects_.end()) return None("head", name);
    return ObjectInfo{std::string(name), found->second.size()};
  }
  absl::StatusOr<ObjectPage> List(std::string_view prefix, std::string_view next, size_t limit,
                                  absl::Duration) override {
    H5M_RETURN_IF_ERROR(Begin("list", prefix));
    const absl::MutexLock lock(&mutex_);
    ObjectPage page;
    for (const auto& [name, bytes] : objects_) {
      if (!std::string_view(name).starts_with(prefix) || name <= next) continue;
      if (page.objects.size() == limit) {
        page.next = page.objects.back().name;
        break;
      }
      page.objects.push_back({name, bytes.size()});
    }
    return page;
  }
  absl::Status Delete(std::string_view name, absl::Duration) override {
    H5M_RETURN_IF_ERROR(Begin("delete", name));
    const absl::MutexLock lock(&mutex_);
    objects_.erase(std::string(name));
    return absl::OkStatus();
  }

 private:
  absl::Status Begin(std::string_view verb, std::string_view name) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::function<void(const std::string&)> on_call;
    const std::string call = StrCat(verb, " ", name);
    absl::Status status;
    {
      const absl::MutexLock lock(&mutex_);
      calls_.push_back(call);
      on_call = on_call_;
      if (fail_count_ > 0) {
        --fail_count_;
        status = absl::Status(failure_.code(), StrCat(call, ": ", ToStd(failure_.message())));
      }
    }
    if (on_call != nullptr) on_call(call);
    return status;
  }
  static absl::Status None(std::string_view verb, std::string_view name) {
    return absl::NotFoundError(StrCat(verb, " ", name, ": no such object"));
  }

  mutable absl::Mutex mutex_;
  std::map<std::string, std::string> objects_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mutex_);
  int fail_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::function<void(std::string*)> on_put_ ABSL_GUARDED_BY(mutex_);
  std::function<void(const std::string&)> on_call_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_TESTING_FAULT_OBJECT_STORE_H_
