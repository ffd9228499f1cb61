#include "onion_store/pages/direct_sums.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/rounding.h"
#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/pages/sums_file.h"

namespace h5mirror::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint32_t kPage = 512;
constexpr uint64_t kEnd = UINT64_MAX / kPage;

// Knows the bytes of the head.
class DirectSumsTest : public testing::Test {
 protected:
  DirectSumsTest() : tree_(*env_.OpenTree("/")) {
    EXPECT_TRUE(tree_->MakeDirectory("d", 0700).ok());
    Start(1 << 20);
  }
  void Start(uint64_t memory_max_bytes) {
    sums_.reset();
    head_.clear();
    budget_ = std::make_unique<MemoryBudget>(memory_max_bytes);
    sums_ = std::make_unique<DirectSums>(*budget_, *tree_, "d", kPage);
  }
  std::string Bytes(size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }
  void Put(uint64_t offset, const std::string& bytes) {
    if (head_.size() < offset + bytes.size()) head_.resize(offset + bytes.size());
    head_.replace(offset, bytes.size(), bytes);
  }
  // A write, in pieces of at most `piece` bytes.
  void Write(uint64_t offset, uint64_t length, uint64_t piece = UINT64_MAX) {
    const std::string bytes = Bytes(length);
    Put(offset, bytes);
    std::vector<std::string_view> pieces;
    for (std::string_view rest = bytes; !rest.empty();) {
      pieces.push_back(rest.substr(0, piece));
      rest.remove_prefix(pieces.back().size());
    }
    sums_->Note(offset, pieces);
  }
  // The runs of known pages. Each sum must be that of the head's bytes.
  std::vector<Extent> Known() {
    std::vector<Extent> known;
    for (uint64_t page = 0;;) {
      const Extent run = sums_->NextPages(page, kEnd);
      if (run.length == 0) return known;
      const std::vector<uint32_t> got = sums_->Read(run.offset, run.length);
      EXPECT_EQ(got.size(), run.length);
      for (uint64_t i = 0; i < got.size(); ++i) {
        const std::string_view bytes =
            std::string_view(head_).substr((run.offset + i) * kPage, kPage);
        EXPECT_EQ(bytes.size(), kPage) << "page " << run.offset + i << " is not there as a whole";
        EXPECT_EQ(got[i], sums_file_.SumOf(bytes)) << "page " << run.offset + i;
      }
      known.push_back(run);
      page = run.end();
    }
  }

  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
  SumsFile sums_file_{nullptr, kPage};  // only for SumOf()
  std::mt19937_64 random_{7};
  std::unique_ptr<MemoryBudget> budget_;
  std::unique_ptr<DirectSums> sums_;
  std::string head_;
};

TEST_F(DirectSumsTest, PagesThatAreWrittenAsAWholeAreKnown) {
  Write(2 * kPage, 3 * kPage, 100);
  EXPECT_THAT(Known(), ElementsAre(Extent{2, 3}));
  EXPECT_EQ(sums_->NextPages(0, 2).length, 0u) << "none before page 2";
  EXPECT_EQ(sums_->NextPages(3, 4), (Extent{3, 1}));
}

TEST_F(DirectSumsTest, APageIsKnownOnceWritesThatFollowEachOtherReachItsEnd) {
  Write(0, 700);
  EXPECT_THAT(Known(), ElementsAre(Extent{0, 1}));
  Write(700, 200);
  EXPECT_THAT(Known(), ElementsAre(Extent{0, 1}));
  Write(900, 200);
  EXPECT_THAT(Known(), ElementsAre(Extent{0, 2}));
}

TEST_F(DirectSumsTest, PagesOfWhichAWriteHasAPartOnlyAreNotKnown) {
  Write(100, 3 * kPage);
  EXPECT_THAT(Known(), ElementsAre(Extent{1, 2}));
  Write(kPage + 7, 1);
  EXPECT_THAT(Known(), ElementsAre(Extent{2, 1}));
  Write(kPage, kPage);
  EXPECT_THAT(Known(), ElementsAre(Extent{1, 2}));
}

TEST_F(DirectSumsTest, AWriteThatGoesOnElsewhereDoesNotEndThePage) {
  Write(0, 100);
  Write(5 * kPage, 10);
  Write(100, kPage - 100);
  EXPECT_THAT(Known(), IsEmpty());
}

TEST_F(DirectSumsTest, AStartThatIsWrittenOverAgainDoesNotCount) {
  Write(0, 100);
  Write(50, 10);
  Write(100, kPage - 100);
  EXPECT_THAT(Known(), IsEmpty());
}

