// The HTTP door of the whole server, by raw sockets: also for what no HTTP client would send.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/owned_fd.h"
#include "nlohmann/json.hpp"
#include "server/http/event_stream.h"
#include "server/settings/token_file.h"
#include "server/testing/http_fixture.h"

namespace h5mirror::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

TEST_F(HttpTest, GivesAFileAndEachOfItsVersions) {
  Start();
  MirrorWhole("a/b.h5", "first");
  ReplaceWhole("a/b.h5", "second!");

  const HttpReply newest = Get("/f/a/b.h5");
  EXPECT_EQ(newest.status, 200);
  EXPECT_EQ(newest.body, "second!");
  EXPECT_THAT(newest.headers.at("etag"), StartsWith("\"v2-"));
  EXPECT_EQ(newest.headers.at("accept-ranges"), "bytes");
  EXPECT_EQ(newest.headers.at("h5mirror-version"), "2");
  EXPECT_EQ(Get("/f/a%2Fb.h5@1").body, "first");
  EXPECT_EQ(Get("/f/a/b.h5@latest-1").body, "first");
  EXPECT_EQ(Get("/f/a/b.h5@2").headers.at("etag"), newest.headers.at("etag"));
}

TEST_F(HttpTest, HeadHasTheHeadersAndNoBody) {
  Start();
  MirrorWhole("a.h5", "hello");
  const HttpReply head = Ask("HEAD", "/f/a.h5", "Range: bytes=0-1\r\n");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.at("content-length"), "5");
  EXPECT_EQ(head.headers.at("etag"), Get("/f/a.h5").headers.at("etag"));
  EXPECT_EQ(head.body, "");
}

TEST_F(HttpTest, GivesRanges) {
  Start();
  MirrorWhole("a.h5", "0123456789");
  const HttpReply one = Get("/f/a.h5", "Range: bytes=2-4\r\n");
  EXPECT_EQ(one.status, 206);
  EXPECT_EQ(one.body, "234");
  EXPECT_EQ(one.headers.at("content-range"), "bytes 2-4/10");
  const HttpReply many = Get("/f/a.h5", "Range: bytes=0-0,-2\r\n");
  EXPECT_EQ(many.status, 206);
  EXPECT_THAT(many.headers.at("content-type"), StartsWith("multipart/byteranges; boundary="));
  EXPECT_THAT(many.body, AllOf(HasSubstr("bytes 0-0/10\r\n\r\n0\r\n"),
                               HasSubstr("bytes 8-9/10\r\n\r\n89\r\n")));
  EXPECT_EQ(many.headers.at("content-length"), StrCat(many.body.size()));
  const HttpReply none = Get("/f/a.h5", "Range: bytes=10-\r\n");
  EXPECT_EQ(none.status, 416);
  EXPECT_EQ(none.headers.at("content-range"), "bytes */10");
  EXPECT_EQ(Get("/f/a.h5", "Range: pages=1-2\r\n").body, "0123456789");
}

TEST_F(HttpTest, AnEmptyFileHasABodyOfNothing) {
  Start();
  auto stream = Open("a.h5", v1::INTENT_CREATE);
  Cut(*stream, 1, v1::BARRIER_KIND_COMMIT, 0);
  ASSERT_TRUE(stream->Finish().ok());
  EXPECT_EQ(Get("/f/a.h5").status, 200);
  EXPECT_EQ(Get("/f/a.h5").headers.at("content-length"), "0");
  EXPECT_EQ(Get("/f/a.h5", "Range: bytes=0-\r\n").status, 416);
}

