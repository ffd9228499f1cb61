#include "rpc/agent_open.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "rpc/shared_blocks.h"

namespace h5mirror::rpc {
namespace {

constexpr char kOlderSharedMagic[9] = "H5MBLK01";

std::string SnapshotAnswer(int64_t cut, int64_t size_bytes) {
  v1::Snapshot snapshot;
  snapshot.set_cut(cut);
  snapshot.set_size_bytes(size_bytes);
  return EncodeOpenAnswer(&snapshot, 0);
}

template <typename Value>
std::string BytesOf(const Value& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// Memory as an agent makes it.
OwnedFd Sealed(std::string_view begin, size_t length) {
  OwnedFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(length)), 0);
  EXPECT_EQ(pwrite(fd.get(), begin.data(), begin.size(), 0), static_cast<ssize_t>(begin.size()));
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  return fd;
}

// An agent that gives one reader a made-up answer, with a descriptor or two.
class AgentOpenTest : public testing::Test {
 protected:
  void SetUp() override {
    char directory[] = "/tmp/h5m-open-XXXXXX";
    ASSERT_NE(mkdtemp(directory), nullptr);
    directory_ = directory;
    listener_ = OwnedFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::strcpy(name.sun_path, path().c_str());
    ASSERT_EQ(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
    ASSERT_EQ(listen(listener_.get(), 4), 0);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string path() const { return directory_ + "/agent.sock.maps"; }

  static CutMapQuestion Question(CutMapQuestion::Kind kind) {
    CutMapQuestion question{"s:1", "a.h5", "", 7, 0};
    question.kind = kind;
    question.reader_id = std::string(16, 'r');
    return question;
  }

  // Reads the question, sends the answer and hangs up.
  void Serve(std::string_view answer, const std::vector<int>& fds) {
    const OwnedFd reader(accept(listener_.get(), nullptr, nullptr));
    char asked[512];
    EXPECT_GT(recv(reader.get(), asked, sizeof(asked), 0), 0);
    if (answer.empty()) return;
    iovec bytes{const_cast<char*>(answer.data()), answer.size()};
    alignas(cmsghdr) char room[CMSG_SPACE(2 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
      message.msg_control = room;
      message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
      cmsghdr* const part = CMSG_FIRSTHDR(&message);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
      std::memcpy(CMSG_DATA(part), fds.data(), fds.size() * sizeof(int));
    }
    // A reader that has had enough may be gone.
    sendmsg(reader.get(), &message, MSG_NOSIGNAL);
  }

  absl::StatusCode CodeOfOpen(const std::string& answer, const std::vector<int>& fds = {}) {
    std::thread agent([&] { Serve(answer, fds); });
    const auto opened =
        OpenAtAgent(path(), Question(CutMapQuestion::Kind::kOpen), absl::Now() + absl::Seconds(30));
    agent.join();
    return opened.status().code();
  }
  absl::StatusCode CodeOfBlocks(const SharedBlocksAnswer& answer, const std::vector<int>& fds) {
    std::thread agent([&] { Serve(BytesOf(answer), fds); });
    const auto blocks = SharedBlocks::Ask(path(), Question(CutMapQuestion::Kind::kBlocks),
                                          kSharedBlockBytes, absl::Now() + absl::Seconds(30));
    agent.join();
    return blocks.status().code();
  }

  std::string directory_;
  OwnedFd listener_;
};

TEST_F(AgentOpenTest, AnOlderAgentHangsUpAndIsAsWithoutOne) {
  EXPECT_EQ(CodeOfOpen(""), absl::StatusCode::kUnavailable);
}

TEST_F(AgentOpenTest, WhatTheAgentDoesNotOpenIsNotFound) {
  EXPECT_EQ(CodeOfOpen(EncodeOpenAnswer(nullptr, 0)), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOfOpen(SnapshotAnswer(7, 100)), absl::StatusCode::kOk);
}

TEST_F(AgentOpenTest, AnAnswerThatMakesNoSenseIsRefused) {
  const std::string good = SnapshotAnswer(7, 100);
  std::string other_magic = good;
  other_magic[7] = '2';
  AgentOpenAnswer huge{};
  std::memcpy(huge.magic, kOpenAnswerMagic, sizeof(huge.magic));
  huge.snapshot_bytes = UINT32_MAX;
  AgentOpenAnswer no_snapshot = huge;
  no_snapshot.snapshot_bytes = 3;
  for (const std::string& answer :
       {good.substr(0, 15), good.substr(0, good.size() - 1), good + "x", other_magic, BytesOf(huge),
        BytesOf(no_snapshot) + "\xff\xff\xff", SnapshotAnswer(0, 100), SnapshotAnswer(7, -1),
        good + std::string(2 * kOpenAnswerBytesMax, 'x')}) {
    EXPECT_EQ(CodeOfOpen(answer), absl::StatusCode::kInvalidArgument) << answer.size();
  }
}

TEST_F(AgentOpenTest, MemoryThatIsNotAsTheAnswerSaysIsRefused) {
  const OwnedFd memory(memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(memory.get(), 4096), 0);
  EXPECT_EQ(CodeOfOpen(SnapshotAnswer(7, 100), {memory.get()}), absl::StatusCode::kInvalidArgument)
      << "it tells of none";
  v1::Snapshot snapshot;
  snapshot.set_cut(7);
  EXPECT_EQ(CodeOfOpen(EncodeOpenAnswer(&snapshot, 1)), absl::StatusCode::kInvalidArgument)
      << "it tells of one";
  EXPECT_EQ(CodeOfOpen(EncodeOpenAnswer(&snapshot, 1), {memory.get()}),
            absl::StatusCode::kInvalidArgument)
      << "it is not sealed";
}

// Its blocks lie elsewhere in the memory than these readers look for them.
TEST_F(AgentOpenTest, BlocksOfAnOlderAgentAreNotMapped) {
  for (const char* of_answer : {kSharedMagic, kOlderSharedMagic}) {
    for (const char* of_table : {kSharedMagic, kOlderSharedMagic}) {
      const OwnedFd bytes = Sealed("", kSharedWays * kSharedBlockBytes);
      SharedBlocksHeader header{};
      std::memcpy(header.magic, of_table, sizeof(header.magic));
      header.set_count = 1;
      const OwnedFd table =
          Sealed(BytesOf(header), sizeof(header) + kSharedWays * sizeof(SharedBlockEntry));
      SharedBlocksAnswer answer{};
      std::memcpy(answer.magic, of_answer, sizeof(answer.magic));
      answer.descriptor_count = 2;
      const bool is_new = of_answer == kSharedMagic && of_table == kSharedMagic;
      EXPECT_EQ(CodeOfBlocks(answer, {table.get(), bytes.get()}),
                is_new ? absl::StatusCode::kOk : absl::StatusCode::kInvalidArgument)
          << of_answer << " " << of_table;
    }
  }
}

// Readers of the release before compare with that.
TEST(AgentAnswerTest, AnOlderReaderRefusesTheBlocksOfThisAgent) {
  EXPECT_NE(std::string(kSharedMagic), kOlderSharedMagic);
  EXPECT_EQ(EncodeQuestion({"s:1", "a.h5", "", 7, 0}).substr(0, 8), "H5MASK02")
      << "an older agent answers such a question";
}

TEST(AgentAnswerTest, ASnapshotThatIsTooLongIsNotSent) {
  v1::Snapshot snapshot;
  snapshot.set_cut(7);
  snapshot.set_file_id(std::string(kOpenAnswerBytesMax, 'f'));
  EXPECT_EQ(EncodeOpenAnswer(&snapshot, 0), EncodeOpenAnswer(nullptr, 0));
}

}  // namespace
}  // namespace h5mirror::rpc
