#include "server/state/recent_files.h"
#include "base/testing/fake_clock.h"

#include <string>

#include "gtest/gtest.h"
#include "server/testing/fake_store.h"

namespace h5mirror::server {
namespace {

class RecentFilesTest : public testing::Test {
 protected:
  std::weak_ptr<store::File> Read(const std::string& name) {
    auto file = std::make_shared<FakeFile>(name);
    recent_.Keep(file);
    return file;
  }

  FakeClock clock_;
  RecentFiles recent_{clock_};
};

TEST_F(RecentFilesTest, AFileStaysOpenForAMomentAfterItsLastUse) {
  const std::weak_ptr<store::File> file = Read("x.h5");
  clock_.Advance(RecentFiles::kKeep - absl::Milliseconds(1));
  recent_.OnTimer();
  ASSERT_FALSE(file.expired());
  recent_.Keep(file.lock());
  clock_.Advance(RecentFiles::kKeep - absl::Milliseconds(1));
  recent_.OnTimer();
  EXPECT_FALSE(file.expired());
  clock_.Advance(absl::Milliseconds(1));
  recent_.OnTimer();
  EXPECT_TRUE(file.expired());
}

TEST_F(RecentFilesTest, SomeAreKeptAndTheOthersLetGo) {
  const std::weak_ptr<store::File> first = Read("first.h5");
  for (size_t i = 0; i < RecentFiles::kFilesMax; ++i) Read(std::to_string(i));
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(recent_.size(), RecentFiles::kFilesMax);
  recent_.Clear();
  EXPECT_EQ(recent_.size(), 0u);
}

}  // namespace
}  // namespace h5mirror::server