TEST_F(HttpTest, ConditionsCount) {
  Start();
  MirrorWhole("a.h5", "hello");
  const std::string etag = Get("/f/a.h5").headers.at("etag");
  const std::string other = "\"v9" + etag.substr(3);
  const HttpReply same = Get("/f/a.h5", "If-None-Match: " + etag + "\r\n");
  EXPECT_EQ(same.status, 304);
  EXPECT_EQ(same.headers.at("etag"), etag);
  EXPECT_EQ(same.headers.at("content-length"), "5");  // of the answer that was not sent
  EXPECT_EQ(same.body, "");
  EXPECT_EQ(Get("/f/a.h5", "If-None-Match: " + other + "\r\n").status, 200);
  EXPECT_EQ(Get("/f/a.h5", "If-Match: " + etag + "\r\n").status, 200);
  EXPECT_EQ(Get("/f/a.h5", "If-Match: " + other + "\r\n").status, 412);
  const std::string range = "Range: bytes=1-2\r\nIf-Range: ";
  EXPECT_EQ(Get("/f/a.h5", range + etag + "\r\n").body, "el");
  EXPECT_EQ(Get("/f/a.h5", range + other + "\r\n").body, "hello");
}

TEST_F(HttpTest, ACutOfAnOpenFileIsHeldForItsTag) {
  Start();
  auto stream = Open("a.h5", v1::INTENT_CREATE);
  Write(*stream, 0, "cut one");
  Cut(*stream, 1, v1::BARRIER_KIND_TICK, 7);
  const HttpReply first = Get("/f/a.h5");
  ASSERT_EQ(first.status, 200);
  EXPECT_EQ(first.body, "cut one");
  const std::string etag = first.headers.at("etag");
  EXPECT_THAT(etag, StartsWith("\"c"));

  Write(*stream, 0, "cut two");
  Cut(*stream, 2, v1::BARRIER_KIND_TICK, 7);
  EXPECT_EQ(Get("/f/a.h5").body, "cut two");
  EXPECT_NE(Get("/f/a.h5").headers.at("etag"), etag);
  const HttpReply same = Get("/f/a.h5", "If-Match: " + etag + "\r\nRange: bytes=4-6\r\n");
  EXPECT_EQ(same.status, 206);
  EXPECT_EQ(same.body, "one");
  EXPECT_EQ(same.headers.at("etag"), etag);
  EXPECT_EQ(Get("/f/a.h5", "If-Range: " + etag + "\r\nRange: bytes=4-6\r\n").body, "one");

  // Of another start of the server, whose cuts may have the same numbers.
  std::string stale = etag;
  stale[stale.size() - 2] = stale[stale.size() - 2] == '0' ? '1' : '0';
  EXPECT_EQ(Get("/f/a.h5", "If-Match: " + stale + "\r\n").status, 412);
  EXPECT_EQ(Get("/f/a.h5", "If-Range: " + stale + "\r\nRange: bytes=4-6\r\n").body, "cut two");
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(HttpTest, WhatIsNotThereIsNotFound) {
  Start();
  MirrorWhole("a.h5", "hello");
  EXPECT_EQ(Get("/f/b.h5").status, 404);
  EXPECT_EQ(Get("/f/a.h5@7").status, 404);
  EXPECT_EQ(Get("/f/a.h5@tag:none").status, 404);
  EXPECT_EQ(Get("/").status, 404);
  EXPECT_EQ(Get("/metrics").status, 404);
  EXPECT_THAT(Get("/f/b.h5").body, HasSubstr("\"code\": \"NOT_FOUND\""));
}

TEST_F(HttpTest, NoPathLeavesTheRoot) {
  Start();
  MirrorWhole("a.h5", "hello");
  directory_.Write("secret", "not yours");
  for (const char* path : {"/f/../secret", "/f/%2e%2e/secret", "/f/..%2fsecret", "/f//etc/passwd",
                           "/f/%2Fetc/passwd", "/f/a.h5.h5m/index", "/f/", "/f/a.h5%00",
                           "/f/./a.h5", "/f/a.h5@", "/f/a.h5@0", "/f/a.h5@../../secret"}) {
    const HttpReply answer = Get(path);
    EXPECT_EQ(answer.status, 400) << path;
    EXPECT_THAT(answer.body, Not(HasSubstr("not yours"))) << path;
  }
}

TEST_F(HttpTest, OtherMethodsAndBodiesAreRefused) {
  Start();
  MirrorWhole("a.h5", "hello");
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"}) {
    const HttpReply answer = Ask(method, "/f/a.h5");
    EXPECT_EQ(answer.status, 405) << method;
    EXPECT_EQ(answer.headers.at("allow"), "GET, HEAD");
  }
  EXPECT_EQ(Get("/f/a.h5", "Content-Length: 5\r\n").status, 413);
  EXPECT_EQ(Get("/f/a.h5", "Transfer-Encoding: chunked\r\n").status, 413);
  EXPECT_EQ(Get("/f/a.h5", "Content-Length: 0\r\n").status, 200);
}

