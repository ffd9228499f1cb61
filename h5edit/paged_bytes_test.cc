#include "h5edit/paged_bytes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "base/testing/fault_env.h"

namespace h5mirror::edit {
namespace {

std::string ContentOf(PagedBytes& bytes) {
  std::string content(bytes.size_bytes(), '?');
  EXPECT_TRUE(bytes.Read(0, absl::MakeSpan(content)).ok());
  return content;
}

// What the base becomes by the changes, or was by the way back.
std::string Applied(std::string base, const store::JournalCut& cut, bool forward) {
  base.resize(std::max(cut.size_before, cut.size_after));
  for (const store::JournalPage& page : cut.pages) {
    const std::string& image = forward ? page.after : page.before;
    base.replace(page.offset, image.size(), image);
  }
  base.resize(forward ? cut.size_after : cut.size_before);
  return base;
}

TEST(PagedBytesTest, RandomWritesAndTruncatesReadAsInAString) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 chance(seed);
    FaultEnv env;
    auto tree = *env.OpenTree("/");
    auto head = *tree->Open("x", OpenKind::kCreate, 0600);
    std::string base(chance() % 20000, 'b'), model = base;
    ASSERT_TRUE(WriteAt(*head, 0, base).ok());
    PagedBytes bytes(*head, base.size());
    for (int step = 0; step < 12; ++step) {
      const uint64_t at = chance() % 24000;
      if (chance() % 3 == 0) {
        ASSERT_TRUE(bytes.Truncate(at).ok());
        model.resize(at);
      } else {
        const std::string text(1 + chance() % 6000, static_cast<char>('c' + step));
        ASSERT_TRUE(bytes.Write(at, text).ok());
        if (model.size() < at + text.size()) model.resize(at + text.size());
        model.replace(at, text.size(), text);
      }
      ASSERT_EQ(ContentOf(bytes), model);
      if (chance() % 5 != 0) continue;
      const auto cut = bytes.Changes();
      ASSERT_TRUE(cut.ok());
      ASSERT_EQ(Applied(base, *cut, true), model);
      ASSERT_EQ(Applied(model, *cut, false), base);
      ASSERT_TRUE(head->Truncate(0).ok());
      ASSERT_TRUE(WriteAt(*head, 0, model).ok());
      base = model;
      bytes.Forget();
      ASSERT_FALSE(bytes.changed());
    }
  }
}

TEST(PagedBytesTest, EqualBytesAreNoChange) {
  FaultEnv env;
  auto tree = *env.OpenTree("/");
  auto head = *tree->Open("x", OpenKind::kCreate, 0600);
  ASSERT_TRUE(WriteAt(*head, 0, "0123456789").ok());
  PagedBytes bytes(*head, 10);
  ASSERT_TRUE(bytes.Write(2, "234").ok());
  EXPECT_TRUE(bytes.changed());
  EXPECT_TRUE(bytes.Changes()->pages.empty());
}

}  // namespace
}  // namespace h5mirror::edit
