#include "base/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace h5mirror {
namespace {

// The vectors of RFC 3720, appendix B.4.
TEST(Crc32cTest, AgreesWithTheVectorsOfIscsi) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string ascending;
  for (char c = 0; c < 32; ++c) ascending.push_back(c);
  EXPECT_EQ(Crc32c(ascending), 0x46dd794eu);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
}

TEST(Crc32cTest, OfNothingIsZero) { EXPECT_EQ(Crc32c(""), 0u); }

TEST(Crc32cTest, ExtendingEqualsOnePass) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text.push_back(static_cast<char>(i * 31));
  for (const size_t cut : {0, 1, 7, 64, 1023, 4999, 5000}) {
    const std::string_view view = text;
    EXPECT_EQ(Crc32cExtend(Crc32c(view.substr(0, cut)), view.substr(cut)), Crc32c(text)) << cut;
  }
}

}  // namespace
}  // namespace h5mirror
