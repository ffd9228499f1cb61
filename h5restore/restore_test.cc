#include "h5restore/restore.h"

#include <array>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "h5restore/element_layout.h"
#include "h5restore/link_graph.h"
#include "h5restore/paths.h"
#include "h5restore/survey.h"

namespace h5mirror::restore {
namespace {

using hdf5::Handle;
using tools::RestoreJob;
using tools::RestoreResult;

// Two files in memory; nothing of them comes to a disk.
class RestoreTest : public testing::Test {
 protected:
  RestoreTest() {
    EXPECT_TRUE(hdf5::StartLibrary().ok());
    const Handle access(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_fapl_core(access.get(), 1 << 16, false);
    source_ = Handle(H5Fcreate("source.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
    target_ = Handle(H5Fcreate("target.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
    job_.path = job_.as = "/g";
  }

  static void Group(const Handle& file, const char* path) {
    const auto links = LinkProperties(H5T_CSET_ASCII);
    ASSERT_TRUE(
        Handle(H5Gcreate2(file.get(), path, links->get(), H5P_DEFAULT, H5P_DEFAULT)).valid());
  }
  static void Number(const Handle& file, const char* path, int value) {
    const auto links = LinkProperties(H5T_CSET_ASCII);
    const Handle space(H5Screate(H5S_SCALAR));
    const Handle made(H5Dcreate2(file.get(), path, H5T_NATIVE_INT, space.get(), links->get(),
                                 H5P_DEFAULT, H5P_DEFAULT));
    ASSERT_GE(H5Dwrite(made.get(), H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value), 0);
  }
  static int NumberAt(hid_t object) {
    int value = -1;
    H5Dread(object, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value);
    return value;
  }
  // A dataset with one reference.
  static void Reference(const Handle& file, const char* path, const char* to) {
    const Handle space(H5Screate(H5S_SCALAR));
    const Handle made(H5Dcreate2(file.get(), path, H5T_STD_REF_OBJ, space.get(), H5P_DEFAULT,
                                 H5P_DEFAULT, H5P_DEFAULT));
    hobj_ref_t reference = 0;
    ASSERT_GE(H5Rcreate(&reference, file.get(), to, H5R_OBJECT, H5I_INVALID_HID), 0);
    ASSERT_GE(H5Dwrite(made.get(), H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, &reference), 0);
  }
  // The number in the dataset that it leads to; -2: it is null.
  static int Referenced(const Handle& file, const char* path) {
    const Handle from(H5Dopen2(file.get(), path, H5P_DEFAULT));
    hobj_ref_t reference = 0;
    H5Dread(from.get(), H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, &reference);
    if (reference == 0) return -2;
    return NumberAt(Handle(H5Rdereference2(file.get(), H5P_DEFAULT, H5R_OBJECT, &reference)).get());
  }
  int Target(const char* path) {
    return NumberAt(Handle(H5Dopen2(target_.get(), path, H5P_DEFAULT)).get());
  }
  absl::StatusOr<RestoreResult> Run() {
    const Ends ends{source_.get(), "source.h5@1", target_.get(), "target.h5"};
    return RestoreObject(ends, job_, &left_);
  }
  static void Link(const Handle& file, const char* from, const char* to) {
    ASSERT_GE(H5Lcreate_hard(file.get(), from, file.get(), to, H5P_DEFAULT, H5P_DEFAULT), 0);
  }
  static void Numbers(const Handle& file, const char* path, hsize_t count) {
    const auto links = LinkProperties(H5T_CSET_ASCII);
    const Handle space(H5Screate_simple(1, &count, nullptr));
    ASSERT_TRUE(Handle(H5Dcreate2(file.get(), path, H5T_NATIVE_INT, space.get(), links->get(),
                                  H5P_DEFAULT, H5P_DEFAULT))
                    .valid());
  }
  // A dataset with one reference to the first two elements, of the type H5T_STD_REF.
  static void Region(const Handle& file, const char* path, const char* to) {
    const Handle dataset(H5Dopen2(file.get(), to, H5P_DEFAULT));
    const Handle region(H5Dget_space(dataset.get()));
    const hsize_t start = 0, count = 2;
    H5Sselect_hyperslab(region.get(), H5S_SELECT_SET, &start, nullptr, &count, nullptr);
    const Handle space(H5Screate(H5S_SCALAR));
    const Handle made(H5Dcreate2(file.get(), path, H5T_STD_REF, space.get(), H5P_DEFAULT,
                                 H5P_DEFAULT, H5P_DEFAULT));
    H5R_ref_t reference{};
    ASSERT_GE(H5Rcreate_region(file.get(), to, region.get(), H5P_DEFAULT, &reference), 0);
    EXPECT_GE(H5Dwrite(made.get(), H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, &reference), 0);
    H5Rdestroy(&reference);
  }
  static H5R_type_t RegionType(const Handle& file, const char* path) {
    const Handle from(H5Dopen2(file.get(), path, H5P_DEFAULT));
    H5R_ref_t reference{};
    H5Dread(from.get(), H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, &reference);
    const H5R_type_t type = H5Rget_type(&reference);
    if (type == H5R_DATASET_REGION2) H5Rdestroy(&reference);
    return type;
  }
  size_t RootLinks() {
    H5G_info_t info{};
    H5Gget_info(target_.get(), &info);
    return info.nlinks;
  }

  Handle source_, target_;
  RestoreJob job_;
  Left left_ = Left::kUntouched;
};

TEST_F(RestoreTest, AGroupComesBackUnderAnotherNameWithItsParents) {
  Number(source_, "/g/a/n", 7);
  job_.as = "/x/y/g";
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->kind, "group");
  EXPECT_EQ(result->objects, 3U);
  EXPECT_EQ(result->made_groups, (std::vector<std::string>{"/x", "/x/y"}));
  EXPECT_EQ(Target("/x/y/g/a/n"), 7);
  EXPECT_EQ(RootLinks(), 1U);
}

TEST_F(RestoreTest, WhatIsThereIsOnlyReplacedWhenAsked) {
  Number(source_, "/g", 7);
  Number(target_, "/g", 8);
  const absl::Status refused = Run().status();
  EXPECT_TRUE(absl::IsAlreadyExists(refused));
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("--replace"));
  EXPECT_EQ(left_, Left::kUntouched);
  job_.replaces = true;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(Target("/g"), 7);
  EXPECT_EQ(RootLinks(), 1U);
}

TEST_F(RestoreTest, ADryRunChangesNothing) {
  Number(source_, "/g", 7);
  job_.dry_run = true;
  const auto result = Run();
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->replaced);
  EXPECT_EQ(RootLinks(), 0U);
}

TEST_F(RestoreTest, WhatTheSourceLacksIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(Run().status()));
  job_.path = "/no/g";
  EXPECT_TRUE(absl::IsNotFound(Run().status()));
}

TEST_F(RestoreTest, ReferencesLeadToTheCopyToThePathOrNowhere) {
  Group(source_, "/g");
  Number(source_, "/g/n", 7);
  Number(source_, "/there", 1);
  Number(source_, "/gone", 2);
  Reference(source_, "/g/inside", "/g/n");
  Reference(source_, "/g/outside", "/there");
  Reference(source_, "/g/lost", "/gone");
  Number(target_, "/there", 100);
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Referenced(target_, "/g/inside"), 7);
  EXPECT_EQ(Referenced(target_, "/g/outside"), 100);
  EXPECT_EQ(Referenced(target_, "/g/lost"), -2);
  EXPECT_EQ(result->references, 2U);
  ASSERT_EQ(result->lost.size(), 1U);
  EXPECT_EQ(result->lost[0].object, "/g/lost");
  EXPECT_EQ(result->lost[0].leads_to, "/gone");
}

TEST_F(RestoreTest, ReferencesToWhatIsReplacedLeadToTheNewOne) {
  Number(source_, "/g/n", 7);
  Number(target_, "/g/n", 8);
  Reference(target_, "/r", "/g/n");
  job_.replaces = true;
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->led_over, 1U);
  EXPECT_EQ(Referenced(target_, "/r"), 7);
}

TEST_F(RestoreTest, AnotherHardLinkKeepsTheOldObject) {
  Number(source_, "/g", 7);
  Number(target_, "/g", 8);
  Reference(target_, "/r", "/g");
  H5Lcreate_hard(target_.get(), "/g", target_.get(), "/other", H5P_DEFAULT, H5P_DEFAULT);
  job_.replaces = true;
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->other_names, 1U);
  EXPECT_EQ(Target("/other"), 8);
  EXPECT_EQ(Target("/g"), 7);
  EXPECT_EQ(Referenced(target_, "/r"), 8);
}

