// HTTP where [[access]] tables name owners: a name may get another file while a request is under
// way.
#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/testing/hooked_store.h"
#include "server/testing/http_fixture.h"

namespace h5mirror::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Paths of one file, whose name comes in between.
constexpr std::pair<const char*, const char*> kPaths[] = {{"/f/", ""},
                                                          {"/f/", "@1"},
                                                          {"/v1/files/", ""},
                                                          {"/v1/files/", "/versions"},
                                                          {"/v1/files/", "/events"}};

class HttpOwnersTest : public HttpTest {
 protected:
  void SetUp() override {
    HttpTest::SetUp();
    hooked_ = HookedStore::PutBefore(store_);
    AddTokens({"anna", "bob", "guest"});
    AccessRule own = HttpRule("shared/**", {}, "read,write,delete");
    own.owners = {"${user}"};
    config_.access = {HttpRule("shared/**", {"guest"}, "operate"), own};
    options_.token = tokens_.at("anna");
    Start();
    MirrorWhole("shared/a.h5", "anna's");
    Be("bob");
    MirrorWhole("shared/b.h5", "bob's");
  }
  void Be(const std::string& name) {
    options_.token = tokens_.at(name);
    Connect();
  }
  void MoveInside(const std::string& from, const std::string& to) {
    const absl::Status moved = hooked_->inner().Move(from, to);
    EXPECT_TRUE(moved.ok()) << moved;
  }
  // Anna's file takes the name of bob's.
  void SwapIn() {
    MoveInside("shared/b.h5", "shared/away.h5");
    MoveInside("shared/a.h5", "shared/b.h5");
  }
  void SwapOut() {
    MoveInside("shared/b.h5", "shared/a.h5");
    MoveInside("shared/away.h5", "shared/b.h5");
  }
  // The status and what has come with the headers: an event stream has no end.
  HttpReply Begin(const std::string& path, const std::string& headers) const {
    const OwnedFd fd = Dial();
    Send(fd, StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n", headers, "\r\n"));
    std::string all;
    ReadUntil(fd, "\r\n\r\n", all);
    return Parse(all);
  }
  // False: `text` has come, or nothing for long.
  static bool ClosesBefore(const OwnedFd& fd, const std::string& text) {
    std::string all;
    char buffer[4096];
    const absl::Time until = absl::Now() + absl::Seconds(60);
    while (all.find(text) == std::string::npos && absl::Now() < until) {
      const ssize_t count = recv(fd.get(), buffer, sizeof(buffer), 0);
      if (count <= 0) return count == 0 || errno == ECONNRESET;
      all.append(buffer, static_cast<size_t>(count));
    }
    return false;
  }

  HookedStore* hooked_ = nullptr;  // store_ owns it
};

TEST_F(HttpOwnersTest, OnlyTheOwnerReads) {
  for (const auto& [before, after] : kPaths) {
    const std::string path = StrCat(before, "shared/a.h5", after);
    EXPECT_EQ(Begin(path, As("anna")).status, 200) << path;
    EXPECT_EQ(Begin(path, As("bob")).status, 404) << path;
  }
  const HttpReply list = Get("/v1/files", As("bob"));
  EXPECT_THAT(list.body, AllOf(HasSubstr("shared/b.h5"), Not(HasSubstr("shared/a.h5"))));
}

// An open waits for a move that is under way, and so the first check was of another file. Nobody
// tells of the move here: only the second check is left.
TEST_F(HttpOwnersTest, AFileThatTakesTheNameMeanwhileIsNotGiven) {
  hooked_->MuteOwners();
  for (const auto& [before, after] : kPaths) {
    const std::string path = StrCat(before, "shared/b.h5", after);
    hooked_->BeforeOpen("shared/b.h5", [this] { SwapIn(); });
    const HttpReply reply = Begin(path, As("bob"));
    EXPECT_EQ(reply.status, 404) << path;
    EXPECT_EQ(reply.headers.count("etag"), 0u) << path;
    EXPECT_THAT(reply.body, Not(HasSubstr("anna"))) << path;
    ASSERT_TRUE(hooked_->has_acted()) << path;
    SwapOut();
  }
}

// What an error says is of another's file, too.
TEST_F(HttpOwnersTest, AnErrorTellsNothingOfAFileThatTakesTheNameMeanwhile) {
  hooked_->MuteOwners();
  hooked_->BeforeOpen("shared/b.h5", [this] { SwapIn(); });
  const HttpReply reply = Get("/f/shared/b.h5@9", As("bob"));
  EXPECT_EQ(reply.status, 404);
  EXPECT_THAT(reply.body, HasSubstr("has no right to it"));
  EXPECT_TRUE(hooked_->has_acted());
}

TEST_F(HttpOwnersTest, AnEventStreamTellsNothingOfTheNextFileOfItsName) {
  hooked_->MuteOwners();
  const OwnedFd fd = Follow("shared/b.h5", As("bob"));
  std::string all;
  ReadUntil(fd, "event: state\n", all);
  ReadUntil(fd, "\n\n", all);
  SwapIn();
  Be("anna");
  ReplaceWhole("shared/b.h5", "anna's, too");
  EXPECT_TRUE(ClosesBefore(fd, "event: state\n"));
}

TEST_F(HttpOwnersTest, AnotherOwnerEndsBodiesAndEventStreams) {
  MirrorLong("shared/long.h5", std::string(32 << 20, 'x'));
  const OwnedFd body = Dial();
  Send(body, StrCat("GET /f/shared/long.h5 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n",
                    As("bob"), "\r\n"));
  char first = 0;
  ASSERT_EQ(recv(body.get(), &first, 1, 0), 1);
  const OwnedFd events = Follow("shared/long.h5", As("bob"));
  std::string all;
  ReadUntil(events, "event: state\n", all);
  v1::SetFileOwnerRequest request;
  request.set_name("shared/long.h5");
  request.set_owner("token:anna");
  Be("guest");
  const auto given = client_->SetFileOwner(request);
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_LT(Receive(body).size(), size_t{32} << 20);
  EXPECT_TRUE(ClosesBefore(events, "token:anna"));
  EXPECT_EQ(Begin("/f/shared/long.h5", As("bob")).status, 404);
  EXPECT_EQ(Begin("/f/shared/long.h5", As("anna")).status, 200);
}

TEST_F(HttpOwnersTest, AnEventStreamOutlastsADiskThatDoesNotSayWhoseTheFileIs) {
  auto writer = Open("shared/b.h5", v1::INTENT_REPLACE);
  Write(*writer, 0, "more");
  Cut(*writer, 1, v1::BARRIER_KIND_TICK, 4);
  const OwnedFd fd = Follow("shared/b.h5", As("bob"));
  std::string all;
  ReadUntil(fd, "event: state\n", all);
  ReadUntil(fd, "\n\n", all);
  hooked_->FailOwners(true);
  Write(*writer, 0, "less");
  Cut(*writer, 2, v1::BARRIER_KIND_TICK, 4);
  std::string meanwhile;
  ReadUntil(fd, ": \n\n", meanwhile);
  EXPECT_THAT(meanwhile, Not(HasSubstr("event: ")));
  EXPECT_EQ(Begin("/f/shared/b.h5", As("bob")).status, 503);
  hooked_->FailOwners(false);
  std::string later;
  ReadUntil(fd, "event: state\n", later);
  EXPECT_TRUE(writer->Finish().ok());
}

// Cuts of a file that has gone may be pinned still, and the next one has the same numbers.
TEST_F(HttpOwnersTest, ATagGivesNoCutOfTheFileThatHadTheNameBefore) {
  const auto make = [this](const std::string& text) {
    auto stream = Open("shared/live.h5", v1::INTENT_CREATE);
    Write(*stream, 0, text);
    Cut(*stream, 1, v1::BARRIER_KIND_TICK, text.size());
    return stream;
  };
  Be("anna");
  auto stream = make("hers");
  const HttpReply hers = Get("/f/shared/live.h5", As("anna"));
  ASSERT_EQ(hers.body, "hers");
  const std::string etag = hers.headers.at("etag");
  EXPECT_THAT(etag, StartsWith("\"c"));
  ASSERT_TRUE(stream->Finish().ok());
  v1::RemoveFileRequest remove;
  remove.set_name("shared/live.h5");
  const auto removed = client_->RemoveFile(remove);
  ASSERT_TRUE(removed.ok()) << removed.status();
  const std::string if_match = StrCat("If-Match: ", etag, "\r\n");
  // The name is free: each of them could make a file there, and no more.
  for (const char* name : {"anna", "bob"}) {
    EXPECT_EQ(Get("/f/shared/live.h5", StrCat(As(name), if_match)).status, 404) << name;
  }

  Be("bob");
  stream = make("his!");
  const HttpReply his = Get("/f/shared/live.h5", As("bob"));
  EXPECT_EQ(his.body, "his!");
  EXPECT_EQ(his.headers.at("h5mirror-cut"), hers.headers.at("h5mirror-cut"));
  EXPECT_EQ(Get("/f/shared/live.h5", StrCat(As("bob"), if_match)).status, 412);
  EXPECT_EQ(
      Get("/f/shared/live.h5", StrCat(As("bob"), "If-Range: ", etag, "\r\nRange: bytes=0-1\r\n"))
          .body,
      "his!");
  EXPECT_EQ(Get("/f/shared/live.h5", StrCat(As("anna"), if_match)).status, 404);
  EXPECT_TRUE(stream->Finish().ok());
}

// A disk that does not answer.
TEST_F(HttpOwnersTest, AReadThatHangsHoldsAStopUpNoLongerThanItsTime) {
  absl::Notification hangs;
  absl::Notification goes_on;
  hooked_->BeforeOpen("shared/b.h5", [&] {
    hangs.Notify();
    goes_on.WaitForNotification();
  });
  const OwnedFd fd = Dial();
  Send(fd, StrCat("GET /f/shared/b.h5 HTTP/1.1\r\nHost: localhost\r\n", As("bob"), "\r\n"));
  hangs.WaitForNotification();
  const absl::Status stopped = server_->Stop(absl::Milliseconds(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(stopped)) << stopped;
  EXPECT_THAT(std::string(stopped.message()), HasSubstr("does not answer: 1"));
  goes_on.Notify();
  EXPECT_TRUE(server_->Stop(absl::Seconds(60)).ok());
}

}  // namespace
}  // namespace h5mirror::server
