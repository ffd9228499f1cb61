#include "base/munge_library.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror {
namespace {

using ::testing::HasSubstr;

TEST(MungeLibraryTest, OnlyPrefixBase64AndColonAreACredential) {
  EXPECT_TRUE(IsMungeCredential("MUNGE:AwQDAAC+/9==:"));
  for (const char* const text : {"", "MUNGE:", "MUNGE::", "MUNGE:AwQ", "munge:AwQ:", "MUNGE:A wQ:",
                                 "MUNGE:A\n:", "h5m_MUNGE:A:", "eyJ.x.y"}) {
    EXPECT_FALSE(IsMungeCredential(text)) << text;
  }
}

TEST(MungeLibraryTest, WithoutMungedBothAreUnavailableAndNameTheSocket) {
  ASSERT_TRUE(CheckMungeLibrary().ok()) << CheckMungeLibrary();
  const std::string socket = (std::filesystem::path(testing::TempDir()) / "no-munged").string();
  for (const absl::Status& status :
       {EncodeMunge(socket).status(), DecodeMunge(socket, "MUNGE:AwQDAAC:").status()}) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(socket));
    EXPECT_THAT(std::string(status.message()), HasSubstr("service munge"));
  }
}

}  // namespace
}  // namespace h5mirror
