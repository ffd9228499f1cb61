#include "base/curl_library.h"

#include <stdlib.h>

#include <algorithm>
#include <thread>

#include "base/testing/http_answerer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

HttpRequest PostTo(const HttpAnswerer& server) {
  HttpRequest request;
  request.method = HttpMethod::kPost;
  request.url = server.url();
  request.body = "{\"n\":1}";
  return request;
}

TEST(CurlLibraryTest, PostsBodyAndHeadersAndReturnsCodeAndBody) {
  HttpAnswerer server;
  server.Answer(503, "later");
  HttpRequest request = PostTo(server);
  request.headers = {"Content-Type: application/json", "X-Test: yes"};
  const absl::StatusOr<HttpAnswer> answer = CallHttp(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->code, 503);
  EXPECT_EQ(answer->body, "later");
  const std::string got = server.requests().at(0);
  EXPECT_THAT(got, StartsWith("POST /hook HTTP/1.1\r\n"));
  EXPECT_THAT(got, HasSubstr("\r\nContent-Type: application/json\r\nX-Test: yes\r\n"));
  EXPECT_THAT(got, EndsWith("\r\n\r\n{\"n\":1}"));
}

TEST(CurlLibraryTest, GetsWithoutABody) {
  HttpAnswerer server;
  HttpRequest request;
  request.url = server.url() + "?q=1";
  const absl::StatusOr<HttpAnswer> answer = CallHttp(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, "ok");
  EXPECT_THAT(server.requests().at(0), StartsWith("GET /hook?q=1 HTTP/1.1\r\n"));
}

TEST(CurlLibraryTest, FollowsNoRedirect) {
  HttpAnswerer elsewhere;
  HttpAnswerer server;
  server.Answer("HTTP/1.1 302 Found\r\nLocation: " + elsewhere.url() +
                "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  const absl::StatusOr<HttpAnswer> answer = CallHttp(PostTo(server));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->code, 302);
  EXPECT_TRUE(elsewhere.requests().empty());
}

TEST(CurlLibraryTest, AnswerLargerThanTheBoundIsRefused) {
  HttpAnswerer server;
  server.Answer(200, std::string(1001, 'x'));
  HttpRequest request = PostTo(server);
  request.max_answer_bytes = 1000;
  EXPECT_TRUE(absl::IsResourceExhausted(CallHttp(request).status()));
}

TEST(CurlLibraryTest, ServerThatNeverAnswersMeetsTheDeadline) {
  HttpAnswerer server;
  server.Answer("");
  HttpRequest request = PostTo(server);
  request.timeout = absl::Milliseconds(300);
  EXPECT_TRUE(absl::IsDeadlineExceeded(CallHttp(request).status()));
}

TEST(CurlLibraryTest, AnotherThreadEndsACall) {
  HttpAnswerer server;
  server.Answer("");
  std::atomic<bool> cancel = false;
  HttpRequest request = PostTo(server);
  request.timeout = absl::InfiniteDuration();
  request.cancel = &cancel;
  std::thread canceller([&] {
    EXPECT_TRUE(server.WaitForRequests(1));
    cancel = true;
  });
  EXPECT_TRUE(absl::IsCancelled(CallHttp(request).status()));
  canceller.join();
}

TEST(CurlLibraryTest, RefusedConnectionIsUnavailableAndHidesThePath) {
  HttpRequest request;
  {
    const HttpAnswerer gone;
    request.url = gone.url() + "/s3cret";
  }
  const absl::Status status = CallHttp(request).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("http://127.0.0.1:"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("s3cret")));
}

TEST(CurlLibraryTest, HeaderWithALineBreakIsRefused) {
  HttpAnswerer server;
  HttpRequest request = PostTo(server);
  request.headers = {"X-Test: a\r\nX-More: b"};
  EXPECT_TRUE(absl::IsInvalidArgument(CallHttp(request).status()));
  EXPECT_TRUE(server.requests().empty());
}

TEST(CurlLibraryTest, OtherSchemesUsersAndSpacesAreNoUrls) {
  EXPECT_TRUE(CheckHttpUrl("https://hooks.example:8443/a?b").ok());
  EXPECT_TRUE(CheckHttpUrl("HTTP://[::1]/").ok());
  for (const char* const url :
       {"file:///etc/passwd", "ftp://a/", "https://", "https://:1/", "a.b", "https://u:p@a/",
        "https://a/b c", "https://a/\n", "http://127.0.0.1\\@a.example/", "https://a/b\\c",
        "https://a\x7f/", "https://a\t/", ""}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckHttpUrl(url))) << url;
    HttpRequest request;
    request.url = url;
    EXPECT_TRUE(absl::IsInvalidArgument(CallHttp(request).status())) << url;
  }
}

