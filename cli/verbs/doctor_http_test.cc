#include "cli/verbs/doctor_http.h"

#include "base/curl_library.h"
#include "base/testing/http_answerer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kDocument[] =
    R"({"openapi": "3.0.3", "info": {"title": "h5mirror", "version": "1"}})";

TEST(DoctorHttpTest, ADoorThatAnswersIsToldWithItsVersion) {
  HttpAnswerer server;
  server.Answer(200, kDocument);
  const Check check = CheckHttpDoor(HttpOrigin(server.url()) + "/", "");
  EXPECT_EQ(check.health, Health::kOk) << check.detail;
  EXPECT_EQ(check.detail,
            HttpOrigin(server.url()) + ": version 1 of the HTTP interface, plain text");
  EXPECT_EQ(check.way_out, "");
  EXPECT_THAT(server.requests().at(0), StartsWith("GET /v1/openapi.json HTTP/1.1\r\n"));
}

TEST(DoctorHttpTest, AnotherProgramIsNoDoor) {
  for (const char* const body : {"ok", "[]", "{}", R"({"info": {"title": 7}})",
                                 R"({"info": {"title": "shop", "version": "1"}})"}) {
    HttpAnswerer server;
    server.Answer(200, body);
    const Check check = CheckHttpDoor(HttpOrigin(server.url()), "");
    EXPECT_EQ(check.health, Health::kFail) << body;
    EXPECT_THAT(check.detail, HasSubstr("HTTP 200, and no answer of h5mirrord")) << body;
    EXPECT_THAT(check.way_out, HasSubstr("http_listen")) << body;
  }
}

TEST(DoctorHttpTest, ARefusalOfTheHostNamesTheWayOut) {
  HttpAnswerer server;
  server.Answer(421, "{}");
  const Check check = CheckHttpDoor(HttpOrigin(server.url()), "");
  EXPECT_THAT(check.detail, HasSubstr("HTTP 421"));
  EXPECT_THAT(check.way_out, HasSubstr("localhost"));
}

TEST(DoctorHttpTest, TheOtherSchemeIsTheWayOut) {
  HttpAnswerer server;
  std::string url = HttpOrigin(server.url());
  EXPECT_THAT(CheckHttpDoor(url.replace(0, 4, "https"), "").way_out,
              HasSubstr("write http:// if it has no tls_cert"));
}

TEST(DoctorHttpTest, NobodyThereAndNoUrlAreFailures) {
  std::string url;
  {
    const HttpAnswerer gone;
    url = HttpOrigin(gone.url());
  }
  const Check away = CheckHttpDoor(url, "");
  EXPECT_EQ(away.health, Health::kFail);
  EXPECT_THAT(away.detail, HasSubstr(url));
  EXPECT_THAT(away.way_out, HasSubstr("set http_listen at the server"));
  EXPECT_THAT(away.way_out, HasSubstr("write https:// if it has tls_cert"));
  const Check wrong = CheckHttpDoor("node7:7448", "");
  EXPECT_EQ(wrong.health, Health::kFail);
  EXPECT_THAT(wrong.detail, HasSubstr("must begin with https://"));
  EXPECT_THAT(wrong.way_out, HasSubstr("https://HOST:PORT"));
}

}  // namespace
}  // namespace h5mirror::tools