TEST_F(HttpTest, HeadersThatAreTooLongAreRefused) {
  Start();
  MirrorWhole("a.h5", "hello");
  const OwnedFd fd = Dial();
  const std::string request = StrCat(
      "GET /f/a.h5 HTTP/1.1\r\nHost: localhost\r\nX-Long: ", std::string(100'000, 'x'), "\r\n\r\n");
  // The server may close before it has all, and what it has not read resets the connection.
  static_cast<void>(send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL));
  const int status = Parse(Receive(fd)).status;
  EXPECT_TRUE(status == 431 || status == 0) << status;
  EXPECT_EQ(Get("/f/a.h5").status, 200);
}

TEST_F(HttpTest, AConnectionServesOneRequestAfterTheOther) {
  Start();
  MirrorWhole("a.h5", "hello");
  const OwnedFd fd = Dial();
  const std::string get = "GET /f/a.h5 HTTP/1.1\r\nHost: localhost\r\n";
  Send(fd, get + "\r\n" + get + "Range: bytes=0-0\r\n\r\n" + get + "Connection: close\r\n\r\n");
  const std::string all = Receive(fd);
  EXPECT_THAT(all, AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("\r\n\r\nhelloHTTP/1.1 206 "),
                         HasSubstr("\r\n\r\nhHTTP/1.1 200 ")));
  EXPECT_TRUE(all.ends_with("\r\n\r\nhello"));
}

TEST_F(HttpTest, AWholeUrlAsTheTargetIsItsPath) {
  Start();
  MirrorWhole("a.h5", "hello");
  EXPECT_EQ(Get("http://localhost:7448/f/a.h5").body, "hello");
  EXPECT_EQ(Get("HTTP://127.0.0.1/f/a.h5@1").body, "hello");
  EXPECT_EQ(Get("http://localhost").status, 404);
  EXPECT_EQ(Get("http://evil.example/f/a.h5").status, 421);
}

