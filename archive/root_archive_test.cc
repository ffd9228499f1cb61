// The archive of one root: it may be away, it is recognised again, and its calls can be broken off.
#include "archive/root_archive.h"

#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "archive/testing/object_store_contract.h"
#include "base/testing/http_answerer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::archive {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RootArchiveTest : public testing::Test {
 protected:
  RootArchiveTest() {
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
    MakeDisk();
  }
  ~RootArchiveTest() override { std::filesystem::remove_all(directory_); }

  std::string place() const { return directory_ + "/arc"; }
  void MakeDisk() { EXPECT_TRUE(std::filesystem::create_directory(place())); }
  // Acts like an unmounted disk.
  void TakeDiskAway() { std::filesystem::rename(place(), directory_ + "/away"); }
  void BringDiskBack() { std::filesystem::rename(directory_ + "/away", place()); }

  // Opens the archive as the server of a root that keeps `kept`, and claims it.
  std::unique_ptr<RootArchive> Open(std::string* kept, uint64_t rate = 0, Env& env = Env::Posix(),
                                    CallWatch::Limits limits = {}) {
    auto opened = RootArchive::Open(env, {.url = "dir:" + place(),
                                          .background_rate = rate,
                                          .owner = *kept,
                                          .keep_owner =
                                              [this, kept](const std::string& owner) {
                                                *kept = owner;
                                                return keep_status_;
                                              },
                                          .owner_place = "/data/.h5mirror/archive",
                                          .limits = limits});
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) return nullptr;
    const RootArchive::BackgroundWork claims;
    (*opened)->Head("root", kTestTimeout).IgnoreError();
    return *std::move(opened);
  }

  std::string directory_ = testing::TempDir() + "/h5m-root-archive-XXXXXX";
  std::string kept_;
  absl::Status keep_status_;
};

TEST_F(RootArchiveTest, ItIsAnArchiveAsAnyOther) {
  ExpectObjectStoreContract(*Open(&kept_));
  EXPECT_THAT(kept_, SizeIs(32));
}

TEST_F(RootArchiveTest, ItBelongsToOneRoot) {
  auto mine = Open(&kept_);
  ASSERT_TRUE(PutText(*mine, "files/a/1", "text").ok());
  EXPECT_TRUE(GetText(*Open(&kept_), "files/a/1").ok());
  std::string other;
  const RootArchive::BackgroundWork claims;
  const absl::Status refused = PutText(*Open(&other), "files/b/1", "text");
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("another root"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("/data/.h5mirror/archive"));
  EXPECT_THAT(other, IsEmpty());
}

TEST_F(RootArchiveTest, AnEmptyDirectoryWhereADiskShouldBeIsNone) {
  auto archive = Open(&kept_);
  ASSERT_TRUE(PutText(*archive, "files/a/1", "text").ok());
  TakeDiskAway();
  MakeDisk();
  const absl::Status read = GetText(*archive, "files/a/1").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(read)) << read;
  EXPECT_THAT(std::string(read.message()), HasSubstr("is its disk mounted"));
  EXPECT_TRUE(absl::IsFailedPrecondition(archive->Delete("files/a/1", kTestTimeout)));
}

TEST_F(RootArchiveTest, OneThatIsAwayFailsAndComesBack) {
  auto archive = Open(&kept_);
  ASSERT_TRUE(PutText(*archive, "files/a/1", "text").ok());
  EXPECT_THAT(archive->Standing().error, IsEmpty());
  TakeDiskAway();
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(absl::IsUnavailable(GetText(*archive, "files/a/1").status()));
  }
  EXPECT_THAT(archive->Standing().error, HasSubstr("/arc is not there"));
  EXPECT_EQ(archive->Standing().failed_calls, 2);
  BringDiskBack();
  EXPECT_EQ(GetText(*archive, "files/a/1").value_or("lost"), "text");
  EXPECT_THAT(archive->Standing().error, IsEmpty());
  EXPECT_EQ(archive->Standing().put_bytes, 4);
}

