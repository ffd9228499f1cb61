// `h5mirror verify --against`: equal, different, or being written.
#include <fcntl.h>
#include <unistd.h>

#include "cli/testing/cli_test_base.h"
#include "sync/local_file.h"

namespace h5mirror::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kPage = 4096;
constexpr size_t kMib = 1 << 20;

class VerifyAgainstTest : public CliTest {
 protected:
  Result Verify() { return Run({"verify", "--against", Path("a.h5"), "--wait", "1", "--json"}); }
  // A program writes it from here on; its cuts are of what the file holds then.
  void Open() {
    server_.SetLease("a.h5", "sim.x");
    server_.SetNextCut([this] { return Read(Path("a.h5")); });
  }
};

TEST_F(VerifyAgainstTest, AClosedFileThatIsEqual) {
  Pushed(3 * kMib);
  const Result result = Verify();
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(result.json()["equal"].get<bool>());
  EXPECT_FALSE(result.json()["live"].get<bool>());
  EXPECT_EQ(server_.file("a.h5").check.version(), 1);
}

TEST_F(VerifyAgainstTest, AFlippedBitIsNamed) {
  Pushed(3 * kMib);
  Poke(2 * kMib + 5 * kPage + 100, "!");
  const Result result = Verify();
  EXPECT_EQ(result.code, 6) << result.err;
  const Json json = result.json();
  EXPECT_EQ(json["differing_bytes"], kPage);
  EXPECT_EQ(json["differing"][0]["offset"], 2 * kMib + 5 * kPage);
  EXPECT_EQ(json["differing"][0]["length"], kPage);
  EXPECT_EQ(server_.file("a.h5").check.differing_bytes(), static_cast<int64_t>(kPage));
  const Result text = Run({"verify", "--against", Path("a.h5")});
  EXPECT_THAT(text.out, HasSubstr("2117632"));
  EXPECT_THAT(text.out, HasSubstr("h5mirror resync"));
}

TEST_F(VerifyAgainstTest, ASizeThatDiffersIsADifference) {
  const std::string content = Pushed(kMib);
  Write("a.h5", content + std::string(kPage, '\0'));
  const Result result = Verify();
  EXPECT_EQ(result.code, 6);
  EXPECT_EQ(result.json()["differing"][0]["offset"], kMib);
}

TEST_F(VerifyAgainstTest, ALiveFileThatIsEqual) {
  Pushed(3 * kMib);
  Open();
  const Result result = Verify();
  EXPECT_EQ(result.code, 0) << result.err << result.out;
  EXPECT_TRUE(result.json()["live"].get<bool>());
  EXPECT_EQ(result.json()["rounds"], 1);
}

TEST_F(VerifyAgainstTest, WhatIsWrittenMeanwhileIsNoDifference) {
  Pushed(3 * kMib);
  Open();
  // Changes between the first look and the cut, and between the cut and the second look.
  int cut = 0;
  server_.SetNextCut([this, &cut] {
    Poke(kMib, "before" + std::to_string(++cut));
    const std::string content = Read(Path("a.h5"));
    if (cut < 3) Poke(kMib + 100, "after" + std::to_string(cut));
    return content;
  });
  const Result result = Verify();
  EXPECT_EQ(result.code, 0) << result.err << result.out;
  EXPECT_GT(result.json()["rounds"].get<int>(), 1);
}

TEST_F(VerifyAgainstTest, WhatIsWrittenAllTheTimeIsNeitherEqualNorNot) {
  Pushed(3 * kMib);
  Open();
  int cut = 0;
  server_.SetNextCut([this, &cut] {
    const std::string content = Read(Path("a.h5"));
    Poke(kMib, "after" + std::to_string(++cut));
    std::string torn = content;
    torn.replace(kMib, 5, "other");
    return torn;
  });
  const Result result = Verify();
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.json()["busy_bytes"], kPage);
  EXPECT_EQ(result.json()["differing_bytes"], 0);
  EXPECT_FALSE(result.json()["recorded"].get<bool>());
  EXPECT_EQ(server_.file("a.h5").check.version(), 0);
}

