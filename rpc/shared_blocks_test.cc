#include "rpc/shared_blocks.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace h5mirror::rpc {
namespace {

constexpr uint64_t kBlock = kSharedBlockBytes;
constexpr uint64_t kSize = 100 * kBlock + 5;
constexpr uint64_t kCut = 3;

// The agent's side, by hand.
class SharedBlocksTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    agent_ = OwnedFd(ends[0]);
    reader_ = OwnedFd(ends[1]);
    table_ =
        MakeMemory(sizeof(SharedBlocksHeader) + kSets * kSharedWays * sizeof(SharedBlockEntry));
    bytes_ = MakeMemory(kSets * kSharedWays * kBlock);
    SharedBlocksHeader header{};
    std::memcpy(header.magic, kSharedMagic, sizeof(header.magic));
    header.set_count = kSets;
    std::memcpy(Mapped(table_), &header, sizeof(header));
  }

  static OwnedFd MakeMemory(uint64_t length) {
    OwnedFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(length)), 0);
    return fd;
  }
  static char* Mapped(const OwnedFd& fd) {
    const off_t length = lseek(fd.get(), 0, SEEK_END);
    return static_cast<char*>(mmap(nullptr, static_cast<size_t>(length), PROT_READ | PROT_WRITE,
                                   MAP_SHARED, fd.get(), 0));
  }
  static void Seal(const OwnedFd& fd) {
    ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  }
  SharedBlockEntry& Entry(uint64_t slot) {
    char* const entries = Mapped(table_) + sizeof(SharedBlocksHeader);
    return reinterpret_cast<SharedBlockEntry*>(entries)[slot];
  }
  // Puts the block into a slot of its set.
  void Put(uint64_t block, uint64_t way, char byte, uint64_t first_cut = 1,
           uint64_t last_cut = kSharedCurrent) {
    const uint64_t slot = block % kSets * kSharedWays + way;
    std::memset(Mapped(bytes_) + SharedSlotOffset(slot, kSets), byte, kBlock);
    SharedBlockEntry& entry = Entry(slot);
    entry.block = block;
    entry.first_cut = first_cut;
    entry.last_cut = last_cut;
    entry.sequence += 2;
  }
  absl::StatusOr<std::unique_ptr<SharedBlocks>> Map(uint32_t flags = 0) {
    return SharedBlocks::Map(OwnedFd(dup(table_.get())), OwnedFd(dup(bytes_.get())), kCut, kSize,
                             std::move(reader_), flags);
  }
  std::unique_ptr<SharedBlocks> Open(uint32_t flags = 0) {
    Seal(table_);
    Seal(bytes_);
    auto blocks = Map(flags);
    EXPECT_TRUE(blocks.ok()) << blocks.status();
    return *std::move(blocks);
  }
  SharedWant Asked() const {
    SharedWant want{};
    EXPECT_EQ(recv(agent_.get(), &want, sizeof(want), MSG_WAITALL), sizeof(want));
    return want;
  }
  bool WasAsked() const {
    char byte;
    return recv(agent_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
  }
  void Answer(uint32_t result) const {
    const SharedFilled filled{result};
    EXPECT_EQ(send(agent_.get(), &filled, sizeof(filled), 0), sizeof(filled));
  }

  static constexpr uint64_t kSets = 2;
  OwnedFd agent_, reader_, table_, bytes_;
};

TEST_F(SharedBlocksTest, BlocksInTheMemoryAreReadWithNoQuestion) {
  Put(4, 7, 'a');
  Put(5, 0, 'b');
  const auto blocks = Open();
  std::string out(100, '?');
  EXPECT_EQ(blocks->Read(5 * kBlock - 40, absl::MakeSpan(out)), 100);
  EXPECT_EQ(out, std::string(40, 'a') + std::string(60, 'b'));
  EXPECT_FALSE(WasAsked());
}

TEST_F(SharedBlocksTest, APeekTakesWhatIsThereAndAsksNothing) {
  Put(4, 7, 'a');
  const auto blocks = Open();
  std::string out(100, '?');
  EXPECT_EQ(blocks->Peek(5 * kBlock - 40, absl::MakeSpan(out)), 40);
  EXPECT_EQ(out.substr(0, 40), std::string(40, 'a'));
  EXPECT_EQ(blocks->Peek(5 * kBlock, absl::MakeSpan(out)), 0);
  EXPECT_FALSE(WasAsked());
}

