// Lists whose rows are large: every page fits into a message, and together they are the list.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "onion_store/disk/sqlite.h"
#include "onion_store/disk/sqlite_vfs.h"
#include "server/testing/mirror_server_fixture.h"

namespace h5mirror::server {
namespace {

class ListBoundsTest : public MirrorServerTest {
 protected:
  // `count` versions of x.h5 with comments of 4 KiB.
  void MakeVersions(uint64_t count) {
    auto stream = Open("x.h5", v1::INTENT_CREATE);
    for (uint64_t seq = 1; seq <= count; ++seq) {
      Write(*stream, 0, StrCat("version ", seq));
      v1::MirrorFileRequest request = BarrierRequest(seq, v1::BARRIER_KIND_COMMIT, 20);
      request.mutable_barrier()->set_comment(std::string(4096, 'c'));
      ASSERT_TRUE(stream->Send(request).ok());
    }
    for (uint64_t seq = 0; seq < count;) {
      const auto answer = stream->Receive();
      ASSERT_TRUE(answer.ok()) << answer.status();
      if (answer->has_cut_durable()) seq = answer->cut_durable().seq();
    }
    ASSERT_TRUE(stream->Finish().ok());
    ASSERT_TRUE(Settled("x.h5").ok());
  }
  // Names of files of which only a list is asked: nothing opens them.
  std::string MakeFiles(int count) {
    std::string directory;
    for (int i = 0; i < 15; ++i) StrAppend(&directory, i > 0 ? "/" : "", std::string(240, 'd'));
    std::error_code error;
    std::filesystem::create_directories(root() / directory, error);
    EXPECT_FALSE(error) << error.message();
    for (int i = 0; i < count; ++i) {
      const std::filesystem::path head = root() / directory / StrCat(1000 + i, ".h5");
      std::filesystem::create_directory(head.string() + ".h5m");
      std::ofstream(head) << "head";
      std::ofstream(head.string() + ".h5m/index") << "index";
    }
    return directory;
  }
  // Runs SQL on the index of x.h5, as a program did that knew no limits.
  void Fill(const char* sql) {
    client_.reset();
    server_.reset();
    store_.reset();
    {
      const auto tree = *Env::Posix().OpenTree(root());
      store::SqliteVfs vfs(*tree);
      const auto database =
          *store::SqliteDatabase::Open(vfs.name(), "x.h5.h5m/index", SQLITE_OPEN_READWRITE);
      ASSERT_TRUE(database->Execute("PRAGMA locking_mode = EXCLUSIVE").ok());
      const absl::Status filled = database->Execute(sql);
      ASSERT_TRUE(filled.ok()) << filled;
    }
    store::StoreOptions options;
    options.root = root();
    store_ = *store::Store::Open(env(), options);
    Start();
  }
};

TEST_F(ListBoundsTest, ADirectoryThatIsNotThereIsNamedAsTheCallerKnowsIt) {
  Start();
  v1::ListFilesRequest request;
  request.set_directory("no/such");
  const absl::Status listed = client_->ListFiles(request).status();
  EXPECT_TRUE(absl::IsNotFound(listed)) << listed;
  EXPECT_THAT(std::string(listed.message()), testing::HasSubstr("no directory no/such"));
  EXPECT_THAT(std::string(listed.message()), testing::Not(testing::HasSubstr(root().string())));
}

TEST_F(ListBoundsTest, LongCommentsOfManyVersions) {
  constexpr int64_t kCount = 450;  // more than a message of 1.5 MiB holds
  Start();
  MakeVersions(kCount);
  v1::ListVersionsRequest request;
  request.set_name("x.h5");
  request.set_page_size(1000);
  int64_t next = kCount;
  int pages = 0;
  do {
    const auto page = client_->ListVersions(request);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const v1::Version& version : page->versions()) EXPECT_EQ(version.version(), next--);
    request.set_page_token(page->next_page_token());
    ++pages;
  } while (!request.page_token().empty() && pages < 10);
  EXPECT_EQ(next, 0);
  EXPECT_GT(pages, 1);

  v1::GetHistoryStatsRequest stats;
  stats.set_name("x.h5");
  stats.set_page_size(1000);
  next = kCount;
  do {
    const auto page = client_->GetHistoryStats(stats, absl::Seconds(60));
    ASSERT_TRUE(page.ok()) << page.status();
    for (const auto& row : page->versions()) EXPECT_EQ(row.version().version(), next--);
    stats.set_page_token(page->next_page_token());
  } while (!stats.page_token().empty() && next > 0);
  EXPECT_EQ(next, 0);