// A page of another site lets its name point here, and asks by that name.
TEST_F(HttpTest, WithoutTokensOnlyNamesOfThisHostAreServed) {
  Start();
  MirrorWhole("a.h5", "hello");
  for (const char* host : {"evil.example", "evil.example:7448", "127.0.0.1.evil.example"}) {
    const OwnedFd fd = Dial();
    Send(fd, StrCat("GET /f/a.h5 HTTP/1.1\r\nHost: ", host, "\r\nConnection: close\r\n\r\n"));
    EXPECT_EQ(Parse(Receive(fd)).status, 421) << host;
  }
  const OwnedFd fd = Dial();
  Send(fd, "GET /f/a.h5 HTTP/1.1\r\nHost: [::1]:7448\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(Parse(Receive(fd)).status, 200);
}

TEST_F(HttpTest, ALongBodyComesWhole) {
  Start();
  std::string data;
  for (int i = 0; data.size() < 3 << 20; ++i) StrAppend(&data, i, " ");
  MirrorLong("a.h5", data);
  EXPECT_EQ(Get("/f/a.h5").body, data);
  EXPECT_EQ(Get("/f/a.h5", "Range: bytes=1000000-2999999\r\n").body,
            data.substr(1'000'000, 2'000'000));
}

TEST_F(HttpTest, AClientThatDoesNotReadHoldsUpNoStop) {
  Start();
  MirrorLong("a.h5", std::string(32 << 20, 'x'));
  const OwnedFd slow = Dial();
  Send(slow, "GET /f/a.h5 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  char first = 0;
  ASSERT_EQ(recv(slow.get(), &first, 1, 0), 1);
  const OwnedFd half = Dial();
  Send(half, "GET /f/a.h5 HT");
  const absl::Duration begin = clock_.Monotonic();
  client_.reset();
  server_.reset();
  EXPECT_LT(clock_.Monotonic() - begin, absl::Seconds(10));
  EXPECT_LT(Receive(slow).size(), size_t{32} << 20);
}

TEST_F(HttpTest, TellsOfFilesInPages) {
  Start();
  for (const char* name : {"a/1.h5", "a/2.h5", "b.h5"}) MirrorWhole(name, "hello");
  const HttpReply all = Get("/v1/files");
  EXPECT_EQ(all.status, 200);
  EXPECT_EQ(all.headers.at("content-type"), "application/json");
  EXPECT_THAT(all.body, AllOf(HasSubstr("\"a/1.h5\""), HasSubstr("\"b.h5\"")));
  EXPECT_THAT(Get("/v1/files?directory=a").body, Not(HasSubstr("b.h5")));
  EXPECT_THAT(Get("/v1/files?match=*.h5").body, AllOf(HasSubstr("b.h5"), Not(HasSubstr("a/1.h5"))));
  const HttpReply first = Get("/v1/files?page_size=1");
  EXPECT_THAT(first.body,
              AllOf(HasSubstr("\"next_page_token\": \"a/1.h5\""), Not(HasSubstr("a/2.h5"))));
  EXPECT_THAT(Get("/v1/files?page_size=1&page_token=a%2F1.h5").body, HasSubstr("\"a/2.h5\""));
  for (const char* query : {"page_size=x", "page_size=0", "state=HAPPY", "forks=1", "what=1",
                            "match=", "page_token=..%2F", "directory=.."}) {
    EXPECT_EQ(Get(StrCat("/v1/files?", query)).status, 400) << query;
  }
}

TEST_F(HttpTest, DescribesItselfInJson) {
  Start();
  const HttpReply answer = Get("/v1/openapi.json");
  EXPECT_EQ(answer.status, 200);
  const auto document = nlohmann::json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(document.is_object()) << answer.body;
  EXPECT_EQ(document["openapi"], "3.0.3");
  for (const char* path : {"/f/{name}", "/f/{name}@{version}", "/v1/files", "/v1/files/{name}",
                           "/v1/files/{name}/versions", "/v1/files/{name}/events"}) {
    EXPECT_TRUE(document["paths"].contains(path)) << path;
  }
  for (const char* schema : {"FileStatus", "ListFilesResponse", "SourceVersion"}) {
    EXPECT_TRUE(document["components"]["schemas"].contains(schema)) << schema;
  }
}

TEST_F(HttpTest, TellsOfAFileAndItsVersions) {
  Start();
  MirrorWhole("a/events", "hello");
  const HttpReply status = Get("/v1/files/a%2Fevents");
  EXPECT_EQ(status.status, 200);
  EXPECT_THAT(status.body,
              AllOf(HasSubstr("\"name\": \"a/events\""), HasSubstr("\"version_count\": \"1\"")));
  const HttpReply versions = Get("/v1/files/a%2Fevents/versions");
  EXPECT_THAT(versions.body, HasSubstr("\"version\": \"1\""));
  EXPECT_EQ(Get("/v1/files/b.h5").status, 404);
  EXPECT_EQ(Get("/v1/files/b.h5/versions").status, 404);
  EXPECT_EQ(Get("/v1/files/b.h5/events").status, 404);
  EXPECT_EQ(Get("/v1/files/..").status, 400);
}

TEST_F(HttpTest, TellsTheVersionThatAForkBeganWith) {
  Start();
  MirrorWhole("run.h5", "hello");
  v1::ForkVersionRequest fork;
  fork.set_name("run.h5");
  fork.set_version(1);
  fork.set_new_name("trial.h5");
  fork.set_request_id(std::string(16, 'f'));
  const auto made = client_->ForkVersion(fork, absl::Seconds(60));
  ASSERT_TRUE(made.ok()) << made.status();
  const auto json = [this](const std::string& path) {
    return nlohmann::json::parse(Get(path).body, nullptr, /*allow_exceptions=*/false);
  };
  const auto status = json("/v1/files/trial.h5");
  EXPECT_EQ(status["forked_from"]["name"], "run.h5");
  EXPECT_EQ(status["forked_from"]["version"], "1");
  EXPECT_FALSE(json("/v1/files/run.h5").contains("forked_from"));
  const auto list = json("/v1/files?forks=true");
  ASSERT_EQ(list["files"].size(), 1u) << list;
  EXPECT_EQ(list["files"][0]["name"], "trial.h5");
  EXPECT_EQ(list["files"][0]["forked_from"], status["forked_from"]);
  EXPECT_EQ(json("/v1/files?forks=false")["files"].size(), 2u);
  EXPECT_EQ(json("/v1/files?forks=true&state=DIVERGED")["files"].size(), 0u);
}

TEST_F(HttpTest, ALongListComesWhole) {
  Start();
  const std::string name(200, 'n');
  for (int i = 0; i < 60; ++i) MirrorWhole(StrCat(name, i, ".h5"), "hello");
  const HttpReply all = Get("/v1/files");
  EXPECT_GT(all.body.size(), size_t{16} << 10);
  EXPECT_EQ(all.headers.at("content-length"), StrCat(all.body.size()));
  const auto list = nlohmann::json::parse(all.body, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(list.is_object()) << all.body;
  EXPECT_EQ(list["files"].size(), 60u);
  const HttpReply head = Ask("HEAD", "/v1/files");
  EXPECT_EQ(head.headers.at("content-length"), all.headers.at("content-length"));
  EXPECT_EQ(head.body, "");
}

TEST_F(HttpTest, AHeaderThatCountsOnceComesOnce) {
  Start();
  MirrorWhole("a.h5", "hello");
  EXPECT_EQ(Get("/f/a.h5", "Content-Length: 0\r\nContent-Length: 44\r\n").status, 400);
  EXPECT_EQ(Get("/f/a.h5", "Host: evil.example\r\n").status, 400);
  EXPECT_EQ(Get("/f/a.h5", "Range: bytes=0-0\r\nRange: bytes=1-1\r\n").status, 400);
}

TEST_F(HttpTest, AListMayComeInSeveralLines) {
  Start();
  MirrorWhole("a.h5", "hello");
  const std::string tag = Get("/f/a.h5").headers.at("etag");
  const std::string two = StrCat("If-None-Match: \"other\"\r\nIf-None-Match: ", tag, "\r\n");
  EXPECT_EQ(Get("/f/a.h5", two).status, 304);
}

TEST_F(HttpTest, IfRangeWithoutARangeCountsForNothing) {
  Start();
  MirrorWhole("a.h5", "first");
  const std::string old = StrCat("If-Range: ", Get("/f/a.h5").headers.at("etag"), "\r\n");
  ReplaceWhole("a.h5", "second");
  EXPECT_EQ(Get("/f/a.h5", old).body, "second");
  EXPECT_EQ(
      Ask("HEAD", "/f/a.h5", StrCat(old, "Range: bytes=0-0\r\n")).headers.at("content-length"),
      "6");
  EXPECT_EQ(Get("/f/a.h5", StrCat(old, "Range: bytes=0-1\r\n")).body, "fi");
}

// With gRPC's 10 s a client that rests between two reads of a body would lose its connection.
TEST_F(HttpTest, AClientMayRestAsLongAsAConnectionMay) {
  Start();
  const OwnedFd fd = Dial();
  Send(fd, "GET /v1/files HTTP/1.1\r\nHost: localhost\r\n\r\n");
  std::string all;
  ReadUntil(fd, "200", all);
  const int port = server_->http_ports().front();
  int looked_at = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(each.path().filename().string());
    sockaddr_in here{};
    socklen_t length = sizeof(here);
    sockaddr_storage there{};
    socklen_t there_length = sizeof(there);
    if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&here), &length) != 0 ||
        here.sin_family != AF_INET || ntohs(here.sin_port) != port ||
        getpeername(descriptor, reinterpret_cast<sockaddr*>(&there), &there_length) != 0) {
      continue;
    }
    unsigned patience_ms = 0;
    socklen_t size = sizeof(patience_ms);
    ASSERT_EQ(getsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, &size), 0);
    EXPECT_EQ(patience_ms, 60'000u);
    ++looked_at;
  }
  EXPECT_GT(looked_at, 0);
}

