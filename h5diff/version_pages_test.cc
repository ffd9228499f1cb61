#include "h5diff/version_pages.h"

#include "cli/testing/fake_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "h5diff/evidence.h"

namespace h5mirror::tools {
namespace {

using testing::HasSubstr;

constexpr uint64_t kPage = 4096;

// Two versions of one file on a server. The second is longer, and pages 2 and 9 differ.
class VersionPagesTest : public testing::Test {
 protected:
  VersionPagesTest() {
    old_bytes_.resize(12 * kPage + 100);
    for (size_t i = 0; i < old_bytes_.size(); ++i) old_bytes_[i] = static_cast<char>(i / 7);
    new_bytes_ = old_bytes_ + "more";
    for (size_t at : {2 * kPage + 5, 2 * kPage + 6, 9 * kPage}) new_bytes_[at] ^= 1;
    changed_.Add({2 * kPage, kPage});
    changed_.Add({9 * kPage, kPage});
    changed_.Add({old_bytes_.size(), 4});
    rpc::ClientSettings settings;
    settings.server = server_.address();
    client_ = *rpc::Client::Connect(*rpc::ResolveClientOptionsIn(settings, {}), absl::Seconds(20));
    const v1::Version one = server_.AddVersion("x.h5", old_bytes_);
    const v1::Version other = server_.AddVersion("x.h5", new_bytes_);
    options_ = {.file = "x.h5", .versions = {one, other}, .page_size_bytes = kPage};
  }
  std::string Read(VersionPages& pages, Side side, uint64_t offset, size_t length) {
    std::string bytes(length, '?');
    const absl::Status read = pages.Read(side, offset, absl::MakeSpan(bytes));
    EXPECT_TRUE(read.ok()) << read;
    return bytes;
  }

  FakeServer server_;
  std::unique_ptr<rpc::Client> client_;
  std::string old_bytes_, new_bytes_;
  ExtentSet changed_{100};
  VersionPages::Options options_;
};

// Three cuts of one file: page 1 differs in the second, page 3 in the third.
class VersionPagesOfCutsTest : public testing::Test {
 protected:
  VersionPagesOfCutsTest() {
    cuts_[0] = std::string(6 * kPage, 'a');
    cuts_[1] = cuts_[0];
    cuts_[1][kPage] = 'b';
    cuts_[2] = cuts_[1];
    cuts_[2][3 * kPage] = 'c';
  }
  VersionPages::OneSide SideOf(int cut) {
    return {"cut", cuts_[cut].size(), [this, cut](uint64_t offset, absl::Span<char> out) {
              ++fetches_;
              cuts_[cut].copy(out.data(), out.size(), offset);
              return absl::OkStatus();
            }};
  }
  static ExtentSet Page(uint64_t page) {
    ExtentSet changed;
    changed.Add({page * kPage, 1});
    return changed;
  }
  absl::StatusOr<char> At(VersionPages& pages, Side side, uint64_t page) {
    char byte = '?';
    const absl::Status read = pages.Read(side, page * kPage, absl::MakeSpan(&byte, 1));
    if (!read.ok()) return read;
    return byte;
  }
  VersionPages Compared() { return VersionPages({SideOf(0), SideOf(1)}, kPage, 1 << 20, Page(1)); }

