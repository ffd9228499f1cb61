#include "server/http/request_parts.h"

#include <gtest/gtest.h>

namespace h5mirror::server {
namespace {

TEST(WithoutPortTest, LeavesTheHost) {
  EXPECT_EQ(WithoutPort("localhost"), "localhost");
  EXPECT_EQ(WithoutPort("localhost:7448"), "localhost");
  EXPECT_EQ(WithoutPort("[::1]:7448"), "::1");
  EXPECT_EQ(WithoutPort("[::1]"), "::1");
}

TEST(WithoutPortTest, NothingElseIsAHost) {
  for (const char* text : {"", "[::1", "localhost:@evil.example", "[::1]x", "localhost:7448:1"}) {
    EXPECT_EQ(WithoutPort(text), "") << text;
  }
}

TEST(TargetTest, OfAProxyHasAHost) {
  const Target target = TargetOf("HTTP://a.example:80/f/x");
  EXPECT_EQ(target.authority, "a.example:80");
  EXPECT_EQ(target.path, "/f/x");
  EXPECT_EQ(TargetOf("http://a.example").path, "/");
  EXPECT_EQ(TargetOf("/f/x").authority, std::nullopt);
}

}  // namespace
}  // namespace h5mirror::server