TEST_F(DirectSumsTest, ForgetsPagesThatAreTouched) {
  Write(0, 10 * kPage + 100);
  sums_->Forget({3 * kPage - 1, 2});
  EXPECT_THAT(Known(), ElementsAre(Extent{0, 2}, Extent{4, 6}));
  sums_->ForgetFrom(8 * kPage + 1);
  EXPECT_THAT(Known(), ElementsAre(Extent{0, 2}, Extent{4, 4}));
  Write(10 * kPage + 100, kPage - 100);  // Its start was forgotten.
  EXPECT_THAT(Known(), ElementsAre(Extent{0, 2}, Extent{4, 4}));
}

TEST_F(DirectSumsTest, ReadsOnlyWhatIsKnown) {
  Write(0, 4 * kPage);
  sums_->Forget({2 * kPage, 1});
  EXPECT_THAT(sums_->Read(0, 4), IsEmpty());
  EXPECT_THAT(sums_->Read(2, 1), IsEmpty());
  EXPECT_EQ(sums_->Read(0, 2).size(), 2u);
}

TEST_F(DirectSumsTest, ManyPagesGoToAFileWithoutAName) {
  const uint64_t pages = 3 * DirectSums::kWindowPages;
  const size_t changes = env_.change_count();
  for (uint64_t page = 0; page < pages; page += 64) Write(page * kPage, 64 * kPage);
  Write(5 * kPage, 2 * kPage);
  Write((pages - 1) * kPage, kPage);
  EXPECT_THAT(Known(), ElementsAre(Extent{0, pages}));
  EXPECT_LE(budget_->used_bytes(), 2 * DirectSums::kWindowPages * sizeof(uint32_t));
  EXPECT_GT(env_.change_count(), changes + 3) << "there is no file";
  EXPECT_THAT(*tree_->List("d"), IsEmpty());
}

TEST_F(DirectSumsTest, WhatIsReleasedTakesNoMemory) {
  for (uint64_t page = 0; page < 40'000; page += 64) Write(page * kPage, 64 * kPage);
  sums_->Release(39'990);
  EXPECT_THAT(Known(), ElementsAre(Extent{39'990, 10}));
  sums_->Release(40'000);
  EXPECT_THAT(Known(), IsEmpty());
  EXPECT_EQ(budget_->used_bytes(), 0u);
}

TEST_F(DirectSumsTest, FailingFilesOnlyCostKnowledge) {
  env_.FailOpensOf("/run-", absl::ResourceExhaustedError("No space left on device"));
  for (uint64_t page = 0; page < 2 * DirectSums::kWindowPages; page += 64) {
    Write(page * kPage, 64 * kPage);
  }
  EXPECT_LE(Known().size(), 1u);
  env_.FailOpensOf("/run-", absl::OkStatus());
  Write(0, kPage);
  Write(9 * DirectSums::kWindowPages * kPage, kPage);
  env_.FailCall(0, absl::InternalError("Input/output error"));
  EXPECT_THAT(sums_->Read(0, 1), IsEmpty());
  EXPECT_EQ(sums_->NextPages(0, kEnd).length, 0u);
}

TEST_F(DirectSumsTest, OfTooManyRunsTheShortestAreForgotten) {
  Write(0, 50 * kPage);
  for (uint64_t i = 0; i < 3 * DirectSums::kRunsMax; ++i) Write((100 + 2 * i) * kPage, kPage);
  const std::vector<Extent> known = Known();
  EXPECT_LE(known.size(), DirectSums::kRunsMax);
  EXPECT_EQ(known.front(), (Extent{0, 50}));
}

// Random calls in random order: Known() compares each sum with the head.
TEST_F(DirectSumsTest, NeverGivesAWrongSum) {
  for (uint64_t memory : {uint64_t{1} << 20, uint64_t{0}}) {
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      SCOPED_TRACE(testing::Message() << "memory " << memory << ", seed " << seed);
      random_.seed(seed);
      Start(memory);
      uint64_t next = 0, released = 0;
      for (int step = 0; step < 60; ++step) {
        const uint64_t kind = random_() % 10;
        const uint64_t offset = kind < 4 ? next : released * kPage + random_() % (6000 * kPage);
        if (kind < 8) {
          const uint64_t length = 1 + random_() % (random_() % 2 == 0 ? 3 * kPage : 300 * kPage);
          Write(offset, length, 1 + random_() % (4 * kPage));
          next = offset + length;
        } else if (kind == 8) {  // Staged bytes over it, or a failed write.
          const std::string bytes = Bytes(1 + random_() % (2 * kPage));
          Put(offset, bytes);
          sums_->Forget({offset, bytes.size()});
        } else if (random_() % 2 == 0 && offset < head_.size()) {
          sums_->ForgetFrom(offset);
          head_.resize(offset);
        } else {
          released = std::min<uint64_t>(released + random_() % 50, 1000);
          sums_->Release(released);
        }
      }
      Known();
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace h5mirror::store
