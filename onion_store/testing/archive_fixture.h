// For tests: a file with versions, and an archive in memory.
#ifndef H5MIRROR_ONION_STORE_TESTING_ARCHIVE_FIXTURE_H_
#define H5MIRROR_ONION_STORE_TESTING_ARCHIVE_FIXTURE_H_

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/testing/fault_object_store.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {

class ArchiveFixture : public testing::Test {
 protected:
  static constexpr uint32_t kPage = 512;
  static constexpr int kSizePages = 40;

  ArchiveFixture() { Open(); }

  void Open(bool with_archive = true) {
    file_.reset();
    store_.reset();
    StoreOptions options;
    options.page_size_bytes = kPage;
    if (with_archive) options.archive = archive_;
    store_ = OpenStore(env_, "/", options);
    file_ = *store_->OpenOrCreateFile("x.h5", kPage);
  }
  // Makes versions that each overwrite some pages.
  void Write(int count, int pages = 4) {
    auto start = golden_.empty() ? SessionStart::kNewGeneration : SessionStart::kContinue;
    Writer writer(file_, start, golden_.empty() ? "" : golden_.rbegin()->second);
    if (golden_.empty()) Must(writer.Write(0, Bytes(kSizePages * kPage)));
    for (int i = 0; i < count; ++i) {
      for (int n = 0; n < pages; ++n) {
        Must(writer.Write(random_() % kSizePages * kPage, Bytes(kPage)));
      }
      auto cut = writer.CutDurably(BarrierKind::kCommit);
      Must(cut.status());
      golden_[cut->version] = writer.content();
    }
    Must(writer.End());
    Must(file_->WaitApplied(absl::Seconds(30)));
  }
  std::unique_ptr<ArchiveJob> StartJob(ArchiveRequest request = {SealSegment::kYes, 0}) {
    auto job = file_->StartArchive(request);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? *std::move(job) : nullptr;
  }
  // Steps until the job ends or fails.
  static absl::StatusOr<ArchiveProgress> Finish(ArchiveJob& job) {
    while (true) {
      auto progress = job.Step();
      if (!progress.ok() || progress->done) return progress;
    }
  }
  ArchiveProgress Archive(ArchiveRequest request = {SealSegment::kYes, 0}) {
    auto progress = Finish(*StartJob(request));
    Must(progress.status());
    return progress.value_or(ArchiveProgress());
  }
  PruneProgress Prune(std::vector<VersionNumber> versions) {
    auto job = file_->StartPrune(versions);
    Must(job.status());
    for (VersionNumber version : versions) golden_.erase(version);
    while (true) {
      auto progress = (*job)->Step();
      Must(progress.status());
      if (!progress.ok() || progress->done) return progress.value_or(PruneProgress());
    }
  }
  void CheckAll() {
    for (const auto& [version, bytes] : golden_) {
      EXPECT_TRUE(ReadVersion(*file_, version) == bytes) << "version " << version;
    }
  }
  // The error of reading all of a version.
  absl::Status ReadError(VersionNumber version) {
    auto reader = file_->OpenVersion(version);
    if (!reader.ok()) return reader.status();
    std::string bytes((*reader)->info().size_bytes, '\0');
    return (*reader)->Read(0, absl::MakeSpan(bytes));
  }
  std::vector<Damage> Verify() {
    auto job = file_->StartVerify({});
    Must(job.status());
    std::vector<Damage> found;
    while (true) {
      auto progress = (*job)->Step();
      Must(progress.status());
      if (!progress.ok()) return found;
      found.insert(found.end(), progress->found.begin(), progress->found.end());
      if (progress->done) return found;
    }
  }
  bool IsOnDisk(int segment) {
    return *(*env_.OpenTree("/"))->Exists("x.h5.h5m/pages-00000" + std::to_string(segment));
  }
  std::string Bytes(size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }
  static void Must(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }

  FaultEnv env_;
  std::mt19937_64 random_{11};
  std::shared_ptr<FaultObjectStore> archive_ = std::make_shared<FaultObjectStore>();
  std::map<VersionNumber, std::string> golden_;
  std::unique_ptr<Store> store_;
  std::shared_ptr<File> file_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_TESTING_ARCHIVE_FIXTURE_H_
