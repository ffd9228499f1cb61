// The archive in S3, against a service that checks signatures and rights: tests/archive/run.
#include <stdlib.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "archive/s3_store.h"
#include "archive/testing/object_store_contract.h"
#include "base/strings.h"
#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::archive {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class S3Test : public testing::Test {
 protected:
  // Keys under `prefix`, so that tests do not meet each other's objects.
  static absl::StatusOr<std::unique_ptr<S3Store>> Open(const std::string& prefix) {
    S3Settings settings;
    settings.endpoint = getenv("H5M_TEST_S3_ENDPOINT");
    settings.bucket = getenv("H5M_TEST_S3_BUCKET");
    settings.prefix = prefix;
    RetryPolicy policy;
    policy.first_wait = absl::Milliseconds(10);
    return S3Store::Open(settings, policy);
  }
};

TEST_F(S3Test, KeepsTheContract) {
  for (const char* prefix : {"a/b", ""}) {
    auto store = Open(prefix);
    ASSERT_TRUE(store.ok()) << store.status();
    ExpectObjectStoreContract(**store);
    if (*prefix == '\0') continue;
    // A list must not show objects elsewhere in the bucket.
    auto beside = *Open("a/bc");
    ASSERT_TRUE(PutText(*beside, "x", "1").ok());
    const auto page = (*store)->List("", "", 1000, kTestTimeout);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_THAT(page->objects,
                Each(testing::Field(&store::ObjectInfo::name, Not(HasSubstr("bc/")))));
    ASSERT_TRUE(beside->Delete("x", kTestTimeout).ok());
    for (const store::ObjectInfo& object : page->objects) {
      ASSERT_TRUE((*store)->Delete(object.name, kTestTimeout).ok());
    }
  }
}

TEST_F(S3Test, OtherKeysAreRefusedAndInNoMessage) {
  const std::string secret = getenv("AWS_SECRET_ACCESS_KEY");
  setenv("AWS_SECRET_ACCESS_KEY", "another/secret", 1);
  auto store = *Open("keys");
  setenv("AWS_SECRET_ACCESS_KEY", secret.c_str(), 1);
  const absl::Status put = PutText(*store, "a", "x");
  EXPECT_TRUE(absl::IsUnauthenticated(put)) << put;
  EXPECT_THAT(std::string(put.message()), Not(HasSubstr("another/secret")));
}

TEST_F(S3Test, ABucketThatIsNotThereIsSaid) {
  S3Settings settings;
  settings.endpoint = getenv("H5M_TEST_S3_ENDPOINT");
  settings.bucket = "no-such-bucket-here";
  auto store = *S3Store::Open(settings);
  const absl::Status put = PutText(*store, "a", "x");
  EXPECT_TRUE(absl::IsFailedPrecondition(put) || absl::IsPermissionDenied(put)) << put;
}

// A history that goes to S3, is read there, comes back for a rollback, and is pruned.
TEST_F(S3Test, AHistoryLivesThere) {
  std::shared_ptr<S3Store> archive = *Open("root");
  FaultEnv env;
  store::StoreOptions options;
  options.archive = archive;
  auto opened = store::OpenStore(env, "/", options);
  auto file = *opened->OpenOrCreateFile("x.h5", 4096);
  std::mt19937_64 random(5);
  std::map<store::VersionNumber, std::string> golden;
  store::Writer writer(file, store::SessionStart::kNewGeneration);
  for (int i = 0; i < 5; ++i) {
    std::string bytes(600'000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    ASSERT_TRUE(writer.Write(0, bytes).ok());
    auto cut = writer.CutDurably(store::BarrierKind::kCommit);
    ASSERT_TRUE(cut.ok()) << cut.status();
    golden[cut->version] = writer.content();
  }
  ASSERT_TRUE(writer.End().ok());
  ASSERT_TRUE(file->WaitApplied(absl::Seconds(30)).ok());

  auto job = *file->StartArchive({store::SealSegment::kYes, 0});
  for (bool done = false; !done;) {
    const auto step = job->Step();
    ASSERT_TRUE(step.ok()) << step.status();
    done = step->done;
  }
  job.reset();
  EXPECT_THAT(archive->List("files/", "", 10, kTestTimeout)->objects, SizeIs(1));
  for (const auto& [version, bytes] : golden) {
    EXPECT_TRUE(store::ReadVersion(*file, version) == bytes) << version;
  }
  ASSERT_TRUE(file->Rollback(2, {}, {1}).ok());
  EXPECT_TRUE(store::ReadVersion(*file, 6) == golden[2]);
  ASSERT_TRUE(file->WaitApplied(absl::Seconds(30)).ok());

  // The segments that the rollback brought back go once the apply no longer needs them.
  for (std::string left = "all"; !left.empty();) {
    auto prune = *file->StartPrune({1, 2, 3, 4, 5});
    for (bool done = false; !done;) {
      const auto step = prune->Step();
      ASSERT_TRUE(step.ok()) << step.status();
      done = step->done;
      left = step->left;
    }
  }
  EXPECT_THAT(archive->List("files/", "", 10, kTestTimeout)->objects, IsEmpty());
}

}  // namespace
}  // namespace h5mirror::archive
