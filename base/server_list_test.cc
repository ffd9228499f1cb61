#include "base/server_list.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string ProblemOf(std::string_view text) {
  const ServerList list = ParseServerList(text);
  EXPECT_EQ(list.problem.empty(), !list.servers.empty()) << text;
  return list.problem;
}

TEST(ServerListTest, OneAddressIsAListOfOne) {
  EXPECT_THAT(ParseServerList("node7").servers, ElementsAre("node7"));
  EXPECT_THAT(ParseServerList("").servers, ElementsAre(""));
  EXPECT_THAT(ParseServerList("embedded").servers, ElementsAre("embedded"));
}

TEST(ServerListTest, AddressesAreTrimmedAndKeepTheirOrder) {
  EXPECT_THAT(ParseServerList(" b:1 ,a:2,\tunix:/run/x.sock").servers,
              ElementsAre("b:1", "a:2", "unix:/run/x.sock"));
}

TEST(ServerListTest, AnEmptyElementIsRefused) {
  for (const char* text : {"a,", ",a", "a,,b", "a, ,b", ","}) {
    EXPECT_THAT(ProblemOf(text), HasSubstr("missing")) << text;
  }
}

TEST(ServerListTest, OneServerWrittenInTwoWaysIsRefused) {
  EXPECT_THAT(ProblemOf("a:1,b,a:1"), HasSubstr("a:1 is there twice"));
  EXPECT_THAT(ProblemOf("Node7,node7:7447"), HasSubstr("twice"));
  EXPECT_THAT(ProblemOf("[::1],[::1]:7447"), HasSubstr("twice"));
  EXPECT_THAT(ProblemOf("a:1,a:2"), IsEmpty());
  EXPECT_THAT(ProblemOf("unix:/A,unix:/a"), IsEmpty());
}

TEST(ServerListTest, EmbeddedIsNotOneOfSeveral) {
  EXPECT_THAT(ProblemOf("a,embedded"), HasSubstr("embedded"));
}

TEST(ServerListTest, AClusterIsOneMirror) {
  EXPECT_THAT(ParseServerList("a:1|b:2").servers, ElementsAre("a:1|b:2"));
  EXPECT_THAT(ParseServerList("a:1 | b:2 , c").servers, ElementsAre("a:1 | b:2", "c"));
  EXPECT_THAT(ClusterServers("a:1 | b:2"), ElementsAre("a:1", "b:2"));
  EXPECT_THAT(ClusterServers("node7"), ElementsAre("node7"));
  EXPECT_THAT(ProblemOf("a|"), HasSubstr("missing beside a '|'"));
  EXPECT_THAT(ProblemOf("a|b|A:7447"), HasSubstr("A:7447 is there twice"));
  EXPECT_THAT(ProblemOf("a|embedded"), HasSubstr("embedded is no server of a cluster"));
  EXPECT_THAT(ProblemOf("a|b,b|c"), HasSubstr("b|c is there twice"));
}

TEST(ServerListTest, AClusterStaysTheSameAsItGrows) {
  EXPECT_TRUE(IsSameServer("a|b", "B:7447|c"));
  EXPECT_TRUE(IsSameServer("a", "c|a"));
  EXPECT_FALSE(IsSameServer("a|b", "c|d"));
  EXPECT_EQ(ServerTag("node7|node8"), ServerTag("node7"));
}

TEST(ServerListTest, ThereIsAMostOfThem) {
  EXPECT_THAT(ProblemOf("a,b,c,d,e,f,g,h"), IsEmpty());
  EXPECT_THAT(ProblemOf("a,b,c,d,e,f,g,h,i"), HasSubstr("at most 8"));
}

TEST(ServerListTest, TheTagIsOfTheAddressHoweverItIsWritten) {
  EXPECT_EQ(ServerTag("node7"), ServerTag("NODE7:7447"));
  EXPECT_NE(ServerTag("node7"), ServerTag("node8"));
  EXPECT_NE(ServerTag("node7:1"), ServerTag("node7:2"));
  // The tag is in names of files on users' disks: with another tag the client would upload these
  // files again.
  EXPECT_EQ(ServerTag("node7"), "75a40db2");
}

}  // namespace
}  // namespace h5mirror