TEST_F(SharedBlocksTest, BlocksOfOtherCutsAndHalfWrittenOnesAreNotTaken) {
  Put(4, 0, 'x', 1, kCut - 1);
  Put(4, 1, 'x', kCut + 1);
  Put(4, 2, 'x');
  ++Entry(2).sequence;
  Put(6, 3, 'x');
  const auto blocks = Open();
  agent_.Reset();
  std::string out(kBlock, '?');
  EXPECT_EQ(blocks->Read(4 * kBlock, absl::MakeSpan(out)), 0);
  Put(4, 3, 'g', kCut, kCut);
  EXPECT_EQ(blocks->Read(4 * kBlock, absl::MakeSpan(out)), kBlock);
  EXPECT_EQ(out, std::string(kBlock, 'g'));
}

TEST_F(SharedBlocksTest, MissingBlocksAreAskedFor) {
  Put(4, 0, 'a');
  const auto blocks = Open();
  std::thread agent([this] {
    const SharedWant want = Asked();
    EXPECT_EQ(want.kind, SharedWant::kWait);
    EXPECT_EQ(want.first, 5);
    EXPECT_EQ(want.count, 2);
    Put(5, 0, 'b');
    Put(6, 1, 'c');
    Answer(SharedFilled::kFilled);
  });
  std::string out(2 * kBlock + 1, '?');
  EXPECT_EQ(blocks->Read(4 * kBlock, absl::MakeSpan(out)), out.size());
  EXPECT_EQ(out, std::string(kBlock, 'a') + std::string(kBlock, 'b') + "c");
  agent.join();
}

TEST_F(SharedBlocksTest, ABlockThatIsNotToBeHadEndsTheRead) {
  const auto blocks = Open();
  std::string out(kBlock, '?');
  Answer(SharedFilled::kNotNow);
  EXPECT_EQ(blocks->Read(kBlock, absl::MakeSpan(out)), 0);
  Answer(SharedFilled::kFilled);  // And gone again before it could be copied.
  EXPECT_EQ(blocks->Read(9 * kBlock, absl::MakeSpan(out)), 0);
  Answer(SharedFilled::kNever);
  EXPECT_EQ(blocks->Read(3 * kBlock, absl::MakeSpan(out)), 0);
  for (int i = 0; i < 3; ++i) Asked();
  EXPECT_EQ(blocks->Read(7 * kBlock, absl::MakeSpan(out)), 0);
  char byte;
  EXPECT_EQ(recv(agent_.get(), &byte, 1, MSG_DONTWAIT), 0) << "it has hung up";
}

TEST_F(SharedBlocksTest, AReaderThatIsAloneTakesWhatIsThereAndAsksForNothing) {
  const auto blocks = Open(kAnswersAlone);
  std::string out(kBlock, '?');
  Answer(SharedFilled::kNotNow);
  EXPECT_EQ(blocks->Read(kBlock, absl::MakeSpan(out)), 0);
  EXPECT_EQ(Asked().kind, SharedWant::kWaitOrAlone);
  EXPECT_FALSE(blocks->IsAlone());
  Answer(SharedFilled::kAlone);
  EXPECT_EQ(blocks->Read(9 * kBlock, absl::MakeSpan(out)), 0);
  EXPECT_TRUE(blocks->IsAlone());
  Asked();
  Put(4, 0, 'a');
  EXPECT_EQ(blocks->Read(4 * kBlock, absl::MakeSpan(out)), kBlock);
  EXPECT_EQ(blocks->Read(5 * kBlock, absl::MakeSpan(out)), 0);
  EXPECT_EQ(blocks->Read(6 * kBlock, absl::MakeSpan(out)), 0) << "in order";
  EXPECT_EQ(blocks->ReadBeside(7 * kBlock, absl::MakeSpan(out)), 0);
  EXPECT_FALSE(WasAsked());
  EXPECT_TRUE(blocks->IsAlone());
}