TEST_F(RestoreTest, ALinkComesBackAsALink) {
  H5Lcreate_soft("/else/where", source_.get(), "/g", H5P_DEFAULT, H5P_DEFAULT);
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->kind, "soft link");
  std::array<char, 32> value{};
  H5Lget_val(target_.get(), "/g", value.data(), value.size(), H5P_DEFAULT);
  EXPECT_STREQ(value.data(), "/else/where");
}

TEST_F(RestoreTest, ACommittedTypeElsewhereStaysOneType) {
  for (const Handle* file : {&source_, &target_}) {
    const Handle type(H5Tcopy(H5T_NATIVE_INT));
    H5Tcommit2(file->get(), "/kind", type.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  }
  const Handle type(H5Topen2(source_.get(), "/kind", H5P_DEFAULT));
  const Handle space(H5Screate(H5S_SCALAR));
  const Handle made(H5Dcreate2(source_.get(), "/g", type.get(), space.get(), H5P_DEFAULT,
                               H5P_DEFAULT, H5P_DEFAULT));
  ASSERT_TRUE(Run().ok());
  const Handle copy(H5Dopen2(target_.get(), "/g", H5P_DEFAULT));
  const Handle used(H5Dget_type(copy.get()));
  const Handle kind(H5Topen2(target_.get(), "/kind", H5P_DEFAULT));
  EXPECT_EQ(TokenOf(*InfoOf(used.get(), "")), TokenOf(*InfoOf(kind.get(), "")));
}

TEST_F(RestoreTest, AParentThatIsNoGroupIsRefused) {
  Number(source_, "/g", 7);
  Number(target_, "/d", 1);
  job_.as = "/d/g";
  EXPECT_TRUE(absl::IsFailedPrecondition(Run().status()));
}

TEST_F(RestoreTest, AReferenceToWhatTheNewOneLacksIsNullAndTold) {
  Number(source_, "/g/n", 7);
  Number(target_, "/g/n", 8);
  Number(target_, "/g/gone", 9);
  Reference(target_, "/r", "/g/gone");
  job_.replaces = true;
  for (const bool dry_run : {true, false}) {
    job_.dry_run = dry_run;
    const auto result = Run();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->led_over, 0U);
    ASSERT_EQ(result->lost.size(), 1U);
    EXPECT_EQ(result->lost[0].object, "/r");
    EXPECT_EQ(result->lost[0].leads_to, "/g/gone");
    EXPECT_EQ(result->lost[0].why, "missing");
    EXPECT_TRUE(result->lost[0].removed);
    EXPECT_EQ(Referenced(target_, "/r"), dry_run ? 9 : -2);
  }
}

