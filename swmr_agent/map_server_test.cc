#include "swmr_agent/map_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "rpc/agent_open.h"
#include "rpc/agent_socket.h"
#include "rpc/shared_blocks.h"
#include "swmr_agent/cut_image.h"
#include "swmr_agent/testing/fake_ranges.h"

namespace h5mirror::agent {
namespace {

constexpr uint64_t kSize = 3 * kBlockBytes + 5;

class MapServerTest : public testing::Test {
 protected:
  void SetUp() override {
    char directory[] = "/tmp/h5m-maps-XXXXXX";
    ASSERT_NE(mkdtemp(directory), nullptr);
    directory_ = directory;
    image_->Learn(0, ranges_.bytes);
    auto server = MapServer::Listen(
        path(), 0600,
        {.map =
             [this](uid_t user, const rpc::CutMapQuestion& question) {
               return user == geteuid() && question.name == "a.h5" && question.cut == 7
                          ? image_->Memory()
                          : absl::StatusOr<MapServer::MemoryPtr>(
                                absl::NotFoundError("no such cut"));
             },
         .blocks = [this](uid_t user,
                          const rpc::CutMapQuestion& question) { return View(user, question); },
         .open = [this](uid_t user,
                        const rpc::CutMapQuestion& question) { return Open(user, question); }},
        // Only a lack of memory ends a window.
        absl::InfiniteDuration());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void TearDown() override {
    server_.reset();
    std::filesystem::remove_all(directory_);
  }

  absl::StatusOr<SharedView> View(uid_t user, const rpc::CutMapQuestion& question) {
    if (user != geteuid() || question.name != "a.h5") return absl::NotFoundError("no such cut");
    auto window = image_->OpenWindow(user);
    if (!window.ok()) return window.status();
    const auto check = [this] {
      absl::MutexLock lock(&mutex_);
      return may_read_;
    };
    return SharedView{image_, *std::move(window), check, question.version > 0};
  }
  // For blocks of the version 3 of a.h5, by a reader that writes its questions itself: with Want().
  OwnedFd AskForBlocksByHand() {
    OwnedFd fd(socket(AF_UNIX, SOCK_STREAM, 0));
    const sockaddr_un name = Name();
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
    rpc::CutMapQuestion question{"s:1", "a.h5", "", 7, 3};
    question.kind = rpc::CutMapQuestion::Kind::kBlocks;
    const std::string asked = rpc::EncodeQuestion(question);
    EXPECT_GT(send(fd.get(), asked.data(), asked.size(), MSG_NOSIGNAL), 0);
    rpc::SharedBlocksAnswer answer{};
    EXPECT_EQ(recv(fd.get(), &answer, sizeof(answer), MSG_WAITALL), sizeof(answer));
    return fd;
  }
  static uint32_t Want(const OwnedFd& reader, uint64_t block, rpc::SharedWant::Kind kind) {
    const rpc::SharedWant want{block, 1, kind};
    EXPECT_EQ(send(reader.get(), &want, sizeof(want), MSG_NOSIGNAL), sizeof(want));
    rpc::SharedFilled filled{};
    EXPECT_EQ(recv(reader.get(), &filled, sizeof(filled), MSG_WAITALL), sizeof(filled));
    return filled.result;
  }
  absl::StatusOr<std::unique_ptr<rpc::SharedBlocks>> AskBlocks(const std::string& name = "a.h5",
                                                               uint64_t size_bytes = kSize,
                                                               int64_t version = 0) {
    rpc::CutMapQuestion question{"s:1", name, "", 7, version};
    question.kind = rpc::CutMapQuestion::Kind::kBlocks;
    return rpc::SharedBlocks::Ask(path(), question, size_bytes, absl::Now() + absl::Seconds(30));
  }
  absl::StatusOr<OpenedCut> Open(uid_t user, const rpc::CutMapQuestion& question) {
    if (user != geteuid() || question.reader_id != std::string(16, 'r')) {
      return absl::NotFoundError("no such reader");
    }
    OpenedCut opened;
    opened.snapshot.set_cut(7);
    opened.snapshot.set_size_bytes(kSize);
    opened.snapshot.set_file_id(std::string(16, 'f'));
    if (question.name != "without a map") opened.memory = *image_->Memory();
    return opened;
  }
  absl::StatusOr<rpc::OpenedAtAgent> AskToOpen(const std::string& name,
                                               std::string reader_id = std::string(16, 'r')) {
    rpc::CutMapQuestion question{"s:1", name, ""};
    question.kind = rpc::CutMapQuestion::Kind::kOpen;
    question.reader_id = std::move(reader_id);
    return rpc::OpenAtAgent(path(), question, absl::Now() + absl::Seconds(30));
  }
  void SetMayRead(absl::Status status) {
    absl::MutexLock lock(&mutex_);
    may_read_ = std::move(status);
  }
  static std::string ReadBlocks(rpc::SharedBlocks& blocks, uint64_t offset, uint64_t length) {
    std::string out(length, '?');
    out.resize(blocks.Read(offset, absl::MakeSpan(out)));
    return out;
  }

  std::string path() const { return rpc::CutMapSocket(directory_ + "/agent.sock"); }
  absl::StatusOr<std::unique_ptr<rpc::CutMap>> Ask(
      const std::string& name = "a.h5", absl::Duration within = absl::Seconds(30)) const {
    return rpc::CutMap::Ask(path(), {"s:1", name, "", 7, 0}, kSize, absl::Now() + within);
  }
  sockaddr_un Name() const {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::strcpy(name.sun_path, path().c_str());
    return name;
  }
  static bool Reads(const rpc::CutMap& map, const std::string& bytes) {
    std::string read(kSize, '?');
    return map.Read(0, absl::MakeSpan(read)) && read == bytes;
  }
  bool BecomesFree() const {
    for (int i = 0; i < 3000 && pool_->count().reserved_bytes != 0; ++i) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    return pool_->count().reserved_bytes == 0;
  }

  std::string directory_;
  const std::shared_ptr<BlockPool> pool_ = std::make_shared<BlockPool>(16 << 20);
  FakeRanges ranges_{RandomBytes(kSize, 1)};
  std::shared_ptr<CutImage> image_ = std::make_shared<CutImage>(pool_, kSize, ranges_.Reader());
  absl::Mutex mutex_;
  absl::Status may_read_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<MapServer> server_;
};

TEST_F(MapServerTest, ReadersShareOneMemoryThatOutlivesTheAgent) {
  std::vector<std::unique_ptr<rpc::CutMap>> maps;
  for (int i = 0; i < 50; ++i) {
    auto map = Ask();
    ASSERT_TRUE(map.ok()) << map.status();
    maps.push_back(*std::move(map));
    EXPECT_LT(pool_->count().reserved_bytes, kSize + kBlockBytes) << "one for all";
  }
  server_.reset();
  image_.reset();
  EXPECT_TRUE(Reads(*maps.front(), ranges_.bytes));
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_EQ(Ask().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(MapServerTest, ItCountsAsLongAsAReaderHasIt) {
  auto map = Ask();
  ASSERT_TRUE(map.ok()) << map.status();
  image_.reset();
  EXPECT_GT(pool_->count().reserved_bytes, 0);
  EXPECT_TRUE(Reads(**map, ranges_.bytes));
  map->reset();
  EXPECT_TRUE(BecomesFree());
}

TEST_F(MapServerTest, OneQuestionOpensTheNewestCutAndMapsItsMetadata) {
  auto opened = AskToOpen("a.h5");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->snapshot.cut(), 7);
  EXPECT_EQ(opened->snapshot.file_id(), std::string(16, 'f'));
  ASSERT_NE(opened->map, nullptr);
  image_.reset();
  EXPECT_TRUE(Reads(*opened->map, ranges_.bytes));
  EXPECT_GT(pool_->count().reserved_bytes, 0) << "it counts as long as it is mapped";
  opened->map.reset();
  EXPECT_TRUE(BecomesFree());
}

TEST_F(MapServerTest, AnOpenMayMapNothingOrFail) {
  const auto opened = AskToOpen("without a map");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->snapshot.cut(), 7);
  EXPECT_EQ(opened->map, nullptr);
  EXPECT_EQ(AskToOpen("a.h5", "another one").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(AskToOpen("a.h5").ok()) << "the next one is answered";
}

TEST_F(MapServerTest, OfWhatItDoesNotHaveItSaysSo) {
  EXPECT_EQ(Ask("b.h5").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(Ask().ok());
}

TEST_F(MapServerTest, TheSocketIsForThoseItsModeSays) {
  struct stat info {};
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600);
  const auto second = MapServer::Listen(path(), 0600, {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Ask().ok()) << "the first one goes on";
}

TEST_F(MapServerTest, OneThatNeverAnswersIsNotOneThatIsNotThere) {
  server_.reset();
  EXPECT_EQ(Ask().status().code(), absl::StatusCode::kUnavailable);
  const OwnedFd mute(socket(AF_UNIX, SOCK_STREAM, 0));
  const sockaddr_un name = Name();
  ASSERT_EQ(bind(mute.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
  ASSERT_EQ(listen(mute.get(), 1), 0);
  // Whenever within a millisecond the deadline is: a wait of whole ones may end before it.
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Ask("a.h5", absl::Microseconds(900 + 10 * i)).status().code(),
              absl::StatusCode::kDeadlineExceeded);
    const OwnedFd asked(accept(mute.get(), nullptr, nullptr));
  }
}

TEST_F(MapServerTest, WhoAsksNonsenseIsHungUpOn) {
  const sockaddr_un name = Name();
  const std::string question = rpc::EncodeQuestion({"s:1", "a.h5", "", 7, 0});
  for (const std::string& bytes : {std::string(100, 'x'), question + "more"}) {
    const OwnedFd fd(socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
    ASSERT_GT(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
    char answer[64];
    EXPECT_LE(recv(fd.get(), answer, sizeof(answer), 0), 0);
  }
  // In small pieces it is one all the same.
  const OwnedFd fd(socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
  for (const char byte : question) ASSERT_EQ(send(fd.get(), &byte, 1, MSG_NOSIGNAL), 1);
  rpc::CutMapAnswer answer{};
  EXPECT_EQ(recv(fd.get(), &answer, sizeof(answer), 0), sizeof(answer));
  EXPECT_EQ(answer.descriptor_count, 2);
}

TEST_F(MapServerTest, BlocksAreFetchedOnceForAllReaders) {
  image_ = std::make_shared<CutImage>(pool_, kSize, ranges_.Reader());
  for (int i = 0; i < 3; ++i) {
    const auto blocks = AskBlocks();
    ASSERT_TRUE(blocks.ok()) << blocks.status();
    EXPECT_EQ(ReadBlocks(**blocks, 7, kSize - 7), ranges_.bytes.substr(7));
  }
  EXPECT_EQ(ranges_.asked.size(), 1);
  EXPECT_EQ(AskBlocks("b.h5").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(MapServerTest, AfterBlocksThatWereWaitedForMoreCome) {
  FakeRanges ranges(RandomBytes(200 * kBlockBytes, 9));
  const auto pool = std::make_shared<BlockPool>(64 << 20);
  image_ = std::make_shared<CutImage>(pool, ranges.bytes.size(), ranges.Reader());
  const auto blocks = AskBlocks("a.h5", ranges.bytes.size());
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  for (const uint64_t block : {0, 50, 100, 150}) {
    EXPECT_EQ(ReadBlocks(**blocks, block * kBlockBytes, 10).size(), 10);
  }
  std::string out(16 * kBlockBytes, '?');
  while ((*blocks)->Peek(151 * kBlockBytes, absl::MakeSpan(out)) < out.size()) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(out, ranges.bytes.substr(151 * kBlockBytes, out.size()));
  server_.reset();  // Before the ranges.
}

TEST_F(MapServerTest, AFileThatWasClosedLeavesItsMemoryToAnother) {
  // The first takes all that may be mapped.
  FakeRanges first(RandomBytes(127 * kBlockBytes, 3)), second(RandomBytes(10 * kBlockBytes, 4));
  for (FakeRanges* const ranges : {&first, &second}) {
    image_ = std::make_shared<CutImage>(pool_, ranges->bytes.size(), ranges->Reader());
    const auto blocks = AskBlocks("a.h5", ranges->bytes.size());
    ASSERT_TRUE(blocks.ok()) << blocks.status();
    while (ReadBlocks(**blocks, 0, ranges->bytes.size()) != ranges->bytes) {
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
  server_.reset();  // Before the ranges.
}

TEST_F(MapServerTest, AReaderOfALargeVersionIsToldThatItIsAlone) {
  FakeRanges ranges(RandomBytes(200 * kBlockBytes, 3));
  image_ = std::make_shared<CutImage>(pool_, ranges.bytes.size(), ranges.Reader());
  const auto read = [](rpc::SharedBlocks& blocks, uint64_t count) {
    for (uint64_t i = 0; i < count && !blocks.IsAlone(); ++i) {
      EXPECT_LE(ReadBlocks(blocks, i * 7 * kBlockBytes, 10).size(), 10);
    }
    return blocks.IsAlone();
  };
  {
    const auto cut = AskBlocks("a.h5", ranges.bytes.size(), 0);
    ASSERT_TRUE(cut.ok()) << cut.status();
    EXPECT_FALSE(read(**cut, 20)) << "of a file that changes the server may drop the cut";
  }
  const auto one = AskBlocks("a.h5", ranges.bytes.size(), 3);
  ASSERT_TRUE(one.ok()) << one.status();
  {
    const auto other = AskBlocks("a.h5", ranges.bytes.size(), 3);
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_FALSE(read(**one, 10));
    EXPECT_FALSE(read(**other, 25));
  }
  // The server hears of the other's end on another connection.
  for (uint64_t block = 0; !(*one)->IsAlone(); block = (block + 7) % 200) {
    ReadBlocks(**one, block * kBlockBytes, 10);
  }
  const uint64_t asked = [&] {
    absl::MutexLock lock(&ranges.mutex);
    return ranges.asked.size();
  }();
  for (uint64_t block = 0; block < 200; ++block) ReadBlocks(**one, block * kBlockBytes, 10);
  server_.reset();  // Before the ranges.
  EXPECT_EQ(ranges.asked.size(), asked) << "it goes elsewhere";
}

TEST_F(MapServerTest, AReaderThatKnowsNothingOfItIsNeverToldThatItIsAlone) {
  FakeRanges ranges(RandomBytes(200 * kBlockBytes, 3));
  image_ = std::make_shared<CutImage>(pool_, ranges.bytes.size(), ranges.Reader());
  const OwnedFd reader = AskForBlocksByHand();
  for (uint64_t block = 0; block < 30; ++block) {
    EXPECT_EQ(Want(reader, block, rpc::SharedWant::kWait), rpc::SharedFilled::kFilled);
  }
  for (uint64_t block = 30; block < 38; ++block) {
    EXPECT_EQ(Want(reader, block, rpc::SharedWant::kWaitOrAlone), rpc::SharedFilled::kFilled);
  }
  EXPECT_EQ(Want(reader, 38, rpc::SharedWant::kWaitOrAlone), rpc::SharedFilled::kAlone);
  EXPECT_EQ(Want(reader, 38, rpc::SharedWant::kWait), rpc::SharedFilled::kFilled);
  server_.reset();  // Before the ranges.
}

TEST_F(MapServerTest, AReaderIsFoundAloneAsOftenAsBeforeOnceAnotherHasComeAndGone) {
  FakeRanges ranges(RandomBytes(200 * kBlockBytes, 3));
  image_ = std::make_shared<CutImage>(pool_, ranges.bytes.size(), ranges.Reader());
  const OwnedFd reader = AskForBlocksByHand();
  const auto looks = [&] {
    uint64_t filled = 0;
    while (Want(reader, filled % 200, rpc::SharedWant::kWaitOrAlone) ==
           rpc::SharedFilled::kFilled) {
      ++filled;
    }
    return filled;
  };
  EXPECT_EQ(looks(), 8);
  EXPECT_EQ(looks(), 0);
  {
    const auto other = AskBlocks("a.h5", ranges.bytes.size(), 3);
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_EQ(Want(reader, 0, rpc::SharedWant::kWaitOrAlone), rpc::SharedFilled::kFilled);
  }
  EXPECT_GE(looks(), 8) << "the server hears of the other's end on another connection";
  server_.reset();  // Before the ranges.
}

TEST_F(MapServerTest, ALackFromBeforeDoesNotEndTheNextWindowThatIsClosed) {
  image_ = std::make_shared<CutImage>(pool_, kSize, ranges_.Reader());
  auto blocks = AskBlocks();
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  EXPECT_EQ(ReadBlocks(**blocks, 0, kSize), ranges_.bytes);
  EXPECT_FALSE(pool_->TryReserve(uint64_t{1} << 40)) << "more than there is";
  blocks->reset();
  // The server looks at what is unused after each message. It ends a window only then.
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(AskBlocks("b.h5").status().code(), absl::StatusCode::kNotFound);
  }
  EXPECT_GT(pool_->count().reserved_bytes, 0u);
}

TEST_F(MapServerTest, BlocksDoNotPushOutEachOtherBesideTheMemoryOfAClosedFile) {
  // The first leaves some slots for each set of the second, and fewer than it has blocks.
  FakeRanges first(RandomBytes(90 * kBlockBytes, 3)), second(RandomBytes(60 * kBlockBytes, 4));
  const auto open = [&](FakeRanges& ranges) {
    image_ = std::make_shared<CutImage>(pool_, ranges.bytes.size(), ranges.Reader());
    auto blocks = AskBlocks("a.h5", ranges.bytes.size());
    EXPECT_TRUE(blocks.ok()) << blocks.status();
    return *std::move(blocks);
  };
  auto closed = open(first);
  EXPECT_EQ(ReadBlocks(*closed, 0, first.bytes.size()), first.bytes);
  closed.reset();
  const auto blocks = open(second);
  const auto has_all = [&] {
    std::string out(second.bytes.size(), '?');
    return blocks->Peek(0, absl::MakeSpan(out)) == out.size() && out == second.bytes;
  };
  while (!has_all()) {
    static_cast<void>(ReadBlocks(*blocks, 0, second.bytes.size()));
  }
  server_.reset();  // Before the ranges.
}

TEST_F(MapServerTest, WithoutTheRightNoOtherBlockComes) {
  image_ = std::make_shared<CutImage>(pool_, kSize, ranges_.Reader());
  const auto blocks = AskBlocks();
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  EXPECT_EQ(ReadBlocks(**blocks, 0, 10).size(), 10);
  SetMayRead(absl::PermissionDeniedError("not any more"));
  EXPECT_EQ(ReadBlocks(**blocks, kBlockBytes, 10), "");
  EXPECT_EQ(ReadBlocks(**blocks, 0, 10).size(), 10) << "what it has mapped it has";
  SetMayRead(absl::OkStatus());
  EXPECT_EQ(ReadBlocks(**blocks, kBlockBytes, 10), "") << "it has been told that this is for good";
}

TEST_F(MapServerTest, AServerThatIsAwayIsNoEnd) {
  image_ = std::make_shared<CutImage>(pool_, kSize, ranges_.Reader());
  const auto blocks = AskBlocks();
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  SetMayRead(absl::UnavailableError("away"));
  EXPECT_EQ(ReadBlocks(**blocks, kBlockBytes, 10), "");
  SetMayRead(absl::OkStatus());
  EXPECT_EQ(ReadBlocks(**blocks, kBlockBytes, 10), ranges_.bytes.substr(kBlockBytes, 10));
}

TEST_F(MapServerTest, AReaderThatAsksForBlocksInNonsenseIsHungUpOn) {
  rpc::CutMapQuestion question{"s:1", "a.h5", "", 7, 0};
  question.kind = rpc::CutMapQuestion::Kind::kBlocks;
  const sockaddr_un name = Name();
  for (const rpc::SharedWant want : {rpc::SharedWant{0, 1, 9}, {0, 65, rpc::SharedWant::kWait}}) {
    const OwnedFd fd(socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
    const std::string asked = rpc::EncodeQuestion(question);
    ASSERT_GT(send(fd.get(), asked.data(), asked.size(), MSG_NOSIGNAL), 0);
    rpc::SharedBlocksAnswer answer{};
    ASSERT_EQ(recv(fd.get(), &answer, sizeof(answer), MSG_WAITALL), sizeof(answer));
    EXPECT_EQ(answer.descriptor_count, 2);
    ASSERT_GT(send(fd.get(), &want, sizeof(want), MSG_NOSIGNAL), 0);
    char byte;
    EXPECT_LE(recv(fd.get(), &byte, 1, 0), 0);
  }
}

}  // namespace
}  // namespace h5mirror::agent
