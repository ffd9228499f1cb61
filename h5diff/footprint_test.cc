#include "h5diff/footprint.h"

#include <array>
#include <string>

#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

using hdf5::ReadKind;

constexpr uint64_t kPage = 4096;

// Two versions of ten pages that differ in one byte; the server says that its page may differ.
class FootprintTest : public testing::Test {
 protected:
  FootprintTest() { bytes_.fill(std::string(10 * kPage, 'x')); }

  void Differ(uint64_t at) { bytes_[1][at] ^= 1; }
  bool Differs(const Footprint& footprint, uint64_t page) {
    ExtentSet changed;
    changed.Add({page * kPage, kPage});
    VersionPages pages({SideOf(0), SideOf(1)}, kPage, 1 << 20, changed);
    const bool touched = footprint.Touches(changed);
    const absl::StatusOr<bool> differs = footprint.Differs(pages);
    EXPECT_TRUE(differs.ok()) << differs.status();
    return touched && differs.ok() && *differs;
  }
  void Read(Footprint& footprint, ReadKind kind, uint64_t offset, size_t length) {
    footprint.OnRead(kind, offset, absl::MakeSpan(bytes_[0]).subspan(offset, length));
  }

  std::array<std::string, 2> bytes_;
  int fetches_ = 0;

 private:
  VersionPages::OneSide SideOf(size_t version) {
    return {"version", bytes_[version].size(),
            [this, version](uint64_t offset, absl::Span<char> out) {
              ++fetches_;
              bytes_[version].copy(out.data(), out.size(), offset);
              return absl::OkStatus();
            }};
  }
};

TEST_F(FootprintTest, ADifferenceCountsWhereItWasRead) {
  Footprint footprint;
  Read(footprint, ReadKind::kObjectHeader, 2 * kPage + 100, 50);
  Differ(2 * kPage + 149);
  EXPECT_TRUE(Differs(footprint, 2));
}

TEST_F(FootprintTest, ADifferenceBesideItInThePageDoesNot) {
  Footprint footprint;
  Read(footprint, ReadKind::kObjectHeader, 2 * kPage + 100, 50);
  Differ(2 * kPage + 150);
  EXPECT_FALSE(Differs(footprint, 2));
}

TEST_F(FootprintTest, PagesThatItDoesNotTouchAreNotFetched) {
  Footprint footprint;
  footprint.Add({5 * kPage, 2 * kPage});
  Differ(4 * kPage);
  EXPECT_FALSE(Differs(footprint, 4));
  EXPECT_EQ(fetches_, 0);
}

TEST_F(FootprintTest, AnUnboundedOneDiffersWithEveryChange) {
  Footprint footprint;
  footprint.SetUnbounded();
  EXPECT_TRUE(Differs(footprint, 7));
  EXPECT_FALSE(footprint.Touches(ExtentSet()));
}

TEST_F(FootprintTest, TheEndOfFileInASuperblockIsNoContentAndItsRootIs) {
  struct Case {
    char version;
    uint64_t end_of_file, flags, root;
  };
  for (const Case& each : {Case{0, 40, 20, 64}, Case{1, 44, 20, 68}, Case{2, 28, 11, 36}}) {
    bytes_[0][8] = bytes_[1][8] = each.version;
    Footprint footprint;
    Read(footprint, ReadKind::kSuperblock, 0, 9);
    Read(footprint, ReadKind::kSuperblock, 0, 100);
    Differ(each.end_of_file);
    Differ(each.flags);
    EXPECT_FALSE(Differs(footprint, 0)) << int{each.version};
    Differ(each.root);
    EXPECT_TRUE(Differs(footprint, 0)) << int{each.version};
    bytes_[1] = bytes_[0];
  }
}

}  // namespace
}  // namespace h5mirror::tools