TEST_F(HttpTest, AQueryOfTooManyArgumentsIsRefusedAndCut) {
  Start();
  std::string query = "/v1/files?a=b";
  for (int i = 0; i < 500; ++i) query += "&a=b";
  const auto refused = Get(query);
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("a query has at most 100 arguments"));
  EXPECT_EQ(Get("/v1/files?page_size=1").status, 200);
}

class HttpEventsTest : public HttpTest {};

TEST_F(HttpEventsTest, TellsTheStateAndThenEachVersion) {
  Start();
  MirrorWhole("a.h5", "one");
  const OwnedFd fd = Follow("a.h5");
  std::string all;
  ReadUntil(fd, "event: state\n", all);
  EXPECT_THAT(all, AllOf(HasSubstr("text/event-stream"), Not(HasSubstr("event: version"))));
  ReplaceWhole("a.h5", "two");
  ReadUntil(fd, "event: version\n", all);
  ReadUntil(fd, "\"version\":\"2\"", all);
}

TEST_F(HttpEventsTest, GoesOnFromTheLastEvent) {
  Start();
  MirrorWhole("a.h5", "one");
  ReplaceWhole("a.h5", "two");
  const std::string id = HexOf(*FromByteString(Settled("a.h5")->file_id()));
  const OwnedFd fd = Follow("a.h5", StrCat("Last-Event-ID: ", id, "-1-1\r\n"));
  std::string all;
  ReadUntil(fd, "event: state\n", all);
  EXPECT_LT(all.find("event: version\n"), all.find("event: state\n"));
  const OwnedFd other = Follow("a.h5", StrCat("Last-Event-ID: ", std::string(32, '0'), "-1-1\r\n"));
  std::string of_other;
  ReadUntil(other, "event: state\n", of_other);
  EXPECT_THAT(of_other, Not(HasSubstr("event: version")));
}

