// HTTP at a server of a cluster that has some of the cells.
#include "server/http/other_servers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "nlohmann/json.hpp"
#include "onion_store/testing/test_store.h"
#include "rpc/elsewhere.h"
#include "server/cluster/cluster_store.h"
#include "server/testing/fake_ownership.h"
#include "server/testing/http_fixture.h"

namespace h5mirror::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SentTest, WhatIsFormattedIsParsed) {
  const Sent sent = {"node-7", 9, "lab:2/x"};
  EXPECT_EQ(ParseSent(Format(sent)), sent);
  EXPECT_EQ(ParseSent("a:1:"), (Sent{"a", 1, ""}));
  for (const char* text : {"", "a", "a:1", "a:x:c", "a:-1:c"})
    EXPECT_FALSE(ParseSent(text)) << text;
}

TEST(ListPlaceTest, ATokenNamesAFileOrACell) {
  const std::vector<std::string> cells = {"a-b", "a", "c"};
  EXPECT_EQ(PlaceOf(cells, "").cell, 0u);
  EXPECT_EQ(PlaceOf(cells, "a-b/f.h5").after, "a-b/f.h5");
  EXPECT_EQ(PlaceOf(cells, BeginOf("a")).cell, 1u);
  EXPECT_EQ(PlaceOf(cells, BeginOf("a")).after, "");
  EXPECT_EQ(PlaceOf(cells, "b/f.h5").cell, 2u) << "a cell that is gone";
  EXPECT_EQ(PlaceOf(cells, "d/").cell, 3u);
}

class OtherServersTest : public HttpTest {
 protected:
  void SetUp() override {
    HttpTest::SetUp();
    auto cells = std::make_unique<ClusterStore>(ownership_);
    for (const char* name : {"x", "y"}) {
      std::filesystem::create_directory(root() / name);
      cells->Add(name, 3, {nullptr, store::OpenStore(env(), root() / name)});
      ownership_.Serve(name, 3);
    }
    store_ = std::move(cells);
    SendTo("z", 9, "http://node-b:7448");
    ownership_.SetRoute("w", {cluster::RouteKind::kWait, 2, "", ""});
  }
  void SendTo(const std::string& cell, uint64_t epoch, const std::string& http) {
    ownership_.SetRoute(cell, {cluster::RouteKind::kRedirect, epoch, "b", "node-b:7447", http});
  }
  std::string LocationOf(const std::string& path, const std::string& headers = "") {
    const HttpReply reply = Get(path, headers);
    EXPECT_EQ(reply.status, 307) << path << ": " << reply.body;
    const auto found = reply.headers.find("location");
    return found == reply.headers.end() ? "" : found->second;
  }
  // The names of a page, and its token.
  std::pair<std::vector<std::string>, std::string> List(const std::string& query) {
    const HttpReply reply = Get("/v1/files?" + query);
    EXPECT_EQ(reply.status, 200) << reply.body;
    const auto page = nlohmann::json::parse(reply.body);
    std::vector<std::string> names;
    for (const auto& file : page.value("files", nlohmann::json::array())) {
      names.push_back(file["name"].get<std::string>());
    }
    return {names, page.value("next_page_token", "")};
  }

  FakeOwnership ownership_;  // The store ends before it: TearDown().
};

TEST_F(OtherServersTest, ARequestOfAFileIsSentToItsServer) {
  Start();
  const std::string sent = "sent=b%3A9%3Az";
  EXPECT_EQ(LocationOf("/f/z/a%20b.h5@3", "Range: bytes=0-1\r\n"),
            "http://node-b:7448/f/z/a%20b.h5@3?" + sent);
  EXPECT_EQ(LocationOf("/v1/files/z/a.h5"), "http://node-b:7448/v1/files/z/a.h5?" + sent);
  EXPECT_EQ(LocationOf("/v1/files/z/a.h5/events"),
            "http://node-b:7448/v1/files/z/a.h5/events?" + sent);
  EXPECT_EQ(LocationOf("/v1/files/z/a.h5/versions?page_size=7&page_token=9"),
            "http://node-b:7448/v1/files/z/a.h5/versions?page_size=7&page_token=9&" + sent);
  EXPECT_EQ(LocationOf("/v1/files?directory=z&match=a%26b*"),
            "http://node-b:7448/v1/files?directory=z&match=a%26b%2A&" + sent);
  EXPECT_EQ(Ask("HEAD", "/f/z/a.h5").status, 307);
  EXPECT_EQ(Get("/f/z/a.h5").headers.at("cache-control"), "no-store");
  EXPECT_THAT(Get("/f/z/a.h5").body, HasSubstr("node-b:7447"));
}