TEST_F(RestoreTest, ARegionOfWhatIsReplacedThatNoLongerFitsIsNullAndTold) {
  Numbers(source_, "/g", 1);
  Numbers(target_, "/g", 5);
  Region(target_, "/r", "/g");
  job_.replaces = true;
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->lost.size(), 1U);
  EXPECT_EQ(result->lost[0].why, "too_small");
  EXPECT_NE(RegionType(target_, "/r"), H5R_DATASET_REGION2);
}

TEST_F(RestoreTest, ARegionOfTheCopyStaysOne) {
  Group(source_, "/g");
  Numbers(source_, "/g/n", 5);
  Region(source_, "/g/r", "/g/n");
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->references, 1U);
  EXPECT_EQ(RegionType(target_, "/g/r"), H5R_DATASET_REGION2);
}

TEST_F(RestoreTest, ADryRunCountsTheReferencesThatWouldBeLed) {
  Number(source_, "/g/n", 7);
  Reference(source_, "/g/inside", "/g/n");
  Number(target_, "/g/n", 8);
  Reference(target_, "/r", "/g/n");
  job_.replaces = job_.dry_run = true;
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->led_over, 1U);
  EXPECT_EQ(result->references, 1U);
  EXPECT_EQ(Referenced(target_, "/r"), 8);
}

