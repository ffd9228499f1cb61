#include "onion_store/shared/owner_cache.h"

#include "base/strings.h"
#include "gtest/gtest.h"

namespace h5mirror::store {
namespace {

TEST(OwnerCacheTest, WhatWasReadBeforeAChangeIsNotKept) {
  OwnerCache cache;
  const uint64_t before = cache.Now();
  cache.Forget("other.h5");
  cache.Put("a.h5", "unix:anna", before);
  EXPECT_EQ(cache.Find("a.h5"), std::nullopt) << "a.h5 may be another file by now";
  cache.Put("a.h5", "unix:anna", cache.Now());
  EXPECT_EQ(cache.Find("a.h5"), "unix:anna");
  cache.Forget("a.h5");
  EXPECT_EQ(cache.Find("a.h5"), std::nullopt);
}

TEST(OwnerCacheTest, NoOwnerIsKnownToo) {
  OwnerCache cache;
  cache.Put("a.h5", "", cache.Now());
  EXPECT_EQ(cache.Find("a.h5"), "");
}

TEST(OwnerCacheTest, BeginsAnewWhereItIsFull) {
  OwnerCache cache(/*bytes_max=*/1000);
  for (int i = 0; i < 100; ++i) cache.Put(StrCat("file", i, ".h5"), "unix:anna", cache.Now());
  int known = 0;
  for (int i = 0; i < 100; ++i) known += cache.Find(StrCat("file", i, ".h5")).has_value();
  EXPECT_GT(known, 0);
  EXPECT_LE(known, 10);
  EXPECT_EQ(cache.Find("file99.h5"), "unix:anna") << "the newest is among them";
  cache.Put(std::string(2000, 'x'), "unix:anna", cache.Now());
  EXPECT_EQ(cache.Find(std::string(2000, 'x')), std::nullopt) << "it alone is too large";
}

}  // namespace
}  // namespace h5mirror::store
