#include "server/calls/audit_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"
#include "server/settings/token_file.h"
#include "server/testing/mirror_server_fixture.h"

namespace h5mirror::server {
namespace {

using Json = nlohmann::json;
using ::testing::SizeIs;

std::vector<Json> LinesOf(const std::filesystem::path& path) {
  std::vector<Json> lines;
  std::string text = ReadSmallFile(path).value_or("");  // Between two files there is none.
  text.resize(text.rfind('\n') + 1);                    // The rest of a line may be on its way.
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    lines.push_back(Json::parse(line.begin(), line.end()));
  }
  return lines;
}

TEST(AuditRecordTest, IsOneLineWhateverItsTextsAre) {
  Principal anna{.name = "anna", .rights = {}, .issuer = Principal::Issuer::kUnix};
  const std::string line = FormatAuditRecord({.time = absl::UnixEpoch() + absl::Milliseconds(1500),
                                              .took = absl::Milliseconds(250),
                                              .caller = &anna,
                                              .peer = "unix:",
                                              .method = "ReadVersion",
                                              .needs = OneFile(Right::kRead, "a\nb\xff\"/c.h5", 7),
                                              .bytes = {.sent = 10, .received = 0},
                                              .status = absl::NotFoundError("no\nversion")});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Json record = Json::parse(line);
  EXPECT_EQ(record["time"], "1970-01-01T00:00:01.500Z");
  EXPECT_EQ(record["user"], "anna");
  EXPECT_EQ(record["issuer"], "unix");
  EXPECT_EQ(record["method"], "ReadVersion");
  EXPECT_EQ(record["files"][0]["version"], 7);
  EXPECT_EQ(record["files"][0]["right"], "read");
  EXPECT_EQ(record["bytes_sent"], 10);
  EXPECT_EQ(record["status"], "NOT_FOUND");
  EXPECT_EQ(record["message"], "no\nversion");
  EXPECT_EQ(record["seconds"], 0.25);
  EXPECT_FALSE(record.contains("http_status"));
}

TEST(AuditRecordTest, CallsOfHttpHaveTheStatusOfTheirAnswer) {
  AuditRecord record{.time = absl::Now(), .method = "HttpGetFile", .http_status = 206};
  EXPECT_EQ(Json::parse(FormatAuditRecord(record))["http_status"], 206);
  record.event = AuditRecord::Event::kBegin;
  EXPECT_FALSE(Json::parse(FormatAuditRecord(record)).contains("http_status"));
}

TEST(AuditRecordTest, TextsOfClientsHaveALimit) {
  const std::string longest(100'000, '\x01');
  const std::string line = FormatAuditRecord({.time = absl::Now(),
                                              .claimed = longest,
                                              .method = "GetFile",
                                              .needs = OneFile(Right::kRead, longest),
                                              .status = absl::NotFoundError(longest)});
  EXPECT_LT(line.size(), 3 * 6 * (kTextMax + 3) + 500);
  EXPECT_EQ(Json::parse(line)["files"][0]["name"].get<std::string>().size(), kTextMax + 3);
}

class AuditLogTest : public MirrorServerTest {
 protected:
  void SetUp() override {
    MirrorServerTest::SetUp();
    config_.tokens_file = directory_.path() / "tokens";
    config_.audit_log = directory_.path() / "audit.jsonl";
    options_.token = *AddToken(config_.tokens_file, "anna", *Rights::Parse("read,write"));
    Start();
  }
  // The lines of one method, which the server writes soon.
  std::vector<Json> Lines(const std::string& method, size_t count,
                          const std::string& event = "end") {
    std::vector<Json> found;
    for (int i = 0; i < 200 && found.size() < count; ++i) {
      if (i > 0) absl::SleepFor(absl::Milliseconds(50));
      found.clear();
      for (const Json& line : LinesOf(config_.audit_log)) {
        if (line["method"] == method && line["event"] == event) found.push_back(line);
      }
    }
    EXPECT_EQ(found.size(), count) << method;
    return found;
  }
};

TEST_F(AuditLogTest, WritersAndReadersLeaveALine) {
  MirrorWhole("a.h5", std::string(5000, 'x'));
  EXPECT_EQ(ReadBack("a.h5", 1).size(), 5000);
  const Json written = Lines("MirrorFile", 1)[0];
  EXPECT_EQ(written["user"], "anna");
  EXPECT_EQ(written["issuer"], "token");
  EXPECT_EQ(written["files"], Json::parse(R"([{"name": "a.h5", "right": "write"}])"));
  EXPECT_GT(written["bytes_received"], 5000);
  EXPECT_EQ(written["status"], "OK");
  EXPECT_FALSE(Lines("MirrorFile", 1, "begin")[0]["claimed"].get<std::string>().empty());
  const Json read = Lines("ReadVersion", 1)[0];
  EXPECT_EQ(read["files"], Json::parse(R"([{"name": "a.h5", "right": "read", "version": 1}])"));
  EXPECT_GT(read["bytes_sent"], 5000);
  struct stat info {};
  ASSERT_EQ(stat(config_.audit_log.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777 & ~0640u, 0u);
}

TEST_F(AuditLogTest, RefusalsHaveTheirReasonAndTheCaller) {
  v1::RemoveFileRequest remove;
  remove.set_name("a.h5");
  EXPECT_FALSE(client_->RemoveFile(remove).ok());
  const Json refused = Lines("RemoveFile", 1)[0];
  EXPECT_EQ(refused["user"], "anna");
  EXPECT_EQ(refused["status"], "PERMISSION_DENIED");
  options_.token = "h5m_unknown";
  const auto unknown = rpc::Client::Connect(options_, absl::Seconds(20));
  ASSERT_TRUE(unknown.ok()) << unknown.status();
  EXPECT_FALSE((*unknown)->RemoveFile(remove).ok());
  const Json second = Lines("RemoveFile", 2)[1];
  EXPECT_EQ(second["user"], "");
  EXPECT_EQ(second["status"], "UNAUTHENTICATED");
}

TEST_F(AuditLogTest, AMovedFileIsWrittenOnUntilItIsOpenedAgain) {
  MirrorWhole("a.h5", "x");
  const std::filesystem::path old = config_.audit_log.string() + ".1";
  std::filesystem::rename(config_.audit_log, old);
  server_->ReopenAudit();
  v1::RemoveFileRequest remove;
  remove.set_name("a.h5");
  EXPECT_FALSE(client_->RemoveFile(remove).ok());
  EXPECT_THAT(Lines("RemoveFile", 1), SizeIs(1));
  for (const Json& line : LinesOf(old)) EXPECT_NE(line["method"], "RemoveFile");
}

// A disk that takes nothing must stop nobody.
TEST(AuditLogFileTest, LinesThatFindNoRoomAreCounted) {
  const auto log = AuditLog::Open("/dev/full");
  ASSERT_TRUE(log.ok()) << log.status();
  for (uint64_t i = 1; i <= 3; ++i) {
    (*log)->Write({.time = absl::Now(), .method = "GetFile"});
    while ((*log)->lost() < i) absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(AuditLog::Open("/nonexistent/audit").status()));
}

}  // namespace
}  // namespace h5mirror::server
