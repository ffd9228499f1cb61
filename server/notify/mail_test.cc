// The text of mails: names of files are strangers' texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "server/notify/deliverer.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string MailAbout(const std::string& file) {
  NotifyRule rule;
  rule.mail = {"ops@example.org", "anna@example.org"};
  Event event{.kind = EventKind::kWriterLost, .file = file, .text = "its writer is gone"};
  event.numbers = {{"last_cut", 17}};
  event.id = "00ff";
  return MailOf(rule, event, "s1");
}

std::string HeadersOf(const std::string& mail) { return mail.substr(0, mail.find("\n\n")); }

TEST(MailTest, PlainNamesMakeAPlainMail) {
  const std::string mail = MailAbout("runs/a.h5");
  EXPECT_THAT(mail, StartsWith("To: ops@example.org,\n anna@example.org\n"
                               "Subject: h5mirror on s1: writer_lost: runs/a.h5\n"));
  EXPECT_THAT(mail, HasSubstr("\n\nits writer is gone\n\nevent: writer_lost\nfile: runs/a.h5\n"));
  EXPECT_THAT(mail, HasSubstr("last_cut: 17\n"));
}

TEST(MailTest, NamesMakeNoHeader) {
  for (const char* const name : {"a\nBcc: all@x.org", "a\r\nBcc: all@x.org", "a\n\nbody",
                                 "a\xe2\x80\xa8"
                                 "Bcc: all@x.org"}) {
    const std::string headers = HeadersOf(MailAbout(name));
    EXPECT_THAT(headers, Not(HasSubstr("\nBcc"))) << headers;
    EXPECT_THAT(headers, Not(HasSubstr("\r"))) << headers;
    EXPECT_THAT(headers, HasSubstr("\nContent-Type: text/plain")) << headers;
  }
}

TEST(MailTest, OtherLettersAreEncodedInWordsThatAreNotTooLong) {
  std::string name;
  for (int i = 0; i < 40; ++i) name += "\xc3\xa4\xe2\x82\xac";
  const std::string headers = HeadersOf(MailAbout(name));
  std::string subject;
  for (const absl::string_view line : absl::StrSplit(headers, '\n')) {
    EXPECT_LE(line.size(), 90u);
    for (const char c : line) EXPECT_TRUE(c >= ' ' && c < 0x7f) << line;
    const size_t word = line.find("=?UTF-8?B?");
    if (word == absl::string_view::npos) continue;
    std::string decoded;
    ASSERT_TRUE(absl::Base64Unescape(line.substr(word + 10, line.size() - word - 12), &decoded));
    subject += decoded;
  }
  EXPECT_EQ(subject, "h5mirror on s1: writer_lost: " + name);
}

TEST(MailTest, ABodyThatIsNotAsciiIsBase64) {
  const std::string mail = MailAbout("\xc3\xa4.h5");
  EXPECT_THAT(mail, HasSubstr("Content-Transfer-Encoding: base64"));
  std::string body;
  ASSERT_TRUE(absl::Base64Unescape(
      absl::StrReplaceAll(mail.substr(mail.find("\n\n") + 2), {{"\n", ""}}), &body));
  EXPECT_THAT(body, HasSubstr("file: \xc3\xa4.h5\n"));
}

TEST(MailTest, AVeryLongNameMakesABoundedSubject) {
  const std::string headers = HeadersOf(MailAbout(std::string(4000, 'n')));
  EXPECT_LT(headers.size(), 1500u);
}

}  // namespace
}  // namespace h5mirror::server
