#include "onion_store/file/apply/direct_pass.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/pages/direct_sums.h"
#include "onion_store/pages/sums_file.h"

namespace h5mirror::store {
namespace {

constexpr uint32_t kPage = 4096;

class DirectPassTest : public testing::Test {
 protected:
  DirectPassTest() : tree_(*env_.OpenTree("/")), budget_(1 << 20) {
    EXPECT_TRUE(tree_->MakeDirectory("d", 0700).ok());
    generation_->head = *tree_->Open("x", OpenKind::kCreateFresh, 0600);
    generation_->sums =
        std::make_unique<SumsFile>(*tree_->Open("d/sums-1", OpenKind::kCreateFresh, 0600), kPage);
    generation_->direct_sums = std::make_unique<DirectSums>(budget_, *tree_, "d", kPage);
    layer_.generation = generation_;
  }
  std::string Bytes(size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }
  void WriteDirect(uint64_t offset, uint64_t length) {
    const std::string bytes = Bytes(length);
    const std::string_view piece = bytes;
    ASSERT_TRUE(WriteAt(*generation_->head, offset, bytes).ok());
    layer_.data.AddDirect({offset, length});
    layer_.size_bytes = std::max(layer_.size_bytes, offset + length);
    generation_->direct_sums->Note(offset, {&piece, 1});
  }
  // Counts the steps, and compares all sums below the layer's size with the head.
  int Run(DirectPass& pass) {
    int steps = 1;
    for (;; ++steps) {
      const auto has_more = pass.Step();
      EXPECT_TRUE(has_more.ok()) << has_more.status();
      if (!has_more.ok() || !*has_more) break;
    }
    const uint64_t pages = (layer_.size_bytes + kPage - 1) / kPage;
    const auto sums = generation_->sums->Read(0, pages);
    EXPECT_TRUE(sums.ok()) << sums.status();
    std::string page(kPage, '\0');
    for (uint64_t i = 0; i < pages; ++i) {
      EXPECT_TRUE(
          ReadThrough({}, *generation_->head, layer_.size_bytes, i * kPage, absl::MakeSpan(page))
              .ok());
      EXPECT_EQ((*sums)[i], generation_->sums->SumOf(page)) << "page " << i;
    }
    return steps;
  }

  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
  MemoryBudget budget_;
  std::mt19937_64 random_{5};
  std::shared_ptr<Generation> generation_ = std::make_shared<Generation>();
  CutLayer layer_{budget_, *tree_, "d"};
};

TEST_F(DirectPassTest, ReadsNothingBackThatTheWritesGave) {
  WriteDirect(0, 1000 * kPage);
  DirectPass pass(layer_, kPage);
  EXPECT_EQ(Run(pass), 1);
  EXPECT_EQ(pass.read_bytes(), 0u);
}

TEST_F(DirectPassTest, ReadsBackTheLastPageAndWhatWasForgotten) {
  WriteDirect(0, 1000 * kPage + 5);
  const std::string staged = Bytes(10);
  ASSERT_TRUE(WriteAt(*generation_->head, 77 * kPage + 3, staged).ok());
  generation_->direct_sums->Forget({77 * kPage + 3, 10});
  DirectPass pass(layer_, kPage);
  Run(pass);
  EXPECT_EQ(pass.read_bytes(), 2 * kPage);
}

TEST_F(DirectPassTest, TheCutsEndCutsTheLastPage) {
  WriteDirect(0, 3 * kPage);
  layer_.size_bytes = 2 * kPage + 100;  // Bytes beyond are no part of the cut.
  DirectPass pass(layer_, kPage);
  Run(pass);
  EXPECT_EQ(pass.read_bytes(), kPage);
}

TEST_F(DirectPassTest, PausesWhereItReadsBackMuch) {
  WriteDirect(0, 3 * DirectPass::kStepBytes);
  generation_->direct_sums = nullptr;
  DirectPass pass(layer_, kPage);
  EXPECT_EQ(Run(pass), 4);
  EXPECT_EQ(pass.read_bytes(), 3 * DirectPass::kStepBytes);
}

TEST_F(DirectPassTest, SeveralRangesShareAPage) {
  for (uint64_t offset : {uint64_t{100}, uint64_t{3000}, uint64_t{9000}, uint64_t{50'000}}) {
    WriteDirect(offset, 500);
  }
  DirectPass pass(layer_, kPage);
  Run(pass);
  EXPECT_LE(pass.read_bytes(), 3 * kPage);
}

TEST_F(DirectPassTest, AnErrorOfTheDiskEndsIt) {
  WriteDirect(0, 1000 * kPage);
  DirectPass pass(layer_, kPage);
  env_.FailCall(0, absl::InternalError("Input/output error"));
  EXPECT_FALSE(pass.Step().ok());
}

}  // namespace
}  // namespace h5mirror::store