TEST_F(RestoreTest, ALostReferenceSaysWhatIsThereInstead) {
  Group(source_, "/g");
  Number(source_, "/kind", 1);
  Numbers(source_, "/small", 5);
  Reference(source_, "/g/kind", "/kind");
  Region(source_, "/g/small", "/small");
  Group(target_, "/kind");
  Numbers(target_, "/small", 1);
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->lost.size(), 2U);
  EXPECT_EQ(result->lost[0].why, "other_kind");
  EXPECT_EQ(result->lost[1].why, "too_small");
  EXPECT_FALSE(result->lost[0].removed);
}

TEST_F(RestoreTest, AReferenceFindsItsObjectByAnyOfItsPaths) {
  Group(source_, "/g");
  Number(source_, "/a", 1);
  Link(source_, "/a", "/z");
  Reference(source_, "/g/r", "/a");
  Number(target_, "/z", 100);
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->lost.empty());
  EXPECT_EQ(Referenced(target_, "/g/r"), 100);
}

TEST_F(RestoreTest, AGroupThatHoldsItselfIsGoneWhenItIsReplaced) {
  Number(source_, "/g/n", 7);
  Number(target_, "/g/n", 8);
  Link(target_, "/g", "/g/me");
  Reference(target_, "/r", "/g/n");
  job_.replaces = true;
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->other_names, 0U);
  EXPECT_EQ(result->led_over, 1U);
  EXPECT_EQ(Referenced(target_, "/r"), 7);
}

TEST_F(RestoreTest, WhatIsReplacedIsTold) {
  Number(source_, "/g", 7);
  Number(target_, "/g/a", 8);
  Number(target_, "/g/b", 8);
  job_.replaces = job_.dry_run = true;
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->old_kind, "group");
  EXPECT_EQ(result->old_objects, 3U);
  EXPECT_EQ(result->old_bytes, 2 * sizeof(int));
}

TEST_F(RestoreTest, AnObjectBelowThatAnotherLinkKeepsIsTold) {
  for (const Handle* file : {&source_, &target_}) {
    Number(*file, "/g/data", file == &source_ ? 7 : 8);
    Link(*file, "/g/data", "/det");
  }
  job_.replaces = true;
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Target("/g/data"), 7);
  EXPECT_EQ(Target("/det"), 8);
  EXPECT_EQ(result->old_objects, 1U);
  EXPECT_EQ(result->split_count, 1U);
  ASSERT_EQ(result->splits.size(), 1U);
  EXPECT_EQ(result->splits[0].object, "/g/data");
  EXPECT_EQ(result->splits[0].other, "/det");
}

TEST_F(RestoreTest, AGroupThatHoldsTheRootIsTold) {
  Number(source_, "/g/n", 7);
  Link(source_, "/", "/g/all");
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->splits.size(), 1U);
  EXPECT_EQ(result->splits[0].object, "/g/all");
  EXPECT_EQ(result->splits[0].other, "/");
}

TEST_F(RestoreTest, ASourceThatLacksAnObjectInAnotherFileSaysWhere) {
  ASSERT_GE(H5Lcreate_external("no.h5", "/", source_.get(), "/away", H5P_DEFAULT, H5P_DEFAULT), 0);
  job_.path = "/away/g";
  const absl::Status status = Run().status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("/away is no group of that file"));
}

// A filter that does nothing, and can be away.
constexpr H5Z_filter_t kOwnFilter = 300;
size_t PassOn(unsigned, size_t, const unsigned*, size_t bytes, size_t*, void**) { return bytes; }

