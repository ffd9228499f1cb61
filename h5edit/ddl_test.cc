// Values that a script cannot make, as they are shown.
#include "h5edit/ddl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "h5edit/h5_types.h"

namespace h5mirror::edit {
namespace {

using hdf5::Handle;
using testing::HasSubstr;

// A file in memory, with a dataset /d of 4 elements and an attribute `a` of it.
class DdlTest : public testing::Test {
 protected:
  DdlTest() {
    EXPECT_TRUE(hdf5::StartLibrary().ok());
    const Handle access(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_fapl_core(access.get(), 1 << 16, false);
    file_ = Handle(H5Fcreate("ddl_test.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
    const hsize_t count = 4;
    space_ = Handle(H5Screate_simple(1, &count, nullptr));
    const Handle dataset(H5Dcreate2(file_.get(), "d", H5T_STD_I8LE, space_.get(), H5P_DEFAULT,
                                    H5P_DEFAULT, H5P_DEFAULT));
    const Handle attribute(
        H5Acreate2(dataset.get(), "a", H5T_STD_I8LE, space_.get(), H5P_DEFAULT, H5P_DEFAULT));
  }

  // An attribute of the root, as it is shown.
  std::string Shown(const char* name, hid_t type, const void* values) {
    {
      const Handle made(
          H5Acreate2(file_.get(), name, type, space_.get(), H5P_DEFAULT, H5P_DEFAULT));
      EXPECT_GE(H5Awrite(made.get(), type, values), 0);
    }
    return AttributeDdl(file_.get(), name).value_or("none");
  }

  Handle file_, space_;
};

TEST_F(DdlTest, ReferencesOfTheNewKind) {
  std::array<H5R_ref_t, 4> references{};
  const hsize_t first = 1, two = 2;
  const Handle part(H5Scopy(space_.get()));
  H5Sselect_hyperslab(part.get(), H5S_SELECT_SET, &first, nullptr, &two, nullptr);
  H5Rcreate_object(file_.get(), "/d", H5P_DEFAULT, references.data());
  H5Rcreate_region(file_.get(), "/d", part.get(), H5P_DEFAULT, &references[1]);
  H5Rcreate_attr(file_.get(), "/d", "a", H5P_DEFAULT, &references[2]);
  const std::string text = Shown("r", H5T_STD_REF, references.data());
  for (int i = 0; i < 3; ++i) H5Rdestroy(&references[static_cast<size_t>(i)]);
  EXPECT_THAT(text, HasSubstr("DATATYPE H5T_REFERENCE { H5T_STD_REF }"));
  EXPECT_THAT(text, HasSubstr("DATASET \"/d\", DATASET \"/d\" {REGION_TYPE BLOCK (1)-(2)}"));
  EXPECT_THAT(text, HasSubstr("DATASET \"/d\" ATTRIBUTE \"a\""));
  EXPECT_THAT(text, HasSubstr("NULL\n"));
}

TEST_F(DdlTest, AReferenceToWhatIsGoneIsItsBytes) {
  hobj_ref_t references[4] = {};
  H5Rcreate(references, file_.get(), "/d", H5R_OBJECT, H5I_INVALID_HID);
  H5Ldelete(file_.get(), "/d", H5P_DEFAULT);
  const std::string text = Shown("r", H5T_STD_REF_OBJ, references);
  EXPECT_THAT(text, testing::ContainsRegex("[0-9a-f:]+, NULL, NULL, NULL\n"));
}

TEST(H5TypesTest, WhatAScriptCannotWriteIsNamed) {
  EXPECT_THAT(ElementTypeOf(H5T_STD_REF).status().message(), HasSubstr("H5T_STD_REF"));
  EXPECT_THAT(ElementTypeOf(H5T_UNIX_D32LE).status().message(), HasSubstr("H5T_TIME"));
  const Handle wide(H5Tcopy(H5T_STD_I64LE));
  H5Tset_size(wide.get(), 16);
  const Handle list(H5Tvlen_create(wide.get()));
  EXPECT_THAT(ElementTypeOf(list.get()).status().message(), HasSubstr("more than 64 bits"));
}

}  // namespace
}  // namespace h5mirror::edit
