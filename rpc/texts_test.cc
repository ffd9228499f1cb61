#include "rpc/texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "h5mirror/v1/mirror.pb.h"
#include "h5mirror/v1/versions.pb.h"

namespace h5mirror::rpc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(TextsTest, Utf8AndBytesAreTaken) {
  v1::RollbackVersionRequest request;
  EXPECT_TRUE(CheckTexts(request).ok());
  request.set_name("m\xc3\xbcnchen/run.h5");
  request.set_comment("\xe2\x82\xac\n");
  request.set_request_id("\xff\xfe");  // No text.
  EXPECT_TRUE(CheckTexts(request).ok()) << CheckTexts(request);
}

TEST(TextsTest, AnotherEncodingIsNamedWithItsFieldAndTheWayOut) {
  v1::RollbackVersionRequest request;
  request.set_name("m\xfcnchen.h5");
  const absl::Status refused = CheckTexts(request);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(Message(refused), AllOf(HasSubstr("name \"m\\xfcnchen.h5\" is not UTF-8"),
                                      HasSubstr("locale charmap"), Not(HasSubstr("..."))));
  request.set_name(std::string(300, '\xfc'));
  EXPECT_THAT(Message(CheckTexts(request)), HasSubstr("\\xfc...\""));
}

TEST(TextsTest, TextsInMessagesAndInListsCountToo) {
  v1::MirrorFileRequest open;
  open.mutable_open()->mutable_origin()->set_path("/data/\xfc.h5");
  EXPECT_THAT(Message(CheckTexts(open)), HasSubstr("path \"/data/\\xfc.h5\""));
  v1::ListVersionsResponse list;
  list.add_versions()->add_tags("good");
  EXPECT_TRUE(CheckTexts(list).ok());
  list.add_versions()->add_tags(
      "b\xe4"
      "d");
  EXPECT_THAT(Message(CheckTexts(list)), HasSubstr("tags \"b\\xe4d\""));
}

}  // namespace
}  // namespace h5mirror::rpc
