#include "sync/local_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "base/errno_status.h"
#include "sync/local_blocks.h"

namespace h5mirror::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Status OpenError(int error) {
  return AsUnreadable("/data/run.h5", ErrnoToStatus(error, "open /data/run.h5"));
}

TEST(LocalFileTest, AFileThatCannotBeReadIsNoMatterOfRightsOnTheServer) {
  const absl::Status denied = OpenError(EACCES);
  EXPECT_TRUE(absl::IsFailedPrecondition(denied)) << denied;
  EXPECT_THAT(std::string(denied.message()),
              AllOf(HasSubstr("/data/run.h5: the local file cannot be read"),
                    HasSubstr("Permission denied"), HasSubstr("namei -l /data/run.h5")));
  const absl::Status broken = OpenError(EIO);
  EXPECT_TRUE(absl::IsFailedPrecondition(broken)) << broken;
  EXPECT_THAT(std::string(broken.message()),
              AllOf(HasSubstr("Input/output error"), HasSubstr("h5mirror recover /data/run.h5")));
}

TEST(LocalFileTest, OtherErrorsOfAnOpenStayAsTheyAre) {
  EXPECT_TRUE(absl::IsNotFound(OpenError(ENOENT)));
  EXPECT_TRUE(absl::IsResourceExhausted(OpenError(EMFILE)));
  EXPECT_TRUE(absl::IsNotFound(LocalFile::Open("/nonexistent/run.h5", FileLock::kNone).status()));
}

TEST(LocalFileTest, AReadThatFailsNamesTheFile) {
  LocalBlocks blocks(/*fd=*/-1, 3, "/data/run.h5");
  const absl::Status failed = blocks.DigestOf({0, 3}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(failed)) << failed;
  EXPECT_THAT(std::string(failed.message()),
              AllOf(HasSubstr("/data/run.h5: the local file cannot be read"),
                    HasSubstr("Bad file descriptor")));
}

}  // namespace
}  // namespace h5mirror::tools