  std::string cuts_[3];
  int fetches_ = 0;
};

TEST_F(VersionPagesOfCutsTest, WhatWasReadStaysRightForTheNextComparison) {
  VersionPages pages = Compared();
  for (const uint64_t page : {1, 3, 5}) {
    EXPECT_EQ(*At(pages, Side::kOld, page), 'a');
    EXPECT_EQ(*At(pages, Side::kNew, page), page == 1 ? 'b' : 'a');
  }
  pages.Advance(SideOf(2), Page(3));
  fetches_ = 0;
  EXPECT_EQ(*At(pages, Side::kOld, 1), 'b');
  EXPECT_EQ(*At(pages, Side::kNew, 1), 'b');
  EXPECT_EQ(*At(pages, Side::kOld, 3), 'a');
  EXPECT_EQ(*At(pages, Side::kOld, 5), 'a');
  EXPECT_EQ(fetches_, 0);
  EXPECT_EQ(*At(pages, Side::kNew, 3), 'c');
  EXPECT_EQ(fetches_, 1);
}

TEST_F(VersionPagesOfCutsTest, WhatIsLearntIsNotFetched) {
  VersionPages pages = Compared();
  pages.Learn(kPage, std::string_view(cuts_[1]).substr(kPage, 2 * kPage));
  EXPECT_EQ(*At(pages, Side::kNew, 1), 'b');
  EXPECT_EQ(*At(pages, Side::kOld, 2), 'a');
  EXPECT_EQ(fetches_, 0);
  EXPECT_EQ(*At(pages, Side::kOld, 1), 'a');
}

TEST_F(VersionPagesOfCutsTest, ReadsStopAtTheLimits) {
  VersionPages pages = Compared();
  pages.Limit(1, absl::InfiniteFuture());
  EXPECT_EQ(*At(pages, Side::kNew, 5), 'a');
  EXPECT_EQ(At(pages, Side::kNew, 1).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(pages.error().ok());
  EXPECT_FALSE(pages.time_is_up());
  pages.Advance(SideOf(2), Page(3));
  pages.Limit(10, absl::InfinitePast());
  EXPECT_EQ(At(pages, Side::kNew, 0).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(pages.time_is_up());
  pages.Advance(SideOf(1), Page(3));
  EXPECT_FALSE(pages.time_is_up());
}

TEST_F(VersionPagesTest, GivesTheBytesOfEitherVersionAndZerosBehindTheEnd) {
  VersionPages pages(*client_, options_, changed_);
  EXPECT_EQ(pages.name(Side::kNew), "x.h5@2");
  for (const uint64_t offset : {uint64_t{0}, 2 * kPage + 3, 8 * kPage + 77, 12 * kPage}) {
    for (const size_t length : {size_t{1}, size_t{9}, size_t{3 * kPage}}) {
      std::string wanted = (old_bytes_ + std::string(kPage * 3, '\0')).substr(offset, length);
      EXPECT_TRUE(Read(pages, Side::kOld, offset, length) == wanted) << offset << " " << length;
      wanted = (new_bytes_ + std::string(kPage * 3, '\0')).substr(offset, length);
      EXPECT_TRUE(Read(pages, Side::kNew, offset, length) == wanted) << offset << " " << length;
    }
  }
  EXPECT_EQ(Read(pages, Side::kNew, uint64_t{1} << 40, 3), std::string(3, '\0'));
}

TEST_F(VersionPagesTest, APageThatBothHaveIsFetchedOnce) {
  VersionPages pages(*client_, options_, changed_);
  Read(pages, Side::kOld, 5 * kPage, 10);
  Read(pages, Side::kNew, 5 * kPage + 10, 10);
  EXPECT_EQ(pages.pages_read(), 1u);
  Read(pages, Side::kOld, 2 * kPage, 10);
  Read(pages, Side::kNew, 2 * kPage, 10);
  EXPECT_EQ(pages.pages_read(), 3u);
}

TEST_F(VersionPagesTest, ReadsThatFollowEachOtherReadAhead) {
  VersionPages pages(*client_, options_, changed_);
  int fetches = 0;
  pages.set_on_fetch([&] { ++fetches; });
  for (uint64_t page = 0; page < 12; ++page) Read(pages, Side::kOld, page * kPage, 8);
  EXPECT_LE(fetches, 4);
  EXPECT_LE(pages.pages_read(), 13u);
}

TEST_F(VersionPagesTest, ASmallCacheForgetsAndReadsAgain) {
  options_.cache_bytes = 2 * kPage;
  VersionPages pages(*client_, options_, changed_);
  for (int round = 0; round < 2; ++round) {
    for (const uint64_t page : {0, 4, 8}) {
      EXPECT_EQ(Read(pages, Side::kNew, page * kPage, 8), new_bytes_.substr(page * kPage, 8));
    }
  }
  EXPECT_EQ(pages.pages_read(), 6u);
  EXPECT_TRUE(Read(pages, Side::kNew, 0, new_bytes_.size()) == new_bytes_);
}

TEST_F(VersionPagesTest, DamageOnTheWayIsAnErrorAndStaysOne) {
  VersionPages pages(*client_, options_, changed_);
  server_.DamageReads();
  char byte;
  const absl::Status read = pages.Read(Side::kOld, 0, {&byte, 1});
  EXPECT_TRUE(absl::IsDataLoss(read)) << read;
  EXPECT_THAT(std::string(read.message()), HasSubstr("x.h5@1 at offset 0"));
  EXPECT_EQ(pages.Read(Side::kNew, 5 * kPage, {&byte, 1}), read);
  EXPECT_EQ(pages.error(), read);
}

TEST_F(VersionPagesTest, EvidenceIsTheBytesThatDiffer) {
  VersionPages pages(*client_, options_, changed_);
  Evidence evidence(pages);
  EXPECT_FALSE(evidence.known());
  ASSERT_TRUE(evidence.Load(8192).ok());
  EXPECT_TRUE(evidence.known());
  EXPECT_FALSE(evidence.complete());
  EXPECT_TRUE(evidence.Touches({2 * kPage, kPage}));
  EXPECT_TRUE(evidence.Touches({2 * kPage + 6, 1}));
  EXPECT_FALSE(evidence.Touches({2 * kPage + 7, kPage}));
  EXPECT_EQ(evidence.Distance(9 * kPage), 0u);
  EXPECT_EQ(evidence.Distance(9 * kPage - 10), 10u);
  EXPECT_LT(evidence.Distance(9 * kPage - 10), evidence.Distance(9 * kPage + 11))
      << "what follows is nearer";
}

TEST_F(VersionPagesTest, EvidenceIsCompleteWhenAllIsExplained) {
  VersionPages pages(*client_, options_, changed_);
  Evidence evidence(pages);
  ASSERT_TRUE(evidence.Load(8192).ok());
  evidence.Explain({2 * kPage, 6});  // One of two bytes.
  EXPECT_FALSE(evidence.Touches({2 * kPage + 5, 1}));
  EXPECT_TRUE(evidence.Touches({2 * kPage + 6, 1}));
  evidence.Begin();
  evidence.Add(Side::kNew, {2 * kPage + 6, 1}, Evidence::Search::kNo);
  evidence.Add(Side::kNew, {9 * kPage, 1}, Evidence::Search::kNo);
  EXPECT_TRUE(evidence.Touches({9 * kPage, 1})) << "before it ends";
  ASSERT_TRUE(evidence.End().ok());
  EXPECT_FALSE(evidence.complete()) << "the file is longer";
  evidence.Explain({old_bytes_.size(), 100});
  EXPECT_TRUE(evidence.complete());
}

TEST_F(VersionPagesTest, WhatIsDroppedOrForgottenExplainsNothing) {
  VersionPages pages(*client_, options_, changed_);
  Evidence evidence(pages);
  ASSERT_TRUE(evidence.Load(8192).ok());
  evidence.Begin();
  evidence.Drop();
  evidence.Add(Side::kNew, {0, 13 * kPage}, Evidence::Search::kNo);
  ASSERT_TRUE(evidence.End().ok());
  EXPECT_TRUE(evidence.Touches({9 * kPage, 1}));
  evidence.Forget();
  EXPECT_FALSE(evidence.known());
  EXPECT_FALSE(evidence.complete()) << "nothing is known";
}

TEST_F(VersionPagesTest, OfTooMuchThereIsNoEvidence) {
  VersionPages pages(*client_, options_, changed_);
  Evidence evidence(pages);
  ASSERT_TRUE(evidence.Load(1).ok());
  EXPECT_FALSE(evidence.known());
  EXPECT_FALSE(evidence.complete());
  EXPECT_EQ(pages.pages_read(), 0u);
}

}  // namespace
}  // namespace h5mirror::tools
