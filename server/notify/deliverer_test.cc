#include "server/notify/deliverer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "base/strings.h"
#include "base/testing/http_answerer.h"
#include "nlohmann/json.hpp"
#include "server/notify/signature.h"
#include "server/testing/test_directory.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSecret[] = "0123456789abcdef0123456789abcdef";

class DelivererTest : public ::testing::Test {
 protected:
  DelivererTest() {
    signal(SIGPIPE, SIG_IGN);  // As the program does; some scripts end before they have read.
    event_.file = "runs/a.h5";
    event_.kind = EventKind::kWriterLost;
    event_.id = "00ff";
  }
  NotifyRule Hook() {
    NotifyRule rule;
    rule.url = server_.url();
    rule.source = "c.toml:3";
    return rule;
  }
  std::filesystem::path Secret(mode_t mode, std::string_view content) {
    const std::filesystem::path path = directory_.Write("secret", content);
    chmod(path.c_str(), mode);
    return path;
  }
  absl::Status Deliver(const NotifyRule& rule) {
    const auto deliverer = MakeDeliverer(rule, "s1");
    return deliverer.ok() ? (*deliverer)->Deliver(event_, cancel_) : deliverer.status();
  }
  // A shell script that is a program.
  std::filesystem::path Script(std::string_view text) {
    const std::filesystem::path path =
        directory_.Write("script", StrCat("#!/bin/sh\nd=", directory_.path().string(), "\n", text));
    chmod(path.c_str(), 0700);
    return path;
  }
  std::string Read(const std::string& name) {
    std::ostringstream content;
    content << std::ifstream(directory_.path() / name).rdbuf();
    return content.str();
  }

  TestDirectory directory_;
  HttpAnswerer server_;
  std::atomic<bool> cancel_ = false;
  Event event_;
};

TEST_F(DelivererTest, AHookGetsSignedJson) {
  NotifyRule rule = Hook();
  rule.secret_file = Secret(0600, StrCat(kSecret, "\n"));
  ASSERT_TRUE(Deliver(rule).ok());
  const std::string request = server_.requests().at(0);
  const std::string body = request.substr(request.find("\r\n\r\n") + 4);
  EXPECT_EQ(nlohmann::json::parse(body)["file"], "runs/a.h5");
  EXPECT_THAT(request, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(request, HasSubstr("H5mirror-Event: writer_lost\r\n"));
  const size_t at = request.find("H5mirror-Signature: t=") + 22;
  const int64_t time = std::stoll(request.substr(at));
  EXPECT_THAT(request, HasSubstr(SignatureOf(kSecret, body, absl::FromUnixSeconds(time))));
}

TEST_F(DelivererTest, WithoutASecretThereIsNoSignature) {
  ASSERT_TRUE(Deliver(Hook()).ok());
  EXPECT_THAT(server_.requests().at(0), Not(HasSubstr("H5mirror-Signature")));
}

TEST_F(DelivererTest, AnswersSayWhetherAnotherTryCanHelp) {
  for (const int code : {302, 401, 404, 429, 500, 503}) {
    server_.Answer(code, "");
    EXPECT_TRUE(absl::IsUnavailable(Deliver(Hook()))) << code;
  }
  for (const int code : {400, 410, 413, 422}) {
    server_.Answer(code, "");
    EXPECT_TRUE(absl::IsInvalidArgument(Deliver(Hook()))) << code;
  }
  server_.Answer(204, "");
  EXPECT_TRUE(Deliver(Hook()).ok());
}

TEST_F(DelivererTest, WhatIsNoAnswerIsNeverFinal) {
  NotifyRule hook;
  hook.url = "ftp://127.0.0.1/";
  EXPECT_TRUE(absl::IsUnavailable(Deliver(hook))) << Deliver(hook);
  NotifyRule command;
  command.command = {StrCat("/", std::string(5000, 'x'))};  // ENAMETOOLONG
  EXPECT_TRUE(absl::IsUnavailable(Deliver(command))) << Deliver(command);
  NotifyRule mail;
  mail.mail = {"ops@example.org"};
  mail.sendmail = command.command[0];
  EXPECT_TRUE(absl::IsUnavailable(Deliver(mail))) << Deliver(mail);
}

TEST_F(DelivererTest, AKeyThatOthersMayReadOrWriteIsRefused) {
  NotifyRule rule = Hook();
  for (const mode_t mode : {0640u, 0604u, 0620u, 0602u, 0660u}) {
    rule.secret_file = Secret(mode, kSecret);
    const absl::Status status = Deliver(rule);
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("c.toml:3: [[notify]]: secret_file: "));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr(kSecret)));
  }
  rule.secret_file = Secret(0600, "short\n");
  EXPECT_TRUE(absl::IsInvalidArgument(Deliver(rule)));
  rule.secret_file = directory_.path() / "none";
  EXPECT_TRUE(absl::IsNotFound(Deliver(rule)));
  mkfifo((directory_.path() / "fifo").c_str(), 0600);
  rule.secret_file = directory_.path() / "fifo";
  EXPECT_TRUE(absl::IsInvalidArgument(Deliver(rule)));
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(DelivererTest, ACommandGetsJsonAndEnvironment) {
  NotifyRule rule;
  rule.command = {Script("cat > $d/in; echo \"$1 $H5MIRROR_EVENT $H5MIRROR_FILE\" > $d/env"),
                  "ops"};
  ASSERT_TRUE(Deliver(rule).ok());
  EXPECT_EQ(nlohmann::json::parse(Read("in"))["id"], "00ff");
  EXPECT_EQ(Read("env"), "ops writer_lost runs/a.h5\n");
}

TEST_F(DelivererTest, ACommandThatFailsIsNoDelivery) {
  NotifyRule rule;
  rule.command = {Script("printf 'no such\\nchannel\\033[2J'; exit 3")};
  const absl::Status status = Deliver(rule);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("exit code 3: no such\\x0achannel\\x1b[2J"));
}

TEST_F(DelivererTest, AMailGoesThroughSendmail) {
  NotifyRule rule;
  rule.mail = {"ops@example.org"};
  rule.sendmail = Script("echo \"$*\" > $d/arguments; cat > $d/mail");
  ASSERT_TRUE(Deliver(rule).ok());
  EXPECT_EQ(Read("arguments"), "-t -i\n");
  EXPECT_EQ(Read("mail"), MailOf(rule, event_, "s1"));
}

TEST_F(DelivererTest, WhatTheMachineLacksIsNamed) {
  NotifyRule rule;
  rule.source = "c.toml:3";
  rule.command = {"/nowhere/tell"};
  const absl::Status status = CheckTools(rule);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("c.toml:3: [[notify]]: run /nowhere/tell"));
  EXPECT_TRUE(CheckTools(Hook()).ok());
}

}  // namespace
}  // namespace h5mirror::server
