#include "cli/verbs/restore_ends.h"

#include "base/hex.h"
#include "base/local_record.h"
#include "base/toml.h"
#include "cli/testing/cli_test_base.h"
#include "sync/local_file.h"

namespace h5mirror::tools {
namespace {

using testing::HasSubstr;

TEST(TomlOfTest, EveryTextComesThrough) {
  const std::string text = "a; \"b\" \\ \n\t\xc3\xbc";
  const toml::table table = ParseToml(TomlOf({{"comment", text}, {"include", ""}}), "test");
  EXPECT_EQ(table["comment"].value<std::string>(), text);
  EXPECT_EQ(table["include"].value<std::string>(), "");
}

class RestoreEndsTest : public CliTest {
 protected:
  static RestoreSource Source(const v1::Origin& origin) {
    RestoreSource source;
    source.file.name = "run.h5";
    source.version = 3;
    *source.status.mutable_origin() = origin;
    return source;
  }
};

TEST_F(RestoreEndsTest, TheLocalFileOfAnotherMachineIsNotPartedFromItsMirror) {
  v1::Origin origin;
  origin.set_machine_id("other");
  origin.set_host("node7");
  origin.set_path("/data/run.h5");
  const absl::Status refused = FindRestoreTarget(Source(origin), "").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("node7:/data/run.h5"));
}

TEST_F(RestoreEndsTest, TheLocalFileOfThisMachineIsTheTarget) {
  Pushed(5000);
  RestoreSource source = Source(*LocalOrigin(Path("a.h5")));
  source.status.set_file_id(ToByteString(ReadLocalRecord(Path("a.h5"))->file_id));
  const auto target = FindRestoreTarget(source, "");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->kind, RestoreTarget::Kind::kMirrored);
  EXPECT_EQ(target->local.filename(), "a.h5");
}

TEST_F(RestoreEndsTest, AnotherFileAtThePathOfTheOriginIsNotTouched) {
  Pushed(5000);
  RestoreSource source = Source(*LocalOrigin(Path("a.h5")));
  source.status.set_file_id(std::string(16, 'x'));
  const absl::Status mirrored = FindRestoreTarget(source, "").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(mirrored)) << mirrored;
  EXPECT_THAT(std::string(mirrored.message()), HasSubstr("--into"));
  Write("plain.h5", Hdf5Bytes(2000));
  *source.status.mutable_origin() = *LocalOrigin(Path("plain.h5"));
  EXPECT_TRUE(absl::IsFailedPrecondition(FindRestoreTarget(source, "").status()));
  EXPECT_TRUE(FindRestoreTarget(source, Path("plain.h5")).ok());
}

TEST_F(RestoreEndsTest, AFileThatIsNowhereElseIsOnTheServer) {
  v1::Origin origin;
  EXPECT_EQ(FindRestoreTarget(Source(origin), "")->kind, RestoreTarget::Kind::kRemote);
  origin = *LocalOrigin(Path("gone.h5"));
  EXPECT_EQ(FindRestoreTarget(Source(origin), "")->kind, RestoreTarget::Kind::kRemote);
}

// As where its directory lets only another user in. Root may look everywhere, but at this.
TEST_F(RestoreEndsTest, ALocalFileThatCannotBeLookedAtIsNotPartedFromItsMirror) {
  std::filesystem::create_symlink("round.h5", Path("round.h5"));
  v1::Origin origin = *LocalOrigin(Path("gone.h5"));
  origin.set_path(Path("round.h5"));
  const absl::Status refused = FindRestoreTarget(Source(origin), "").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("which you cannot look at"));
}

// As behind Landlock, or where the record is another user's. Root may read every file, but not
// this.
TEST_F(RestoreEndsTest, ALocalRecordThatCannotBeReadIsRefusedInWords) {
  Write("a.h5", Hdf5Bytes(2000));
  std::filesystem::create_directories(RecordPath(Path("a.h5")));
  const absl::Status refused = FindRestoreTarget(Source(*LocalOrigin(Path("a.h5"))), "").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("which you cannot look at"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr(RecordPath(Path("a.h5")).string()));
}

TEST_F(RestoreEndsTest, AnyLocalFileCanBeTheTarget) {
  const auto fresh = FindRestoreTarget(Source({}), Path("new.h5"));
  ASSERT_TRUE(fresh.ok());
  EXPECT_TRUE(fresh->is_new);
  EXPECT_EQ(fresh->kind, RestoreTarget::Kind::kPlain);
  Write("plain.h5", Hdf5Bytes(2000));
  EXPECT_FALSE(FindRestoreTarget(Source({}), Path("plain.h5"))->is_new);
}

TEST_F(RestoreEndsTest, ALeaseOrAMissingRightIsRefusedBeforeAnythingIsChanged) {
  Pushed(5000);
  server_.SetLease("a.h5", "sim.x");
  const auto leased = Run({"restore", "a.h5@1:/g"});
  EXPECT_EQ(leased.code, 5);
  EXPECT_THAT(leased.err, HasSubstr("sim.x"));
  server_.SetRights({"read"});
  const auto denied = Run({"restore", "a.h5@1:/g"});
  EXPECT_EQ(denied.code, 8);
  EXPECT_THAT(denied.err, HasSubstr("\"write\""));
}

TEST_F(RestoreEndsTest, TheRootGroupIsTheWholeFile) {
  const auto refused = Run({"restore", "a.h5@1:/"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("h5mirror rollback"));
}

}  // namespace
}  // namespace h5mirror::tools
