#include "client_vfd/session/token_reader.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"

namespace h5mirror::vfd {
namespace {

class TokenReaderTest : public ::testing::Test {
 protected:
  TokenReaderTest() {
    std::string path = (std::filesystem::path(testing::TempDir()) / "h5m-token-XXXXXX").string();
    directory_ = mkdtemp(path.data());
    options_.token_source = "@" + File().native();
  }
  ~TokenReaderTest() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path File() const { return directory_ / "token"; }
  void Put(const std::string& token) {
    std::ofstream(directory_ / "new") << token << "\n";
    chmod((directory_ / "new").c_str(), 0600);
    std::filesystem::rename(directory_ / "new", File());
  }
  bool Becomes(const std::string& token) {
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (TokenReader::Get().Newest(options_) != token) {
      if (absl::Now() > deadline) return false;
      absl::SleepFor(absl::Milliseconds(10));
    }
    return true;
  }

  std::filesystem::path directory_;
  rpc::ClientOptions options_;
};

TEST_F(TokenReaderTest, WithoutAFileTheTokenStays) {
  options_.token_source = "";
  options_.token = "mine";
  TokenReader::Get().ReadSoon(options_);
  EXPECT_EQ(TokenReader::Get().Newest(options_), "mine");
}

TEST_F(TokenReaderTest, ATokenThatExpiresIsReadAgain) {
  options_.token = "eyJ.old.x";
  Put("eyJ.old.x");
  TokenReader::Get().Note(options_);
  Put("eyJ.new.x");
  EXPECT_TRUE(Becomes("eyJ.new.x"));
  std::filesystem::remove(File());
  TokenReader::Get().ReadSoon(options_);
  absl::SleepFor(2 * TokenReader::kPeriod);
  EXPECT_EQ(TokenReader::Get().Newest(options_), "eyJ.new.x");
}

TEST_F(TokenReaderTest, AnotherOneIsReadWhenItIsRefused) {
  options_.token = "h5m_old";
  TokenReader::Get().Note(options_);
  Put("h5m_new");
  TokenReader::Get().ReadSoon(options_);
  EXPECT_TRUE(Becomes("h5m_new"));
}

// A suite, and so a process, of its own: others leave a thread behind.
class TokenReaderForkTest : public TokenReaderTest {};

// This token does not expire, so no thread of the parent's runs yet: AddressSanitizer's allocator
// may be locked by one that just begins, and would stay so in the child. glibc's takes care of
// forks.
TEST_F(TokenReaderForkTest, AForkedChildReadsByAThreadOfItsOwn) {
  options_.token = "h5m_old";
  TokenReader::Get().Note(options_);
  TokenReader::PrepareFork();
  const pid_t child = fork();
  if (child == 0) {
    TokenReader::ChildAfterFork();
    Put("h5m_child");
    TokenReader::Get().ReadSoon(options_);
    _exit(Becomes("h5m_child") ? 0 : 1);
  }
  TokenReader::ParentAfterFork();
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  TokenReader::Get().ReadSoon(options_);
  EXPECT_TRUE(Becomes("h5m_child"));
}

}  // namespace
}  // namespace h5mirror::vfd
