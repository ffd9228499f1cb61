// Lists with details: writers, recent bytes and histories of many files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <numeric>

#include "nlohmann/json.hpp"
#include "server/testing/http_fixture.h"

namespace h5mirror::server {
namespace {

using testing::ElementsAre;

// Of no two pages alike, so that none is saved as another.
std::string Mixed(uint32_t seed, size_t size_bytes) {
  std::string text(size_bytes, ' ');
  for (char& byte : text) byte = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  return text;
}

class ListDetailsTest : public HttpTest {
 protected:
  v1::ListFilesResponse List(bool details = true, int page_size = 0, std::string token = "") {
    v1::ListFilesRequest request;
    request.set_details(details);
    request.set_page_size(page_size);
    request.set_page_token(std::move(token));
    const auto page = client_->ListFiles(request);
    EXPECT_TRUE(page.ok()) << page.status();
    return page.value_or(v1::ListFilesResponse());
  }
  // The only file.
  v1::FileSummary Row() {
    const v1::ListFilesResponse list = List();
    EXPECT_EQ(list.files_size(), 1);
    return list.files_size() == 1 ? list.files(0) : v1::FileSummary();
  }
  static int64_t Received(const v1::FileSummary& row) {
    const auto& bytes = row.recent_writes().received_bytes();
    return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
  }
  // Until the timer of the session has told of so many bytes.
  v1::FileSummary AwaitReceived(int64_t bytes) {
    for (int i = 0; i < 400; ++i) {
      v1::FileSummary row = Row();
      if (Received(row) >= bytes) return row;
      absl::SleepFor(absl::Milliseconds(50));
    }
    ADD_FAILURE() << "no row told of " << bytes << " bytes";
    return Row();
  }
  static std::vector<std::string> Names(const v1::ListFilesResponse& list) {
    std::vector<std::string> names;
    for (const v1::FileSummary& file : list.files()) names.push_back(file.name());
    return names;
  }
};

TEST_F(ListDetailsTest, TellsOfTheWriterWhileItWritesAndAfter) {
  Start();
  auto stream = client_->OpenMirrorStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  v1::MirrorFileRequest open = OpenRequest("x.h5", v1::INTENT_CREATE);
  open.mutable_open()->mutable_writer()->set_host("node7");
  open.mutable_open()->mutable_writer()->set_program("sim.x");
  ASSERT_TRUE((*stream)->Send(open).ok());
  ASSERT_TRUE((*stream)->Receive().ok());
  Write(**stream, 0, std::string(1000, 'a'));
  Cut(**stream, 1, v1::BARRIER_KIND_COMMIT, 1000);
  const v1::FileSummary live = AwaitReceived(1000);
  EXPECT_EQ(live.last_writer().writer().claimed_user(), "alice");
  EXPECT_EQ(live.last_writer().writer().host(), "node7");
  EXPECT_EQ(live.last_writer().writer().program(), "sim.x");
  EXPECT_TRUE(live.last_writer().is_writing());
  EXPECT_EQ(live.mirror().state(), v1::MIRROR_STATE_CONNECTED);
  EXPECT_EQ(Received(live), 1000);

  Write(**stream, 0, std::string(500, 'b'));
  Cut(**stream, 2, v1::BARRIER_KIND_COMMIT, 1000);
  ASSERT_TRUE((*stream)->Finish().ok());
  const v1::FileSummary after = AwaitReceived(1500);
  EXPECT_EQ(after.last_writer().writer().program(), "sim.x") << "of the newest version";
  EXPECT_EQ(Received(after), 1500) << "the end of a session tells of the rest";
}

TEST_F(ListDetailsTest, AWriterThatHasGoneHoldsNoLease) {
  Start();
  MirrorWhole("x.h5", "hello");
  for (int i = 0; i < 400 && Row().last_writer().is_writing(); ++i) {
    absl::SleepFor(absl::Milliseconds(50));
  }
  const v1::FileSummary row = Row();
  EXPECT_FALSE(row.last_writer().is_writing());
  EXPECT_EQ(row.last_writer().writer().claimed_user(), "alice");
  EXPECT_TRUE(row.last_writer().has_time());
}

TEST_F(ListDetailsTest, HistoriesAreThoseOfTheStatusAndFollowTheFile) {
  Start();
  MirrorWhole("x.h5", std::string(20000, 'a'));
  ASSERT_TRUE(Settled("x.h5").ok());
  const int64_t before = Row().history_bytes();
  EXPECT_EQ(before, Settled("x.h5")->history_bytes());
  EXPECT_EQ(Row().history_bytes(), before) << "from what was seen of the closed file";
  auto stream = Open("x.h5", v1::INTENT_CREATE);
  Write(*stream, 0, Mixed(1, 20000));
  Cut(*stream, 1, v1::BARRIER_KIND_COMMIT, 20000);
  Write(*stream, 0, Mixed(2, 20000));
  Cut(*stream, 2, v1::BARRIER_KIND_COMMIT, 20000);
  ASSERT_TRUE(stream->Finish().ok());
  const auto status = Settled("x.h5");
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_GT(status->history_bytes(), before);
  EXPECT_EQ(Row().history_bytes(), status->history_bytes());
}

TEST_F(ListDetailsTest, OnlyWhereTheyAreAskedFor) {
  Start();
  MirrorWhole("x.h5", "hello");
  const v1::FileSummary plain = List(/*details=*/false).files(0);
  EXPECT_FALSE(plain.has_last_writer());
  EXPECT_FALSE(plain.has_history_bytes());
  EXPECT_FALSE(plain.has_recent_writes());
  EXPECT_FALSE(plain.has_mirror());
  v1::ListFilesRequest forks;
  forks.set_forks_only(true);
  forks.set_details(true);
  EXPECT_EQ(client_->ListFiles(forks)->files_size(), 0) << "a choice stays one";
}

TEST_F(ListDetailsTest, PagesAreThoseOfAPlainList) {
  Start();
  for (const char* name : {"a.h5", "b/c.h5", "d.h5"}) MirrorWhole(name, "hello");
  const v1::ListFilesResponse first = List(true, 2);
  EXPECT_THAT(Names(first), ElementsAre("a.h5", "b/c.h5"));
  EXPECT_EQ(first.next_page_token(), "b/c.h5");
  const v1::ListFilesResponse second = List(true, 2, first.next_page_token());
  EXPECT_THAT(Names(second), ElementsAre("d.h5"));
  EXPECT_EQ(second.next_page_token(), "");
}

TEST_F(ListDetailsTest, ADamagedFileHidesNoOther) {
  std::filesystem::create_directory(root() / "bad.h5.h5m");
  std::ofstream(root() / "bad.h5") << "head";
  std::ofstream(root() / "bad.h5.h5m/index") << "no index";
  Start();
  MirrorWhole("x.h5", "hello");
  const v1::ListFilesResponse list = List();
  ASSERT_THAT(Names(list), ElementsAre("bad.h5", "x.h5"));
  EXPECT_FALSE(list.files(0).has_mirror());
  EXPECT_EQ(list.files(1).last_writer().writer().claimed_user(), "alice");
}

// In whose haste each look at the time takes a second.
class HastyClock final : public Clock {
 public:
  absl::Time Now() override { return system_.Now(); }
  absl::Duration Monotonic() override {
    if (is_hasty) ++seconds_;
    return system_.Monotonic() + absl::Seconds(seconds_.load());
  }
  std::atomic<bool> is_hasty{false};