TEST_F(RestoreTest, ReferencesPackedByAFilterThatIsNotHereAreRefusedBeforeAnyChange) {
  const H5Z_class2_t filter = {H5Z_CLASS_T_VERS, kOwnFilter, 1, 1, "own", nullptr, nullptr, PassOn};
  ASSERT_GE(H5Zregister(&filter), 0);
  {
    const hsize_t count = 1;
    const Handle how(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(how.get(), 1, &count);
    H5Pset_filter(how.get(), kOwnFilter, 0, 0, nullptr);
    const Handle space(H5Screate_simple(1, &count, nullptr));
    const Handle made(H5Dcreate2(source_.get(), "/g", H5T_STD_REF_OBJ, space.get(), H5P_DEFAULT,
                                 how.get(), H5P_DEFAULT));
    hobj_ref_t root = 0;
    ASSERT_GE(H5Rcreate(&root, source_.get(), "/", H5R_OBJECT, H5I_INVALID_HID), 0);
    ASSERT_GE(H5Dwrite(made.get(), H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, &root), 0);
  }
  H5Fflush(source_.get(), H5F_SCOPE_LOCAL);
  ASSERT_GE(H5Zunregister(kOwnFilter), 0);
  for (const bool dry_run : {true, false}) {
    job_.dry_run = dry_run;
    const absl::Status status = Run().status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                testing::AllOf(testing::HasSubstr("source.h5@1:/g"), testing::HasSubstr("300"),
                               testing::HasSubstr("HDF5_PLUGIN_PATH")));
    EXPECT_EQ(left_, Left::kUntouched);
  }
}

TEST_F(RestoreTest, ADatasetWithAScaleThatStaysIsTold) {
  Numbers(source_, "/x", 5);
  Numbers(source_, "/g", 5);
  Numbers(target_, "/x", 5);
  const Handle dataset(H5Dopen2(source_.get(), "/g", H5P_DEFAULT));
  const Handle type(H5Tvlen_create(H5T_STD_REF_OBJ));
  const Handle space(H5Screate(H5S_SCALAR));
  const Handle list(H5Acreate2(dataset.get(), "DIMENSION_LIST", type.get(), space.get(),
                               H5P_DEFAULT, H5P_DEFAULT));
  hobj_ref_t scale = 0;
  H5Rcreate(&scale, source_.get(), "/x", H5R_OBJECT, H5I_INVALID_HID);
  hvl_t value{1, &scale};
  ASSERT_GE(H5Awrite(list.get(), type.get(), &value), 0);
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->scaled_count, 1U);
  EXPECT_EQ(result->scaled, std::vector<std::string>{"/g"});
}

TEST_F(RestoreTest, PathsOfAnObjectInALoopEnd) {
  Number(target_, "/a/n", 1);
  Link(target_, "/", "/a/root");
  Link(target_, "/a", "/b");
  const auto graph = LinkGraph::Of(target_.get(), "target.h5");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Handle number(H5Dopen2(target_.get(), "/a/n", H5P_DEFAULT));
  const std::string token = TokenOf(*InfoOf(number.get(), ""));
  EXPECT_THAT(graph->Paths(graph->root(), token, 16), testing::UnorderedElementsAre("a/n", "b/n"));
  EXPECT_EQ(graph->Paths(graph->root(), token, 1).size(), 1U);
}

TEST(LayoutTest, ReferencesOfCompoundsArraysAndSequencesAreFound) {
  const hsize_t two = 2;
  const Handle array(H5Tarray_create2(H5T_STD_REF_OBJ, 1, &two));
  const Handle sequence(H5Tvlen_create(H5T_STD_REF_OBJ));
  struct Element {
    int number;
    std::array<hobj_ref_t, 2> pair;
    hvl_t many;
  };
  const Handle type(H5Tcreate(H5T_COMPOUND, sizeof(Element)));
  H5Tinsert(type.get(), "number", HOFFSET(Element, number), H5T_NATIVE_INT);
  H5Tinsert(type.get(), "pair", HOFFSET(Element, pair), array.get());
  H5Tinsert(type.get(), "many", HOFFSET(Element, many), sequence.get());
  std::array<hobj_ref_t, 3> many{3, 4, 5};
  Element element{0, {1, 2}, {many.size(), many.data()}};
  const auto layout = LayoutOf(type.get());
  ASSERT_TRUE(layout.ok()) << layout.status();
  std::vector<hobj_ref_t> seen;
  ASSERT_TRUE(ForEachReference(*layout, reinterpret_cast<char*>(&element),
                               [&](ReferenceForm form, char* at) {
                                 EXPECT_EQ(form, ReferenceForm::kObject);
                                 seen.push_back(*reinterpret_cast<hobj_ref_t*>(at));
                                 return absl::OkStatus();
                               })
                  .ok());
  EXPECT_EQ(seen, (std::vector<hobj_ref_t>{1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace h5mirror::restore
