#include "server/notify/signature.h"

#include <gtest/gtest.h>

namespace h5mirror::server {
namespace {

TEST(SignatureTest, VectorsOfRfc4231) {
  EXPECT_EQ(HmacSha256Hex(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(HmacSha256Hex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(HmacSha256Hex(std::string(131, '\xaa'),
                          "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// hmac.new(b"0123456789abcdef", b"1800000000.{}", "sha256").hexdigest()
TEST(SignatureTest, TheTimeIsSignedWithTheBody) {
  EXPECT_EQ(SignatureOf("0123456789abcdef", "{}", absl::FromUnixSeconds(1'800'000'000)),
            "t=1800000000,v1=1313ae9c874eb1a0868ad0b65f841c4243c23fdcfad69a3ada227726fad9960e");
  EXPECT_NE(SignatureOf("0123456789abcdef", "{}", absl::FromUnixSeconds(1'800'000'001)).substr(12),
            SignatureOf("0123456789abcdef", "{}", absl::FromUnixSeconds(1'800'000'000)).substr(12));
}

}  // namespace
}  // namespace h5mirror::server