TEST(CurlLibraryTest, PlainCallsToThisMachineMeetNoProxy) {
  HttpAnswerer proxy;
  HttpAnswerer server;
  setenv("http_proxy", proxy.url().c_str(), 1);
  const absl::StatusOr<HttpAnswer> direct = CallHttp(PostTo(server));
  HttpRequest request;
  request.url = "http://127.0.0.1.invalid/";
  const absl::StatusOr<HttpAnswer> elsewhere = CallHttp(request);
  unsetenv("http_proxy");
  ASSERT_TRUE(direct.ok()) << direct.status();
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  EXPECT_EQ(server.requests().size(), 1u);
  ASSERT_EQ(proxy.requests().size(), 1u);
  EXPECT_THAT(proxy.requests()[0], StartsWith("GET http://127.0.0.1.invalid/ HTTP/1.1\r\n"));
}

TEST(CurlLibraryTest, PutsALongBodyInPieces) {
  HttpAnswerer server;
  const std::string all(300'000, 'x');
  HttpBody body;
  body.size_bytes = all.size();
  body.read = [&](uint64_t offset, absl::Span<char> out) {
    all.copy(out.data(), out.size(), offset);
    return absl::OkStatus();
  };
  HttpRequest request;
  request.method = HttpMethod::kPut;
  request.url = server.url();
  request.long_body = &body;
  const absl::StatusOr<HttpAnswer> answer = CallHttp(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  const std::string got = server.requests().at(0);
  EXPECT_THAT(got, StartsWith("PUT /hook HTTP/1.1\r\n"));
  EXPECT_THAT(got, HasSubstr("\r\nContent-Length: 300000\r\n"));
  EXPECT_THAT(got, EndsWith("\r\n\r\n" + all));
}

TEST(CurlLibraryTest, AnErrorOfTheBodyEndsTheCall) {
  HttpAnswerer server;
  HttpBody body;
  body.size_bytes = 100'000;
  body.read = [](uint64_t offset, absl::Span<char> out) -> absl::Status {
    if (offset > 0) return absl::DataLossError("read a.h5");
    std::fill(out.begin(), out.end(), 'x');
    return absl::OkStatus();
  };
  HttpRequest request;
  request.method = HttpMethod::kPut;
  request.url = server.url();
  request.long_body = &body;
  const absl::Status status = CallHttp(request).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(status.message(), "read a.h5");
}

TEST(CurlLibraryTest, HeadAndDeleteHaveNoBody) {
  HttpAnswerer server;
  server.Answer(
      "HTTP/1.1 200 OK\r\nContent-Length: 4711\r\nETag:  \"a\" \r\nConnection: close\r\n\r\n");
  server.Answer("HTTP/1.1 204 Gone\r\nConnection: close\r\n\r\n");
  HttpRequest request;
  request.method = HttpMethod::kHead;
  request.url = server.url();
  const absl::StatusOr<HttpAnswer> head = CallHttp(request);
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->Header("content-length"), "4711");
  EXPECT_EQ(head->Header("etag"), "\"a\"");
  EXPECT_EQ(head->Header("x-none"), "");
  EXPECT_EQ(head->body, "");
  request.method = HttpMethod::kDelete;
  EXPECT_EQ(CallHttp(request)->code, 204);
  EXPECT_THAT(server.requests().at(0), StartsWith("HEAD /hook HTTP/1.1\r\n"));
  EXPECT_THAT(server.requests().at(1), StartsWith("DELETE /hook HTTP/1.1\r\n"));
}

TEST(CurlLibraryTest, AClientThatWasUsedForOneKindOfCallMakesAnother) {
  HttpAnswerer server;
  HttpClient client;
  HttpRequest put = PostTo(server);
  put.method = HttpMethod::kPut;
  HttpRequest get;
  get.url = server.url();
  ASSERT_TRUE(client.Call(put).ok());
  const absl::StatusOr<HttpAnswer> got = client.Call(get);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->body, "ok");
  EXPECT_THAT(server.requests().at(0), StartsWith("PUT /hook HTTP/1.1\r\n"));
  EXPECT_THAT(server.requests().at(0), EndsWith("\r\n\r\n{\"n\":1}"));
  EXPECT_THAT(server.requests().at(1), StartsWith("GET /hook HTTP/1.1\r\n"));
  EXPECT_THAT(server.requests().at(1), EndsWith("\r\n\r\n"));
}

TEST(CurlLibraryTest, OriginHasNeitherPathNorUser) {
  EXPECT_EQ(HttpOrigin("https://hooks.example:8443/T0/s3cret?k=1"), "https://hooks.example:8443");
  EXPECT_EQ(HttpOrigin("http://u:p@a"), "http://a");
}

}  // namespace
}  // namespace h5mirror