  v1::PruneVersionsRequest prune;
  prune.set_name("x.h5");
  prune.set_dry_run(true);
  prune.mutable_policy()->set_keep_last(1000);
  next = kCount;
  const absl::Status planned =
      client_->PruneVersions(prune, [&](const v1::PruneVersionsResponse& response) {
        for (const auto& row : response.plan()) EXPECT_EQ(row.version().version(), next--);
        return absl::OkStatus();
      });
  EXPECT_TRUE(planned.ok()) << planned;
  EXPECT_EQ(next, 0);
}

TEST_F(ListBoundsTest, LongNamesOfManyFiles) {
  const std::string directory = MakeFiles(600);
  Start();
  v1::ListFilesRequest request;
  request.set_page_size(10'000);
  int next = 1000;
  int pages = 0;
  do {
    const auto page = client_->ListFiles(request);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const v1::FileSummary& file : page->files()) {
      EXPECT_EQ(file.name(), StrCat(directory, "/", next++, ".h5"));
    }
    request.set_page_token(page->next_page_token());
    ++pages;
  } while (!request.page_token().empty() && pages < 10);
  EXPECT_EQ(next, 1600);
  EXPECT_GT(pages, 1);
}

TEST_F(ListBoundsTest, AVersionWithMoreTagsThanAllowedIsRead) {
  Start();
  MirrorWhole("x.h5", "hello");
  Fill(
      "WITH RECURSIVE n(i) AS (SELECT 10001 UNION ALL SELECT i + 1 FROM n WHERE i < 25000)"
      " INSERT INTO tags SELECT 't' || i || substr(hex(zeroblob(50)), 1, 94), 1 FROM n");
  EXPECT_EQ(ReadBack("x.h5", 1), "hello");
  v1::GetVersionRequest get;
  get.set_name("x.h5");
  const auto version = client_->GetVersion(get);
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_GT(version->tags_size(), 1000);
  EXPECT_LT(version->tags_size(), 15'000);
  v1::ListVersionsRequest list;
  list.set_name("x.h5");
  EXPECT_TRUE(client_->ListVersions(list).ok());
  v1::PruneVersionsRequest prune;  // Tags beyond those of an answer keep versions, too.
  prune.set_name("x.h5");
  prune.set_dry_run(true);
  prune.mutable_policy()->add_keep_tags("t25000" + std::string(94, '0'));
  std::vector<std::string> kept_by;
  ASSERT_TRUE(client_
                  ->PruneVersions(prune,
                                  [&](const v1::PruneVersionsResponse& response) {
                                    for (const auto& row : response.plan())
                                      kept_by.assign(row.kept_by().begin(), row.kept_by().end());
                                    return absl::OkStatus();
                                  })
                  .ok());
  EXPECT_THAT(kept_by, testing::Contains("tag t25000" + std::string(94, '0')));
  v1::TagVersionRequest tag;
  tag.set_name("x.h5");
  tag.set_tag("one-more");
  EXPECT_TRUE(absl::IsResourceExhausted(client_->TagVersion(tag).status()));
  v1::UntagVersionRequest untag;
  untag.set_name("x.h5");
  untag.set_tag(version->tags(0));
  EXPECT_TRUE(client_->UntagVersion(untag).ok());
}

TEST_F(ListBoundsTest, AMapOfAFileWithALongName) {
  std::string name;
  for (int i = 0; i < 12; ++i) StrAppend(&name, std::string(240, 'd'), "/");
  name += "x.h5";
  Start();
  auto stream = Open(name, v1::INTENT_CREATE);
  constexpr uint64_t kRuns = 1200;
  for (uint64_t i = 0; i < kRuns; ++i) Write(*stream, 8192 * i, "every other page");
  Cut(*stream, 1, v1::BARRIER_KIND_COMMIT, 8192 * kRuns);
  ASSERT_TRUE(stream->Finish().ok());
  ASSERT_TRUE(Settled(name).ok());
  v1::MapVersionRequest request;
  request.set_name(name);
  uint64_t in_head = 0;
  const absl::Status mapped =
      client_->MapVersion(request, [&](const v1::MapVersionResponse& response) {
        for (const v1::PageRun& run : response.runs()) in_head += run.file() == name ? 1 : 0;
        return absl::OkStatus();
      });
  EXPECT_TRUE(mapped.ok()) << mapped;
  EXPECT_EQ(in_head, kRuns);
}

}  // namespace
}  // namespace h5mirror::server
