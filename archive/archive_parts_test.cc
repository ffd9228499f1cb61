// Parts of one archive, as the cells of a cluster have them. Each part has an owner of its own, has
// a guard, and is broken off alone.
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "archive/root_archive.h"
#include "archive/testing/object_store_contract.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::archive {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ArchivePartsTest : public testing::Test {
 protected:
  ArchivePartsTest() {
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
    std::filesystem::create_directory(directory_ + "/arc");
    all_ = OpenAll();
  }
  ~ArchivePartsTest() override {
    all_.reset();
    std::filesystem::remove_all(directory_);
  }

  std::unique_ptr<RootArchive> OpenAll(uint64_t rate = 0) {
    auto opened = RootArchive::Open(Env::Posix(),
                                    {.url = "dir:" + directory_ + "/arc", .background_rate = rate});
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }
  // Opens the part as a server does whose cell keeps `kept` with its root.
  std::unique_ptr<RootArchive> OpenPart(RootArchive& all, const std::string& part,
                                        std::string* kept) {
    auto opened = all.OpenPart({.url = "",
                                .part = part,
                                .owner = *kept,
                                .keep_owner =
                                    [kept](const std::string& owner) {
                                      *kept = owner;
                                      return absl::OkStatus();
                                    },
                                .owner_place = "/data/lab/.h5mirror/archive"});
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }
  std::unique_ptr<RootArchive> Serve(const std::string& part, std::string* kept) {
    auto opened = OpenPart(*all_, part, kept);
    opened->SetGuard([this] { return guard_; });
    const RootArchive::BackgroundWork claims;
    opened->Head("root", kTestTimeout).IgnoreError();
    return opened;
  }

  std::string directory_ = testing::TempDir() + "/h5m-parts-XXXXXX";
  absl::Status guard_;
  std::unique_ptr<RootArchive> all_;
  std::map<std::string, std::string> kept_;
};

TEST_F(ArchivePartsTest, APartIsAnArchiveAsAnyOther) {
  const auto part = Serve("cells/lab", &kept_["lab"]);
  ExpectObjectStoreContract(*part);
  EXPECT_THAT(kept_["lab"], SizeIs(32));
  EXPECT_THAT(part->Describe(), HasSubstr("/arc/cells/lab"));
}

TEST_F(ArchivePartsTest, PartsDoNotSeeEachOther) {
  const auto one = Serve("cells/one", &kept_["one"]);
  const auto two = Serve("cells/two", &kept_["two"]);
  EXPECT_NE(kept_["one"], kept_["two"]);
  ASSERT_TRUE(PutText(*one, "files/a", "one").ok());
  ASSERT_TRUE(PutText(*two, "files/a", "two").ok());
  EXPECT_EQ(GetText(*one, "files/a").value_or(""), "one");
  EXPECT_EQ(GetText(*two, "files/a").value_or(""), "two");
  ASSERT_TRUE(one->Delete("files/a", kTestTimeout).ok());
  EXPECT_TRUE(absl::IsNotFound(GetText(*one, "files/a").status()));
  EXPECT_EQ(GetText(*two, "files/a").value_or(""), "two");
}

// The next server of the cell finds the owner that the root keeps.
TEST_F(ArchivePartsTest, AnotherServerGoesOnWithThePart) {
  ASSERT_TRUE(PutText(*Serve("cells/lab", &kept_["lab"]), "files/a", "text").ok());
  const auto other_server = OpenAll();
  const auto part = OpenPart(*other_server, "cells/lab", &kept_["lab"]);
  EXPECT_EQ(GetText(*part, "files/a").value_or(""), "text");
}

TEST_F(ArchivePartsTest, NothingChangesWithoutTheGuard) {
  const auto part = OpenPart(*all_, "cells/lab", &kept_["lab"]);
  const RootArchive::BackgroundWork claims;
  EXPECT_TRUE(absl::IsUnavailable(PutText(*part, "files/a", "text"))) << "it is not served yet";
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/arc/cells"));
  part->SetGuard([this] { return guard_; });
  ASSERT_TRUE(PutText(*part, "files/a", "text").ok());
  guard_ = absl::UnavailableError("another server has the cell");
  EXPECT_EQ(PutText(*part, "files/b", "text"), guard_);
  EXPECT_EQ(part->Delete("files/a", kTestTimeout), guard_);
  EXPECT_EQ(GetText(*part, "files/a").value_or(""), "text") << "reads change nothing";
  EXPECT_THAT(all_->Standing().error, IsEmpty()) << "it is not the archive that fails";
}