TEST_F(HttpEventsTest, HeadHasNoSizeAndNoBody) {
  Start();
  MirrorWhole("a.h5", "one");
  const HttpReply head = Ask("HEAD", "/v1/files/a.h5/events");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.at("content-type"), "text/event-stream");
  EXPECT_EQ(head.headers.count("content-length"), 0u);
  EXPECT_EQ(head.body, "");
}

TEST_F(HttpEventsTest, AStreamHoldsUpNoStop) {
  Start();
  MirrorWhole("a.h5", "one");
  std::vector<OwnedFd> streams;
  for (int i = 0; i < 50; ++i) streams.push_back(Follow("a.h5"));
  std::string all;
  ReadUntil(streams.back(), "event: state\n", all);
  const absl::Duration begin = clock_.Monotonic();
  client_.reset();
  server_.reset();
  EXPECT_LT(clock_.Monotonic() - begin, absl::Seconds(10));
}

TEST_F(HttpEventsTest, AClientThatHangsUpGivesItsPlaceBackSoon) {
  Start();
  MirrorWhole("a.h5", "one");
  const auto descriptors = [] {
    using Entry = std::filesystem::directory_iterator;
    return std::distance(Entry("/proc/self/fd"), Entry());
  };
  std::vector<OwnedFd> streams;
  std::string all;
  const auto before = descriptors();
  for (int i = 0; i < 20; ++i) streams.push_back(Follow("a.h5"));
  ReadUntil(streams.back(), "event: state\n", all);
  ReadUntil(streams.front(), "event: state\n", all);
  streams.clear();
  // The client is another one of the server's, so a few may come and go meanwhile.
  const absl::Duration begin = clock_.Monotonic();
  while (descriptors() > before + 10) {
    ASSERT_LT(clock_.Monotonic() - begin, EventStream::kHeartbeat);
    absl::SleepFor(absl::Milliseconds(5));
  }
}

class HttpRightsTest : public HttpTest {
 protected:
  void SetUp() override {
    HttpTest::SetUp();
    AddTokens({"anna", "bob"});
    config_.access = {HttpRule("home/anna/**", {"anna"}, "read,write"),
                      HttpRule("home/bob/**", {"bob"}, "write")};
    config_.audit_log = directory_.path() / "audit.jsonl";
    options_.token = tokens_.at("anna");
    Start();
    MirrorWhole("home/anna/a.h5", "hello");
  }
};

