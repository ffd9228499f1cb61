#include "h5restore/restore.h"

#include <array>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "h5restore/element_layout.h"
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