TEST_F(ArchivePartsTest, OnePartThatIsAnothersLeavesTheOthersWell) {
  const auto one = Serve("cells/one", &kept_["one"]);
  ASSERT_TRUE(PutText(*one, "files/a", "text").ok());
  std::string other;
  const auto fault = Serve("cells/one", &other);
  const RootArchive::BackgroundWork claims;
  EXPECT_TRUE(absl::IsFailedPrecondition(PutText(*fault, "files/b", "text")));
  EXPECT_THAT(all_->Standing().error, HasSubstr("another root"));
  const absl::Time since = all_->Standing().failing_since;
  ASSERT_TRUE(PutText(*one, "files/c", "text").ok());
  EXPECT_THAT(all_->Standing().error, HasSubstr("another root")) << "one call does not clear it";
  EXPECT_TRUE(absl::IsFailedPrecondition(PutText(*fault, "files/b", "text")));
  EXPECT_EQ(all_->Standing().failing_since, since);
  EXPECT_FALSE(all_->IsAway());
  std::filesystem::remove(directory_ + "/arc/cells/one/root");
  EXPECT_TRUE(PutText(*fault, "files/b", "text").ok());
  EXPECT_THAT(all_->Standing().error, IsEmpty());
}

TEST_F(ArchivePartsTest, APartThatFailsLeavesTheOthersWell) {
  const auto one = Serve("cells/one", &kept_["one"]);
  auto failing = all_->OpenFailingPart({.url = "", .part = "cells/two"},
                                       absl::FailedPreconditionError("no id"));
  ASSERT_TRUE(failing.ok()) << failing.status();
  (*failing)->SetGuard([this] { return guard_; });
  for (const absl::Status& failed :
       {PutText(**failing, "files/a", "text"), GetText(**failing, "files/a").status(),
        (*failing)->Delete("files/a", kTestTimeout)}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(failed)) << failed;
    EXPECT_THAT(std::string(failed.message()), HasSubstr("/arc/cells/two: no id"));
  }
  EXPECT_THAT(all_->Standing().error, HasSubstr("no id"));
  EXPECT_FALSE(all_->IsAway());
  EXPECT_TRUE(PutText(*one, "files/a", "text").ok());
  failing->reset();
  EXPECT_THAT(all_->Standing().error, IsEmpty());
}

// Else a takeover would depend on a file outside the root.
TEST_F(ArchivePartsTest, APartIsOpenedWithoutTheFileOfCredentials) {
  const std::string keys = directory_ + "/keys";
  std::ofstream(keys) << "[default]\naws_access_key_id = A\naws_secret_access_key = S\n";
  std::filesystem::permissions(keys, std::filesystem::perms::owner_read);
  const auto opened = RootArchive::Open(
      Env::Posix(), {.url = "s3://bucket/p?endpoint=http://127.0.0.1:1&credentials=" + keys});
  ASSERT_TRUE(opened.ok()) << opened.status();
  std::filesystem::remove(keys);
  const auto part = OpenPart(**opened, "cells/lab", &kept_["lab"]);
  EXPECT_EQ(part->Describe(), "s3://bucket/p/cells/lab");
}

TEST_F(ArchivePartsTest, ARootDoesNotGetIntoTheArchiveOfACluster) {
  const auto part = Serve("cells/lab", &kept_["lab"]);
  std::string kept;
  const auto root = RootArchive::Open(Env::Posix(), {.url = "dir:" + directory_ + "/arc",
                                                     .keep_owner =
                                                         [&kept](const std::string& owner) {
                                                           kept = owner;
                                                           return absl::OkStatus();
                                                         },
                                                     .owner_place = "archive"});
  ASSERT_TRUE(root.ok()) << root.status();
  const RootArchive::BackgroundWork claims;
  const absl::Status refused = PutText(**root, "files/a", "text");
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("archive of a cluster"));
  EXPECT_THAT(kept, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/arc/root"));
}

TEST_F(ArchivePartsTest, ARootBesideTheCellsIsAFaultUntilItIsGone) {
  const auto part = Serve("cells/lab", &kept_["lab"]);
  all_->NoteTopOwner(true);
  EXPECT_THAT(all_->Standing().error, HasSubstr("a root that is no cell"));
  EXPECT_TRUE(PutText(*part, "files/a", "text").ok());
  part->NoteTopOwner(false);
  EXPECT_THAT(all_->Standing().error, HasSubstr("a root that is no cell"));
  all_->NoteTopOwner(false);
  EXPECT_THAT(all_->Standing().error, IsEmpty());
}

void SetCluster(RootArchive& all, const char* name, absl::StatusOr<ClusterMemory>* memory) {
  all.SetCluster({.cluster = name,
                  .memory_place = "p/archive",
                  .remembered = [memory] { return *memory; },
                  .remember =
                      [memory](const ClusterMemory&, const ClusterMemory& after) {
                        *memory = after;
                        return absl::OkStatus();
                      }});
}

// `restore-root --take-over` has removed the object, and the existing parts have nothing to put.
TEST_F(ArchivePartsTest, APassBringsBackTheObjectOfTheCluster) {
  absl::StatusOr<ClusterMemory> memory = ClusterMemory();
  SetCluster(*all_, "the lab's", &memory);
  {
    ASSERT_TRUE(PutText(*Serve("cells/one", &kept_["one"]), "files/a", "text").ok());
    const std::string mark = directory_ + "/arc/cluster";
    ASSERT_TRUE(std::filesystem::remove(mark));
    all_->NoteCluster(kTestTimeout);
    EXPECT_FALSE(std::filesystem::exists(mark)) << "none of its parts is here";
    const auto idle = OpenPart(*all_, "cells/one", &kept_["one"]);
    all_->NoteCluster(kTestTimeout);
    EXPECT_TRUE(std::filesystem::exists(mark));
    std::filesystem::remove(mark);
    EXPECT_TRUE(PutText(*Serve("cells/two", &kept_["two"]), "files/a", "text").ok());
    EXPECT_TRUE(std::filesystem::exists(mark));
  }
}