// Calls on directories hang while the gate is closed.
class GateEnv final : public Env {
 public:
  void Close() { Set(true); }
  void Open() { Set(false); }
  int waiting() {
    const absl::MutexLock lock(&mutex_);
    return waiting_;
  }
  absl::StatusOr<std::unique_ptr<EnvTree>> OpenTree(const std::filesystem::path& root) override {
    {
      const absl::MutexLock lock(&mutex_);
      ++waiting_;
      const auto is_open = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !is_closed_; };
      mutex_.Await(absl::Condition(&is_open));
      --waiting_;
    }
    return Posix().OpenTree(root);
  }
  absl::Time Now() override { return Posix().Now(); }
  absl::StatusOr<int64_t> GroupNumber(const std::string& group) override {
    return Posix().GroupNumber(group);
  }

 private:
  void Set(bool is_closed) {
    const absl::MutexLock lock(&mutex_);
    is_closed_ = is_closed;
  }

  absl::Mutex mutex_;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
};

bool WaitUntil(const std::function<bool()>& is_so) {
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (!is_so() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(2));
  return is_so();
}

TEST_F(RootArchiveTest, OneThatHangsHoldsFewReadersAndIsAskedByShortCalls) {
  GateEnv env;
  const absl::Duration timeout = absl::Milliseconds(100);
  auto archive = Open(
      &kept_, 0, env,
      {.readers_max = 2, .stall = absl::Milliseconds(50), .probe_pause = absl::Milliseconds(300)});
  ASSERT_TRUE(PutText(*archive, "files/a/1", "text").ok());
  env.Close();
  const auto read = [&] {
    char byte = 0;
    return archive->Get("files/a/1", 0, absl::MakeSpan(&byte, 1), timeout);
  };
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) readers.emplace_back([&] { read().IgnoreError(); });
  EXPECT_TRUE(WaitUntil([&] { return env.waiting() == 2; }));
  const absl::Status third = read();
  EXPECT_TRUE(absl::IsUnavailable(third)) << third;
  // No call has ended yet, but the archive counts as silent.
  EXPECT_TRUE(WaitUntil([&] { return archive->Standing().is_silent; }));
  EXPECT_THAT(archive->Standing().error, HasSubstr("no answer"));
  // After a pause one reader asks, and hangs too. All others fail at once.
  readers.emplace_back([&] { EXPECT_TRUE(WaitUntil([&] { return read().ok(); })); });
  EXPECT_TRUE(WaitUntil([&] { return env.waiting() == 3; }));
  const absl::Status put = PutText(*archive, "files/a/2", "text");
  EXPECT_TRUE(absl::IsUnavailable(put)) << put;
  EXPECT_THAT(std::string(put.message()), HasSubstr("does not answer"));
  env.Open();
  for (std::thread& reader : readers) reader.join();
  EXPECT_TRUE(PutText(*archive, "files/a/2", "text").ok());
  EXPECT_FALSE(archive->Standing().is_silent);
  EXPECT_THAT(archive->Standing().error, IsEmpty());
}

TEST_F(RootArchiveTest, WorkThatCannotWaitMakesNoCalls) {
  auto archive = Open(&kept_);
  ASSERT_TRUE(PutText(*archive, "files/a/1", "text").ok());
  {
    const RootArchive::NoCalls none;
    EXPECT_TRUE(absl::IsUnavailable(archive->Delete("files/a/1", kTestTimeout)));
  }
  EXPECT_THAT(archive->Standing().error, IsEmpty());
  EXPECT_TRUE(GetText(*archive, "files/a/1").ok());
}

TEST_F(RootArchiveTest, AServerStartsWhileItIsAway) {
  TakeDiskAway();
  auto archive = Open(&kept_);
  MakeDisk();
  const absl::Status unclaimed = PutText(*archive, "files/a/1", "text");
  EXPECT_TRUE(absl::IsUnavailable(unclaimed)) << unclaimed;
  EXPECT_THAT(std::string(unclaimed.message()), HasSubstr("not made the root's archive yet"));
  EXPECT_THAT(kept_, IsEmpty());
  const RootArchive::BackgroundWork claims;
  EXPECT_TRUE(PutText(*archive, "files/a/1", "text").ok());
}