TEST_F(HttpRightsTest, ATokenIsWanted) {
  EXPECT_EQ(Get("/f/home/anna/a.h5", As("anna")).body, "hello");
  const HttpReply without = Get("/f/home/anna/a.h5");
  EXPECT_EQ(without.status, 401);
  EXPECT_THAT(without.headers.at("www-authenticate"), StartsWith("Bearer"));
  EXPECT_THAT(without.body, HasSubstr("sends the header `Authorization: Bearer TOKEN`"));
  EXPECT_EQ(Get("/f/home/anna/a.h5", "Authorization: Bearer nonsense\r\n").status, 401);
  EXPECT_EQ(Get("/f/home/anna/a.h5", "Authorization: Basic YTpi\r\n").status, 401);
}

TEST_F(HttpRightsTest, AStrangerHearsTheSameOfAHiddenAndOfAMissingFile) {
  const HttpReply hidden = Get("/f/home/anna/a.h5", As("bob"));
  const HttpReply missing = Get("/f/home/anna/b.h5", As("bob"));
  EXPECT_EQ(hidden.status, 404);
  EXPECT_EQ(missing.status, 404);
  std::string body = missing.body;
  body.replace(body.find("b.h5"), 4, "a.h5");
  EXPECT_EQ(hidden.body, body);
}

TEST_F(HttpRightsTest, AListLeavesOutWhatACallerMayNotRead) {
  EXPECT_THAT(Get("/v1/files", As("anna")).body, HasSubstr("home/anna/a.h5"));
  EXPECT_THAT(Get("/v1/files", As("bob")).body, Not(HasSubstr("anna")));
  EXPECT_EQ(Get("/v1/files").status, 401);
  for (const char* path : {"/v1/files/home/anna/a.h5", "/v1/files/home/anna/a.h5/versions",
                           "/v1/files/home/anna/a.h5/events"}) {
    EXPECT_EQ(Get(path, As("bob")).status, 404) << path;
    EXPECT_EQ(Get(path).status, 401) << path;
  }
}

TEST_F(HttpRightsTest, ACallerWithOtherRightsIsTold) {
  EXPECT_EQ(Get("/f/home/bob/x.h5", As("bob")).status, 403);
}

TEST_F(HttpRightsTest, EachReadHasALineInTheAuditLog) {
  EXPECT_EQ(Get("/f/home/anna/a.h5@1", As("anna")).body, "hello");
  EXPECT_EQ(Get("/f/home/anna/a.h5", As("bob")).status, 404);
  EXPECT_EQ(Get("/f/home/anna/a.h5").status, 401);
  EXPECT_EQ(Get("/f/home/anna/a.h5", As("anna") + "If-None-Match: *\r\n").status, 304);
  client_.reset();
  server_.reset();  // Writes what is left.
  const std::string lines = *ReadSmallFile(config_.audit_log);
  std::vector<std::pair<std::string, int>> reads;  // The user, and the status of the answer.
  for (const absl::string_view each : absl::StrSplit(lines, '\n')) {
    const std::string line(each);
    if (line.find("HttpGetFile") == std::string::npos) continue;
    EXPECT_THAT(line, HasSubstr("home/anna/a.h5"));
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(record.is_object()) << line;
    reads.emplace_back(record.value("user", "?"), record.value("http_status", 0));
  }
  EXPECT_THAT(reads, UnorderedElementsAre(Pair("anna", 200), Pair("bob", 404), Pair("", 401),
                                          Pair("anna", 304)));
}

TEST_F(HttpRightsTest, ARemovedTokenReadsNothingMore) {
  ASSERT_TRUE(RemoveToken(config_.tokens_file, "bob").ok());
  ASSERT_TRUE(server_->ReloadTokens().ok());
  EXPECT_EQ(Get("/f/home/bob/x.h5", As("bob")).status, 401);
  EXPECT_EQ(Get("/f/home/anna/a.h5", As("anna")).status, 200);
}

}  // namespace
}  // namespace h5mirror::server