// Else reads of old versions would fail whenever the registry fails.
TEST_F(ArchivePartsTest, ARegistryThatFailsIsNoArchiveThatFails) {
  absl::StatusOr<ClusterMemory> memory = ClusterMemory();
  SetCluster(*all_, "the lab's", &memory);
  const auto part = Serve("cells/one", &kept_["one"]);
  ASSERT_TRUE(PutText(*part, "files/a", "text").ok());
  memory = absl::UnavailableError("no registry");
  EXPECT_EQ(PutText(*part, "files/b", "text"), memory.status());
  EXPECT_THAT(all_->Standing().error, IsEmpty());
  EXPECT_FALSE(all_->IsAway());
}

// The cells of the two clusters have different names, so no part shows the conflict.
TEST_F(ArchivePartsTest, AnotherClusterGetsNoPart) {
  absl::StatusOr<ClusterMemory> mine = ClusterMemory(), others = ClusterMemory();
  SetCluster(*all_, "the lab's", &mine);
  const auto one = Serve("cells/one", &kept_["one"]);
  ASSERT_TRUE(PutText(*one, "files/a", "text").ok());
  EXPECT_TRUE(mine->is_claimed);
  // The other cluster has a part here already, made by a release without that object.
  std::string kept;
  ASSERT_TRUE(PutText(*Serve("cells/two", &kept), "files/a", "text").ok());

  const auto all_others = OpenAll();
  SetCluster(*all_others, "somebody's", &others);
  const RootArchive::BackgroundWork claims;
  std::string fresh;
  for (const auto& [part, part_kept] :
       {std::pair("cells/two", &kept), std::pair("cells/three", &fresh)}) {
    const auto opened = OpenPart(*all_others, part, part_kept);
    opened->SetGuard([] { return absl::OkStatus(); });
    const absl::Status refused = PutText(*opened, "files/b", "text");
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("the lab's"));
    EXPECT_THAT(std::string(refused.message()), HasSubstr("somebody's"));
    EXPECT_EQ(GetText(*opened, "files/a").ok(), part_kept == &kept) << "its versions read";
  }
  EXPECT_THAT(fresh, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/arc/cells/three"));
  EXPECT_THAT(all_others->Standing().error, HasSubstr("another cluster"));
  EXPECT_FALSE(all_others->IsAway());
  EXPECT_TRUE(all_others->IsRefused());
  EXPECT_TRUE(PutText(*one, "files/c", "text").ok());
  std::filesystem::remove(directory_ + "/arc/cluster");
  others = ClusterMemory();
  all_others->NoteCluster(kTestTimeout);
  EXPECT_THAT(all_others->Standing().error, IsEmpty());
}

TEST_F(ArchivePartsTest, AllPartsAreAwayTogether) {
  const auto one = Serve("cells/one", &kept_["one"]);
  const auto two = Serve("cells/two", &kept_["two"]);
  std::filesystem::rename(directory_ + "/arc", directory_ + "/away");
  EXPECT_TRUE(absl::IsUnavailable(GetText(*one, "files/a").status()));
  EXPECT_TRUE(all_->IsAway());
  std::filesystem::rename(directory_ + "/away", directory_ + "/arc");
  EXPECT_TRUE(absl::IsNotFound(GetText(*two, "files/a").status()));
  EXPECT_FALSE(all_->IsAway());
}

TEST_F(ArchivePartsTest, OnePartIsBrokenOffAloneAndGoesOn) {
  all_ = OpenAll(1);  // a byte a second
  const auto one = Serve("cells/one", &kept_["one"]);
  const auto two = Serve("cells/two", &kept_["two"]);
  std::thread mover([&] {
    absl::SleepFor(absl::Milliseconds(200));
    one->SetBrokenOff(true);
  });
  {
    const RootArchive::BackgroundWork paced;
    EXPECT_TRUE(absl::IsUnavailable(PutText(*one, "files/a", std::string(3 << 20, 'x'))));
  }
  mover.join();
  const absl::Status gone = GetText(*one, "files/b").status();
  EXPECT_THAT(std::string(gone.message()), HasSubstr("handed over"));
  EXPECT_THAT(all_->Standing().error, IsEmpty()) << "it is not the archive that fails";
  EXPECT_TRUE(PutText(*two, "files/a", "text").ok());
  one->SetBrokenOff(false);
  EXPECT_TRUE(PutText(*one, "files/b", "text").ok());
  all_->Stop();
  one->SetBrokenOff(false);
  EXPECT_TRUE(absl::IsUnavailable(GetText(*one, "files/b").status())) << "the server stops";
}

}  // namespace
}  // namespace h5mirror::archive
