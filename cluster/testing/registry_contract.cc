#include "cluster/testing/registry_contract.h"

#include <atomic>
#include <thread>
#include <vector>

#include "base/strings.h"
#include "gmock/gmock.h"

namespace h5mirror::cluster {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RegistryContractTest);

void RegistryContractTest::SetUp() {
  place_ = GetParam().make();
  ASSERT_NE(place_, nullptr);
  registry_ = place_->Open();
  ASSERT_NE(registry_, nullptr);
}

void RegistryContractTest::Set(const std::string& name, const std::string& text) {
  const absl::Status set = registry_->CompareAndSet({}, {{name, text}});
  ASSERT_TRUE(set.ok()) << set;
}

TEST_P(RegistryContractTest, ANewOneIsEmpty) {
  const auto all = registry_->ReadAll();
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(*all, IsEmpty());
  const auto some = registry_->Read({"s/a"});
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_THAT(*some, IsEmpty());
}

TEST_P(RegistryContractTest, WhatWasSetIsReadByOthers) {
  Set("s/a", "one");
  Set("s/b", "two");
  const auto other = place_->Open();
  ASSERT_NE(other, nullptr);
  const auto all = other->ReadAll();
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(*all, ElementsAre(Pair("s/a", "one"), Pair("s/b", "two")));
  const auto some = other->Read({"s/b", "s/c"});
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_THAT(*some, ElementsAre(Pair("s/b", "two")));
}

TEST_P(RegistryContractTest, AnAbsentNameCanBeExpected) {
  EXPECT_TRUE(registry_->CompareAndSet({{"c/x", std::nullopt}}, {{"c/x", "one"}}).ok());
  const absl::Status again = registry_->CompareAndSet({{"c/x", std::nullopt}}, {{"c/x", "two"}});
  EXPECT_TRUE(absl::IsAborted(again)) << again;
  EXPECT_EQ((*registry_->ReadAll())["c/x"], "one");
}

TEST_P(RegistryContractTest, AnotherTextAbortsAndNothingChanges) {
  Set("s/a", "up");
  Set("c/x", "free");
  const absl::Status set = registry_->CompareAndSet({{"s/a", "up"}, {"c/x", "served"}},
                                                    {{"c/x", "opening"}, {"c/y", "free"}});
  EXPECT_TRUE(absl::IsAborted(set)) << set;
  EXPECT_THAT(*registry_->ReadAll(), ElementsAre(Pair("c/x", "free"), Pair("s/a", "up")));
}

TEST_P(RegistryContractTest, APrefixOfTheTextIsAnotherText) {
  Set("c/x", "free again");
  for (const char* text : {"free", "free again and again", "e"}) {
    const absl::Status set = registry_->CompareAndSet({{"c/x", text}}, {{"c/x", "taken"}});
    EXPECT_TRUE(absl::IsAborted(set)) << text << ": " << set;
  }
}

TEST_P(RegistryContractTest, SeveralNamesChangeTogether) {
  Set("s/a", "up");
  const absl::Status set =
      registry_->CompareAndSet({{"s/a", "up"}}, {{"s/a", "dead"}, {"c/x", "free"}});
  ASSERT_TRUE(set.ok()) << set;
  EXPECT_THAT(*registry_->ReadAll(), ElementsAre(Pair("c/x", "free"), Pair("s/a", "dead")));
}

TEST_P(RegistryContractTest, AnExpectationMayBeOfANameThatDoesNotChange) {
  Set("s/a", "up");
  ASSERT_TRUE(registry_->CompareAndSet({{"s/a", "up"}}, {{"b/a", "1"}}).ok());
  Set("s/a", "dead");
  const absl::Status late = registry_->CompareAndSet({{"s/a", "up"}}, {{"b/a", "2"}});
  EXPECT_TRUE(absl::IsAborted(late)) << late;
  EXPECT_EQ((*registry_->Read({"b/a"}))["b/a"], "1");
}

TEST_P(RegistryContractTest, BytesOfAnyKindAreKept) {
  const std::string name = StrCat("c/", std::string("r\xc3\xa4ume/\x01", 8));
  const std::string text("a\0b\n\"\xff", 6);
  Set(name, text);
  const auto all = place_->Open()->ReadAll();
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(*all, ElementsAre(Pair(name, text)));
  EXPECT_TRUE(registry_->CompareAndSet({{name, text}}, {{name, "plain"}}).ok());
}

TEST_P(RegistryContractTest, EmptyAndDoubleNamesAreRefused) {
  const std::vector<std::pair<std::vector<Expectation>, std::vector<NewText>>> changes = {
      {{}, {{"", "x"}}},
      {{}, {{"a", ""}}},
      {{{"", "x"}}, {{"a", "x"}}},
      {{{"a", ""}}, {{"a", "x"}}},
      {{{"a", "x"}, {"a", "y"}}, {{"a", "x"}}},
      {{}, {{"a", "x"}, {"a", "y"}}},
  };
  for (const auto& [expected, wanted] : changes) {
    const absl::Status set = registry_->CompareAndSet(expected, wanted);
    EXPECT_TRUE(absl::IsInvalidArgument(set)) << set;
  }
  EXPECT_THAT(*registry_->ReadAll(), IsEmpty());
}

// Each adds one to a number, many times: no addition is lost, so none was made on an old text.
TEST_P(RegistryContractTest, OfClientsThatChangeOneTextEachWinsInTurn) {
  constexpr int kClients = 4;
  constexpr int kAdditions = 25;
  Set("n", "0");
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([this, &failures] {
      const auto mine = place_->Open();
      for (int done = 0; mine != nullptr && done < kAdditions;) {
        const auto seen = mine->Read({"n"});
        if (!seen.ok()) break;
        const std::string before = seen->at("n");
        const absl::Status set =
            mine->CompareAndSet({{"n", before}}, {{"n", std::to_string(std::stoi(before) + 1)}});
        if (set.ok()) ++done;
        if (!set.ok() && !absl::IsAborted(set)) break;
        if (done == kAdditions) return;
      }
      ++failures;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ((*registry_->Read({"n"}))["n"], std::to_string(kClients * kAdditions));
}

}  // namespace h5mirror::cluster
