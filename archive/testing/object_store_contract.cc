#include "archive/testing/object_store_contract.h"

#include <set>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::archive {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> NamesOf(store::ObjectStore& store, std::string_view prefix, size_t limit) {
  std::vector<std::string> names;
  std::string next;
  do {
    const auto page = store.List(prefix, next, limit, kTestTimeout);
    EXPECT_TRUE(page.ok()) << page.status();
    if (!page.ok()) break;
    EXPECT_LE(page->objects.size(), limit);
    for (const store::ObjectInfo& object : page->objects) names.push_back(object.name);
    next = page->next;
  } while (!next.empty());
  return names;
}

void ExpectPutsAndGets(store::ObjectStore& store) {
  const std::string text =
      StrCat(std::string_view("ab\0c", 4), std::string(size_t{3} << 20, 'x'), "end");
  ASSERT_TRUE(PutText(store, "files/a/1", text).ok());
  EXPECT_EQ(GetText(store, "files/a/1").value_or(""), text);
  EXPECT_EQ(store.Head("files/a/1", kTestTimeout)->size_bytes, text.size());
  std::string part(5, '\0');
  const absl::Status got = store.Get("files/a/1", 1, absl::MakeSpan(part), kTestTimeout);
  EXPECT_TRUE(got.ok()) << got;
  EXPECT_EQ(part, std::string("b\0cxx", 5));
  ASSERT_TRUE(PutText(store, "files/empty", "").ok());
  EXPECT_EQ(store.Head("files/empty", kTestTimeout)->size_bytes, 0u);
}

void ExpectNothingIsReplaced(store::ObjectStore& store) {
  ASSERT_TRUE(PutText(store, "files/b", "first").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(PutText(store, "files/b", "second")));
  EXPECT_EQ(GetText(store, "files/b").value_or(""), "first");
}

void ExpectNamesInErrors(store::ObjectStore& store) {
  std::string out(10, '\0');
  const absl::Status none = store.Get("files/none", 0, absl::MakeSpan(out), kTestTimeout);
  EXPECT_TRUE(absl::IsNotFound(none)) << none;
  EXPECT_THAT(std::string(none.message()), HasSubstr("files/none"));
  EXPECT_THAT(std::string(none.message()), HasSubstr(store.Describe()));
  EXPECT_TRUE(absl::IsNotFound(store.Head("files/none", kTestTimeout).status()));
  ASSERT_TRUE(PutText(store, "files/c", "12345").ok());
  for (const uint64_t offset : {0, 3, 5, 1000}) {
    const absl::Status ends = store.Get("files/c", offset, absl::MakeSpan(out), kTestTimeout);
    EXPECT_TRUE(absl::IsDataLoss(ends)) << offset << ": " << ends;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(PutText(store, "../c", "x")));
  EXPECT_TRUE(absl::IsInvalidArgument(store.Delete("a//b", kTestTimeout)));
}

void ExpectDeletes(store::ObjectStore& store) {
  ASSERT_TRUE(PutText(store, "files/d", "x").ok());
  for (int i = 0; i < 2; ++i) {
    const absl::Status deleted = store.Delete("files/d", kTestTimeout);
    EXPECT_TRUE(deleted.ok()) << deleted;
  }
  EXPECT_TRUE(absl::IsNotFound(store.Head("files/d", kTestTimeout).status()));
  EXPECT_TRUE(store.Delete("nowhere/d", kTestTimeout).ok());
  EXPECT_TRUE(PutText(store, "files/d", "y").ok());
  EXPECT_EQ(GetText(store, "files/d").value_or(""), "y");
}

void ExpectLists(store::ObjectStore& store) {
  for (const char* name : {"l/b/2", "l/a-b", "l/a/1", "l/b/10", "l/c", "m"}) {
    ASSERT_TRUE(PutText(store, name, "1").ok());
  }
  for (const size_t limit : {1, 2, 1000}) {
    EXPECT_THAT(NamesOf(store, "l/", limit),
                ElementsAre("l/a-b", "l/a/1", "l/b/10", "l/b/2", "l/c"))
        << limit;
    EXPECT_THAT(NamesOf(store, "l/b/", limit), ElementsAre("l/b/10", "l/b/2"));
    EXPECT_THAT(NamesOf(store, "l/a", limit), ElementsAre("l/a-b", "l/a/1"));
    EXPECT_THAT(NamesOf(store, "none/", limit), ElementsAre());
  }
}

}  // namespace

absl::StatusOr<std::string> GetText(store::ObjectStore& store, std::string_view name) {
  H5M_ASSIGN_OR_RETURN(const store::ObjectInfo info, store.Head(name, kTestTimeout));
  std::string text(info.size_bytes, '\0');
  if (!text.empty()) {
    H5M_RETURN_IF_ERROR(store.Get(name, 0, absl::MakeSpan(text), kTestTimeout));
  }
  return text;
}

void ExpectObjectStoreContract(store::ObjectStore& store) {
  ExpectPutsAndGets(store);
  ExpectNothingIsReplaced(store);
  ExpectNamesInErrors(store);
  ExpectDeletes(store);
  ExpectLists(store);
}

}  // namespace h5mirror::archive