TEST_F(OtherServersTest, RedirectsEnd) {
  Start();
  // Sent here as to the owner at an epoch that this server does not know to be over.
  EXPECT_EQ(Get("/f/z/a.h5?sent=a:9:z").status, 503);
  EXPECT_EQ(Get("/f/z/a.h5?sent=a:9:z").headers.count("retry-after"), 1u);
  // An older one, another server's, another cell's, and none say nothing.
  for (const char* old : {"a:8:z", "b:8:z", "c:9:z", "a:9:x", "a", ""}) {
    EXPECT_EQ(LocationOf(StrCat("/f/z/a.h5?sent=", old)),
              "http://node-b:7448/f/z/a.h5?sent=b%3A9%3Az")
        << old;
  }
  EXPECT_EQ(Get("/v1/files?directory=x&sent=a:3:x").status, 200) << "a known key of lists";
  EXPECT_EQ(Get("/v1/files/x/none.h5/versions?sent=a:3:x").status, 404);
}

// As where one name stands for several servers.
TEST_F(OtherServersTest, AUrlThatLeadsBackEnds) {
  Start();
  const HttpReply reply = Get("/f/z/a.h5?sent=b:9:z");
  EXPECT_EQ(reply.status, 503);
  EXPECT_THAT(reply.body, HasSubstr("of the server b leads here"));
  EXPECT_EQ(Get("/v1/files?directory=z&sent=b%3A9%3Az").status, 503);
}

// The other server may have no certificate yet.
TEST_F(OtherServersTest, NobodyWhoCameByTlsIsSentAwayFromIt) {
  SendTo("s", 9, "https://node-b:7448");
  const OtherServers others(&ownership_);
  const auto answer = [&](const std::string& cell, bool is_tls) {
    const HttpRequest request{.path = "/f/" + cell + "/a.h5", .is_tls = is_tls};
    return others.ErrorOrRedirect(request, rpc::ElsewhereError({"node-b:7447", cell, 9}));
  };
  EXPECT_EQ(answer("z", false).status, 307);
  EXPECT_EQ(answer("s", false).status, 307);
  EXPECT_EQ(answer("s", true).status, 307);
  const HttpAnswer refused = answer("z", true);
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.text, HasSubstr("http://node-b:7448, without TLS"));
  for (const auto& [name, value] : refused.headers) EXPECT_NE(name, "Location") << value;
}

TEST_F(OtherServersTest, ACellThatNobodyServesIsAskedForAgain) {
  Start();
  for (const char* path : {"/f/w/a.h5", "/v1/files/w/a.h5", "/v1/files?directory=w"}) {
    const HttpReply reply = Get(path);
    EXPECT_EQ(reply.status, 503) << path;
    EXPECT_EQ(reply.headers.count("retry-after"), 1u) << path;
  }
}

TEST_F(OtherServersTest, AServerWithoutHttpIsNamed) {
  SendTo("z", 9, "");
  Start();
  const HttpReply reply = Get("/f/z/a.h5");
  EXPECT_EQ(reply.status, 503);
  EXPECT_THAT(reply.body, HasSubstr("node-b:7447"));
  EXPECT_THAT(reply.body, HasSubstr("http_address"));
}