// A crash may leave any part of a claim: the next server continues from it.
TEST_F(RootArchiveTest, AClaimThatWasCutShortIsMadeAgain) {
  keep_status_ = absl::UnavailableError("crash");
  EXPECT_FALSE(PutText(*Open(&kept_), "files/a/1", "text").ok());  // It is kept; no object.
  EXPECT_THAT(kept_, HasSubstr(" new"));
  const std::string begun = kept_;
  keep_status_ = absl::OkStatus();
  ASSERT_TRUE(PutText(*Open(&kept_), "files/a/1", "text").ok());
  EXPECT_EQ(kept_, begun.substr(0, 32));
  kept_ = begun;  // The object is there, and the last step was lost.
  EXPECT_TRUE(GetText(*Open(&kept_), "files/a/1").ok());
  EXPECT_EQ(kept_, begun.substr(0, 32));
}

TEST_F(RootArchiveTest, WhatIsKeptMustBeAnOwner) {
  const auto opened = RootArchive::Open(
      Env::Posix(),
      {.url = "dir:" + place(), .owner = "nonsense", .owner_place = "/data/.h5mirror/archive"});
  EXPECT_TRUE(absl::IsFailedPrecondition(opened.status()));
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("/data/.h5mirror/archive"));
}

TEST_F(RootArchiveTest, OnlyWorkInTheBackgroundIsPaced) {
  auto archive = Open(&kept_, 4 << 20);
  const std::string text(1 << 20, 'x');
  ASSERT_TRUE(PutText(*archive, "files/a/1", text).ok());
  const absl::Time start = absl::Now();
  const RootArchive::BackgroundWork paced;
  ASSERT_TRUE(PutText(*archive, "files/a/2", text).ok());
  EXPECT_TRUE(GetText(*archive, "files/a/2").ok());
  ASSERT_TRUE(PutText(*archive, "files/a/3", "text").ok());
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(500));  // 2 MiB at 4 MiB/s
}

TEST_F(RootArchiveTest, AStopBreaksOffWhatIsUnderWay) {
  auto archive = Open(&kept_, 1);  // a byte a second
  ASSERT_TRUE(PutText(*archive, "files/a/1", "text").ok());
  std::thread stopper([&] {
    absl::SleepFor(absl::Milliseconds(200));
    archive->Stop();
  });
  const RootArchive::BackgroundWork paced;
  EXPECT_TRUE(absl::IsUnavailable(PutText(*archive, "files/a/2", std::string(3 << 20, 'x'))));
  stopper.join();
  EXPECT_TRUE(absl::IsUnavailable(GetText(*archive, "files/a/1").status()));
  EXPECT_THAT(archive->Standing().error, IsEmpty()) << "it is not the archive that fails";
}

// A service that accepts a connection and never answers.
TEST_F(RootArchiveTest, AStopBreaksOffACallOfTheNetwork) {
  HttpAnswerer service;
  service.Answer("");
  setenv("AWS_ACCESS_KEY_ID", "key", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  auto opened = RootArchive::Open(
      Env::Posix(),
      {.url = "s3://bucket/p?endpoint=" + service.url().substr(0, service.url().rfind('/')),
       .owner = std::string(32, 'a'),
       .keep_owner = [](const std::string&) { return absl::OkStatus(); }});
  ASSERT_TRUE(opened.ok()) << opened.status();
  std::thread stopper([&] {
    EXPECT_TRUE(service.WaitForRequests(1));
    (*opened)->Stop();
  });
  const absl::Time start = absl::Now();
  const absl::Status head = (*opened)->Head("files/a/1", absl::Minutes(5)).status();
  EXPECT_TRUE(absl::IsUnavailable(head)) << head;
  EXPECT_LT(absl::Now() - start, absl::Seconds(15));  // one try may take 20 s
  stopper.join();
}

}  // namespace
}  // namespace h5mirror::archive
