// The promises of every form of an archive, as tests.
#ifndef H5MIRROR_ARCHIVE_TESTING_OBJECT_STORE_CONTRACT_H_
#define H5MIRROR_ARCHIVE_TESTING_OBJECT_STORE_CONTRACT_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "onion_store/object_store.h"

namespace h5mirror::archive {

// An object in memory.
class TextSource final : public store::ObjectSource {
 public:
  explicit TextSource(std::string text) : text_(std::move(text)) {}
  uint64_t size_bytes() const override { return text_.size(); }
  absl::Status Read(uint64_t offset, absl::Span<char> out) override {
    std::copy_n(text_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return absl::OkStatus();
  }

 private:
  const std::string text_;
};

inline constexpr absl::Duration kTestTimeout = absl::Seconds(30);

inline absl::Status PutText(store::ObjectStore& store, std::string_view name, std::string text) {
  TextSource source(std::move(text));
  return store.Put(name, source, kTestTimeout);
}

// The bytes of an object, by Head() and Get().
absl::StatusOr<std::string> GetText(store::ObjectStore& store, std::string_view name);

// Checks on an empty `store` all that the interface promises. Leaves objects behind.
void ExpectObjectStoreContract(store::ObjectStore& store);

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_TESTING_OBJECT_STORE_CONTRACT_H_
