// For the store's tests: a writer that knows the bytes that the file must have.
#ifndef H5MIRROR_ONION_STORE_TESTING_TEST_STORE_H_
#define H5MIRROR_ONION_STORE_TESTING_TEST_STORE_H_

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/env.h"
#include "gtest/gtest.h"
#include "onion_store/store.h"
#include "onion_store/testing/test_ranges.h"

namespace h5mirror::store {

inline std::unique_ptr<Store> OpenStore(Env& env, const std::filesystem::path& root,
                                        StoreOptions options = {}) {
  options.root = root;
  options.durable_every = absl::Milliseconds(50);
  auto store = Store::Open(env, options);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

inline std::string ReadAll(VersionReader& reader) {
  std::string bytes(reader.info().size_bytes, '\0');
  absl::Status read = reader.Read(0, absl::MakeSpan(bytes));
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_TRUE(ScatteredReadsMatch(reader, bytes, &read)) << "scattered reads differ";
  EXPECT_TRUE(read.ok()) << read;
  return bytes;
}

inline std::string ReadVersion(File& file, VersionNumber version) {
  auto reader = file.OpenVersion(version);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return reader.ok() ? ReadAll(**reader) : "";
}

// One session, and the bytes that the file must have.
class Writer {
 public:
  Writer(std::shared_ptr<File> file, SessionStart start, std::string content = "",
         const LocalAccess& local = {0640})
      : file_(std::move(file)), content_(std::move(content)) {
    auto token = file_->Acquire();
    token_ = token.value_or(0);
    begun_ = file_->Begin(token_, start, Origin{"m", "host", "/x.h5"}, local);
    if (start == SessionStart::kNewGeneration) content_.clear();
  }

  absl::Status Write(uint64_t offset, std::string_view bytes) {
    Extent extent{offset, bytes.size()};
    if (content_.size() < extent.end()) content_.resize(extent.end());
    content_.replace(offset, bytes.size(), bytes);
    return file_->Write(token_, {&extent, 1}, {&bytes, 1});
  }
  absl::Status Truncate(uint64_t size) {
    if (size > content_.max_size()) return absl::InvalidArgumentError("too large for a test");
    content_.resize(size);
    return file_->Truncate(token_, size);
  }
  absl::StatusOr<CutNumber> Cut(
      BarrierKind kind, std::function<void(absl::StatusOr<DurableCut>)> on_durable = nullptr) {
    CutRequest request;
    request.kind = kind;
    request.size_bytes = content_.size();
    request.barrier.seq = ++seq_;
    request.provenance.program = "test";
    return file_->Cut(token_, request, std::move(on_durable));
  }
  // Cuts and waits until it is durable.
  absl::StatusOr<DurableCut> CutDurably(BarrierKind kind) {
    struct Waiting {
      absl::Notification done;
      absl::StatusOr<DurableCut> result = absl::UnknownError("");
    };
    auto waiting = std::make_shared<Waiting>();
    auto cut = Cut(kind, [waiting](absl::StatusOr<DurableCut> result) {
      waiting->result = std::move(result);
      waiting->done.Notify();
    });
    if (!cut.ok()) return cut.status();
    if (!waiting->done.WaitForNotificationWithTimeout(absl::Seconds(60))) {
      return absl::DeadlineExceededError("the cut did not become durable");
    }
    return waiting->result;
  }
  absl::Status End(SessionEnd end = SessionEnd::kClean) { return file_->End(token_, end); }

  // The result of Begin().
  const absl::Status& begun() const { return begun_; }
  const std::string& content() const { return content_; }
  Token token() const { return token_; }
  File& file() { return *file_; }

 private:
  std::shared_ptr<File> file_;
  std::string content_;
  Token token_ = 0;
  absl::Status begun_;
  uint64_t seq_ = 0;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_TESTING_TEST_STORE_H_