TEST_F(SharedBlocksTest, AnAgentThatDiesLeavesWhatIsThere) {
  Put(4, 0, 'a');
  const auto blocks = Open();
  agent_.Reset();
  std::string out(2 * kBlock, '?');
  EXPECT_EQ(blocks->Read(4 * kBlock, absl::MakeSpan(out)), kBlock);
  EXPECT_EQ(blocks->Read(4 * kBlock, absl::MakeSpan(out)), kBlock);
}

TEST_F(SharedBlocksTest, ReadsInOrderAskAhead) {
  for (uint64_t block = 0; block < 6; ++block) Put(block, block / kSets, 'a');
  const auto blocks = Open();
  std::string out(kBlock, '?');
  EXPECT_EQ(blocks->Read(0, absl::MakeSpan(out)), kBlock);
  EXPECT_FALSE(WasAsked());
  EXPECT_EQ(blocks->Read(kBlock, absl::MakeSpan(out)), kBlock);
  const SharedWant want = Asked();
  EXPECT_EQ(want.kind, SharedWant::kAhead);
  EXPECT_EQ(want.first, 2);
  EXPECT_EQ(blocks->Read(4 * kBlock, absl::MakeSpan(out)), kBlock);
  EXPECT_FALSE(WasAsked()) << "this is another place";
}

TEST_F(SharedBlocksTest, AReadBesideTheOthersChangesNothingOfTheirOrder) {
  for (uint64_t block = 0; block < 6; ++block) Put(block, block / kSets, 'a');
  const auto blocks = Open();
  std::string out(kBlock, '?');
  EXPECT_EQ(blocks->Read(0, absl::MakeSpan(out)), kBlock);
  EXPECT_EQ(blocks->ReadBeside(kBlock, absl::MakeSpan(out)), kBlock);
  EXPECT_EQ(blocks->ReadBeside(4 * kBlock, absl::MakeSpan(out)), kBlock);
  EXPECT_FALSE(WasAsked());
  EXPECT_EQ(blocks->Read(kBlock, absl::MakeSpan(out)), kBlock);
  EXPECT_EQ(Asked().kind, SharedWant::kAhead);
}

TEST_F(SharedBlocksTest, OfALargeReadTheNextPartComesMeanwhile) {
  const auto blocks = Open();
  Answer(SharedFilled::kNotNow);
  std::string out(90 * kBlock, '?');
  EXPECT_EQ(blocks->Read(kBlock, absl::MakeSpan(out)), 0);
  const SharedWant ahead = Asked(), want = Asked();
  EXPECT_EQ(ahead.kind, SharedWant::kAhead);
  EXPECT_EQ(ahead.first, 65);
  EXPECT_EQ(ahead.count, 26);
  EXPECT_EQ(want.kind, SharedWant::kWait);
  EXPECT_EQ(want.first, 1);
  EXPECT_EQ(want.count, kSharedWantMax);
}

TEST_F(SharedBlocksTest, AChildReadsWhatIsThereAndAsksNothing) {
  Put(4, 0, 'a');
  const auto blocks = Open();
  const pid_t child = fork();
  if (child == 0) {
    std::string out(2 * kBlock, '?');
    _exit(blocks->Read(4 * kBlock, absl::MakeSpan(out)) == kBlock ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(WasAsked());
}

TEST_F(SharedBlocksTest, MemoryThatCouldBeShortenedIsRefused) {
  Seal(table_);
  EXPECT_EQ(Map().status().code(), absl::StatusCode::kInvalidArgument);
  Seal(bytes_);
  EXPECT_TRUE(Map().ok());
}

TEST_F(SharedBlocksTest, MemoryThatIsTooShortIsRefused) {
  bytes_ = MakeMemory(kSets * kSharedWays * kBlock - 1);
  Seal(table_);
  Seal(bytes_);
  EXPECT_EQ(Map().status().code(), absl::StatusCode::kInvalidArgument);
  SharedBlocksHeader header{};
  std::memcpy(header.magic, kSharedMagic, sizeof(header.magic));
  for (const uint64_t sets : {uint64_t{0}, kSets + 1, UINT64_MAX}) {
    header.set_count = sets;
    std::memcpy(Mapped(table_), &header, sizeof(header));
    EXPECT_EQ(Map().status().code(), absl::StatusCode::kInvalidArgument) << sets;
  }
}

}  // namespace
}  // namespace h5mirror::rpc
