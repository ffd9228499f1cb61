#include "cli/verbs/cluster_report.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::ClusterServer& AddServer(v1::GetClusterResponse& view, const std::string& id,
                             v1::ServerState state = v1::SERVER_STATE_UP) {
  v1::ClusterServer& server = *view.add_servers();
  server.set_id(id);
  server.set_address(id + ".lab:7447");
  server.set_state(state);
  return server;
}

v1::ClusterCell& AddCell(v1::GetClusterResponse& view, const std::string& directory,
                         v1::CellState state, const std::string& owner) {
  v1::ClusterCell& cell = *view.add_cells();
  cell.set_directory(directory);
  cell.set_state(state);
  cell.set_owner(owner);
  return cell;
}

TEST(ClusterReportTest, NothingIsWrongWithALostServerThatIsFenced) {
  v1::GetClusterResponse view;
  AddServer(view, "node7");
  AddServer(view, "node8", v1::SERVER_STATE_FENCED);
  AddCell(view, "bl7", v1::CELL_STATE_SERVED, "node7");
  EXPECT_THAT(ProblemsOf(view), IsEmpty());
}

TEST(ClusterReportTest, AFreeCellHasNoServer) {
  v1::GetClusterResponse view;
  AddServer(view, "node7");
  AddCell(view, "bl7", v1::CELL_STATE_FREE, "node7");
  EXPECT_THAT(ProblemsOf(view), ElementsAre(AllOf(HasSubstr("bl7 is free: no server serves it"),
                                                  HasSubstr("logs of the servers"))));
  const Json json = ToJson(view, ProblemsOf(view));
  EXPECT_TRUE(json["cells"][0]["server"].is_null()) << "its last one is none";
  EXPECT_EQ(json["servers"][0]["cells"], 0);
}

TEST(ClusterReportTest, ALostServerAndItsCellsAreTold) {
  v1::GetClusterResponse view;
  AddServer(view, "node7", v1::SERVER_STATE_DEAD);
  AddCell(view, "", v1::CELL_STATE_SERVED, "node7");
  EXPECT_THAT(ProblemsOf(view),
              ElementsAre(AllOf(HasSubstr("node7 is lost, and not fenced yet"), HasSubstr("logs")),
                          "the server of (the root), node7, is lost"));
}

TEST(ClusterReportTest, TwoServersOfOneAddressAreTold) {
  v1::GetClusterResponse view;
  AddServer(view, "node7");
  AddServer(view, "node8").set_address("node7.lab:7447");
  AddServer(view, "node9", v1::SERVER_STATE_FENCED).set_address("node7.lab:7447");
  EXPECT_THAT(ProblemsOf(view),
              ElementsAre(AllOf(HasSubstr("node7 and node8 have one address, node7.lab:7447: "),
                                HasSubstr("its own `address`"), HasSubstr("a former name"))));
}

TEST(ClusterReportTest, ACellIsNamedAsADirectoryIsTyped) {
  EXPECT_EQ(CellOfArgument("/"), "");
  EXPECT_EQ(CellOfArgument("bl7/"), "bl7");
  EXPECT_EQ(CellOfArgument("lab/bl7"), "lab/bl7");
}

TEST(ClusterReportTest, AnotherServerThatAnswersIsFound) {
  v1::GetClusterResponse view;
  AddServer(view, "node7");
  AddServer(view, "node8", v1::SERVER_STATE_GONE);
  EXPECT_EQ(AddressOfAnother(view, "node7"), "");
  AddServer(view, "node9", v1::SERVER_STATE_DRAINING);
  EXPECT_EQ(AddressOfAnother(view, "node7"), "node9.lab:7447");
}

}  // namespace
}  // namespace h5mirror::tools