 private:
  SystemClock system_;
  std::atomic<int> seconds_{0};
};

class LongListTest : public ListDetailsTest {
 protected:
  HastyClock hasty_;  // The server ends before it: TearDown().
};

TEST_F(LongListTest, APageEndsWhereLooksTakeLong) {
  server_ = *MirrorServer::Start(config_, *store_, hasty_);
  options_.server = options_.target = server_->addresses().front();
  options_.loopback = true;
  Connect();
  std::vector<std::string> all;
  for (int i = 0; i < 6; ++i) MirrorWhole(all.emplace_back(StrCat("f", i, ".h5")), "hello");
  std::vector<std::string> told;
  std::string token;
  int pages = 0;
  hasty_.is_hasty = true;
  do {
    const v1::ListFilesResponse page = List(true, 0, token);
    EXPECT_GE(page.files_size(), 1);
    for (const std::string& name : Names(page)) told.push_back(name);
    token = page.next_page_token();
  } while (!token.empty() && ++pages < 10);
  hasty_.is_hasty = false;
  EXPECT_EQ(told, all);
  EXPECT_GT(pages, 1);
}

TEST_F(ListDetailsTest, HttpTellsTheSame) {
  Start();
  MirrorWhole("x.h5", "hello");
  AwaitReceived(5);
  const auto list = nlohmann::json::parse(Get("/v1/files?details=true").body, nullptr,
                                          /*allow_exceptions=*/false);
  ASSERT_EQ(list["files"].size(), 1u) << list;
  const auto& row = list["files"][0];
  EXPECT_EQ(row["last_writer"]["writer"]["claimed_user"], "alice");
  EXPECT_EQ(row["history_bytes"], std::to_string(Row().history_bytes()));
  EXPECT_EQ(row["recent_writes"]["interval_seconds"], 5);
  EXPECT_EQ(row["recent_writes"]["received_bytes"].size(), 60u);
  EXPECT_EQ(Get("/v1/files?details=perhaps").status, 400);
}

TEST_F(ListDetailsTest, AFileThatOneMayNotReadTellsNothing) {
  AddTokens({"anna", "bob"});
  AccessRule own = HttpRule("**", {}, "read,write");
  own.owners = {"${user}"};
  config_.access = {own};
  options_.token = tokens_.at("anna");
  Start();
  MirrorWhole("anna.h5", "hello");
  options_.token = tokens_.at("bob");
  Connect();
  EXPECT_EQ(List().files_size(), 0);
  MirrorWhole("bob.h5", "hello");
  EXPECT_THAT(Names(List()), ElementsAre("bob.h5"));
}

}  // namespace
}  // namespace h5mirror::server