TEST_F(OtherServersTest, ARequestLineLeavesNoBytesForAHeader) {
  Start();
  EXPECT_EQ(LocationOf("/f/z/a\"<\xc3\xa4>.h5"),
            "http://node-b:7448/f/z/a%22%3C%C3%A4%3E.h5?sent=b%3A9%3Az");
}

TEST_F(OtherServersTest, RightsAreCheckedBeforeARedirect) {
  AddTokens({"anna", "bob"});
  config_.access = {HttpRule("z/**", {"anna"}, "read"), HttpRule("x/**", {}, "read,write")};
  options_.token = tokens_.at("anna");
  Start();
  EXPECT_EQ(Get("/f/z/a.h5").status, 401);
  EXPECT_EQ(Get("/f/z/a.h5", As("bob")).status, 404);
  EXPECT_EQ(Get("/f/z/a.h5", As("anna")).status, 307);
  EXPECT_EQ(Get("/v1/files?page_token=z/", As("anna")).status, 307);
  const HttpReply reply = Get("/v1/files?page_token=z/", As("bob"));
  EXPECT_EQ(reply.status, 200) << "the cell is nothing to bob";
  EXPECT_EQ(reply.body.find("z/"), std::string::npos);
}

TEST_F(OtherServersTest, AListGoesFromCellToCell) {
  Start();
  for (const char* name : {"x/a.h5", "x/b.h5", "y/c.h5"}) MirrorWhole(name, "bytes");
  ownership_.SetRoute("w", {});  // Its directory would come first.
  SendTo("w", 9, "http://node-b:7448");
  // Of another server's cell in front the caller learns there.
  EXPECT_EQ(LocationOf("/v1/files?page_size=9"),
            "http://node-b:7448/v1/files?page_size=9&sent=b%3A9%3Aw");
  // Own cells are one page, up to the next server's.
  auto page = List("page_token=x/");
  EXPECT_THAT(page.first, ElementsAre("x/a.h5", "x/b.h5", "y/c.h5"));
  EXPECT_EQ(page.second, "z/");
  EXPECT_EQ(LocationOf("/v1/files?page_token=z/"),
            "http://node-b:7448/v1/files?page_token=z%2F&sent=b%3A9%3Az");
  // A full page ends with a name, or with a cell.
  page = List("page_token=x/&page_size=1");
  EXPECT_THAT(page.first, ElementsAre("x/a.h5"));
  EXPECT_EQ(page.second, "x/a.h5");
  page = List("page_size=1&page_token=" + page.second);
  EXPECT_THAT(page.first, ElementsAre("x/b.h5"));
  EXPECT_EQ(page.second, "y/");
  page = List("page_token=x/&details=true");
  EXPECT_THAT(page.first, ElementsAre("x/a.h5", "x/b.h5"));
  EXPECT_EQ(page.second, "y/");
  EXPECT_EQ(List("directory=x").second, "");
}

// Else each server would send the caller to the other one, for its own empty cell.
TEST_F(OtherServersTest, AnEmptyCellIsAPageOfItsOwn) {
  ownership_.SetRoute("w", {cluster::RouteKind::kServe, 3, "a", ""});
  Start();
  const auto page = List("page_token=x/");
  EXPECT_THAT(page.first, IsEmpty());
  EXPECT_EQ(page.second, "z/");
}

TEST_F(OtherServersTest, AStreamOfEventsWaitsForTheNextServer) {
  Start();
  MirrorWhole("x/a.h5", "bytes");
  ownership_.SetRoute("x", {cluster::RouteKind::kWait, 3, "", ""});
  const OwnedFd fd = Follow("x/a.h5");
  std::string all;
  ReadUntil(fd, ": \n\n", all);
  EXPECT_EQ(all.find("event: "), std::string::npos) << all;
  SendTo("x", 4, "http://node-b:7448");
  Receive(fd);  // It ends, and the client asks again.
  EXPECT_EQ(LocationOf("/v1/files/x/a.h5/events"),
            "http://node-b:7448/v1/files/x/a.h5/events?sent=b%3A4%3Ax");
}

}  // namespace
}  // namespace h5mirror::server