TEST_F(VerifyAgainstTest, ALiveFileThatDiffersIsFoundAndNamed) {
  Pushed(3 * kMib);
  Open();
  server_.SetNextCut([this] {
    std::string content = Read(Path("a.h5"));
    content[kMib + 7 * kPage] ^= 1;
    return content;
  });
  const Result result = Verify();
  EXPECT_EQ(result.code, 6) << result.err << result.out;
  EXPECT_EQ(result.json()["differing_bytes"], kPage);
  EXPECT_EQ(result.json()["differing"][0]["offset"], kMib + 7 * kPage);
}

TEST_F(VerifyAgainstTest, AWriterThatMakesNoCutIsComparedAsFarAsItGoes) {
  Pushed(3 * kMib);
  Open();
  server_.SetNextCut(nullptr);
  EXPECT_EQ(Verify().code, 0);
  Poke(kMib, "not flushed yet");
  const Result result = Verify();
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.json()["busy_bytes"], kPage);
}

TEST_F(VerifyAgainstTest, AFileThatGrowsIsComparedUpToTheCut) {
  Pushed(kMib + 100);
  Open();
  server_.SetNextCut([this] {
    const std::string content = Read(Path("a.h5"));
    Poke(content.size(), std::string(5000, 'x'));
    return content;
  });
  EXPECT_EQ(Verify().code, 0);
}

TEST_F(VerifyAgainstTest, AMirrorThatLacksTheEndOfALiveFileDiffers) {
  Pushed(3 * kMib);
  Open();
  server_.SetNextCut([this] { return Read(Path("a.h5")).substr(0, 2 * kMib + 100); });
  const Result result = Verify();
  EXPECT_EQ(result.code, 6) << result.err << result.out;
  EXPECT_EQ(result.json()["differing_bytes"], kMib - 100);
  EXPECT_EQ(result.json()["differing"][0]["offset"], 2 * kMib + 100);
  EXPECT_EQ(server_.file("a.h5").check.differing_bytes(), static_cast<int64_t>(kMib - 100));
}

TEST_F(VerifyAgainstTest, AMirrorThatGoesOnWithZerosBeyondALiveFileDiffers) {
  Pushed(3 * kMib);
  Open();
  server_.SetNextCut([this] { return Read(Path("a.h5")) + std::string(5000, '\0'); });
  const Result result = Verify();
  EXPECT_EQ(result.code, 6) << result.err << result.out;
  EXPECT_EQ(result.json()["differing_bytes"], 5000);
  EXPECT_EQ(result.json()["differing"][0]["offset"], 3 * kMib);
}

TEST_F(VerifyAgainstTest, AnEndThatIsNotFlushedYetIsNeitherEqualNorNot) {
  const std::string content = Pushed(3 * kMib);
  Open();
  server_.SetNextCut(nullptr);
  Poke(content.size(), std::string(5000, 'x'));
  const Result result = Verify();
  EXPECT_EQ(result.code, 1) << result.err << result.out;
  EXPECT_EQ(result.json()["busy_bytes"], 5000);
}

TEST_F(VerifyAgainstTest, AFileThatNeverComesToRestIsNamed) {
  const std::string content = Pushed(kMib);
  server_.On("DigestFile", [&, size = content.size()]() mutable {
    Poke(size++, "x");
    return grpc::Status::OK;
  });
  const Result result = Run({"verify", "--against", Path("a.h5")});
  EXPECT_EQ(result.code, 5);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr(Path("a.h5")), HasSubstr("4 attempts"), HasSubstr("try again")));
}

TEST_F(VerifyAgainstTest, WantsAFileOrALocalOne) {
  EXPECT_EQ(Run({"verify"}).code, 2);
  EXPECT_EQ(Run({"verify", "--every", "1h", "a.h5"}).code, 2);
  Pushed(kMib);
  EXPECT_EQ(Run({"verify", "--against", Path("a.h5"), "--every", "soon"}).code, 2);
  EXPECT_EQ(Run({"verify", "--against", Path("gone.h5")}).code, 3);
}

}  // namespace
}  // namespace h5mirror::tools
