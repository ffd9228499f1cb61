// Followers over restarts and crashes of the server: they go on from a cut that is still there, and
// begin anew where theirs was lost.
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/fault_env.h"
#include "server/testing/follow_file_fixture.h"

namespace h5mirror::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class FollowRestartTest : public FollowFileTest {
 protected:
  FollowRestartTest() { disks_.push_back(std::make_unique<FaultEnv>()); }

  void SetUp() override {
    FollowFileTest::SetUp();
    OpenStore();
  }
  Env& env() override { return disk(); }
  FaultEnv& disk() { return *disks_.back(); }

  // Of what is no commit nothing becomes durable by itself.
  void OpenStore() {
    store_.reset();
    store::StoreOptions options;
    options.root = root();
    options.durable_every = absl::Hours(1);
    auto store = store::Store::Open(env(), options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  void Restart() {
    client_.reset();
    server_.reset();
    OpenStore();
    Start();
  }
  // The next server finds what `disk` holds, whatever the last one did before it ended.
  void RestartOn(std::unique_ptr<FaultEnv> disk) {
    client_.reset();
    server_.reset();
    store_.reset();
    disks_.push_back(std::move(disk));
    OpenStore();
    Start();
  }
  std::unique_ptr<FaultEnv> AfterKill() { return disk().CopyNow(); }
  std::unique_ptr<FaultEnv> AfterPowerLoss(uint64_t seed) {
    return disk().Crash(disk().change_count(), seed);
  }

  // A writer that knows that the file is at `cut`.
  std::unique_ptr<rpc::MirrorStream> GoOn(int64_t cut) {
    auto stream = client_->OpenMirrorStream();
    EXPECT_TRUE(stream.ok()) << stream.status();
    v1::MirrorFileRequest request = OpenRequest("a.h5", v1::INTENT_RESYNC);
    request.mutable_open()->set_base_cut(cut);
    EXPECT_TRUE((*stream)->Send(request).ok());
    const auto answer = (*stream)->Receive();
    EXPECT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer.ok() ? answer->opened().relation() : v1::RELATION_UNSPECIFIED,
              v1::RELATION_MATCH);
    return *std::move(stream);
  }
  // A file of `kPages` pages of 'a', durable; returns the cut.
  static constexpr uint64_t kPages = 10;
  static constexpr uint64_t kSize = kPages * kPage;
  int64_t MakeFile() {
    auto writer = Open("a.h5", v1::INTENT_CREATE);
    Write(*writer, 0, std::string(kSize, 'a'));
    const int64_t cut = Commit(*writer, 1, kSize);
    EXPECT_TRUE(writer->Finish().ok());
    return cut;
  }
  // Asked of the store: nobody follows the file for it.
  int64_t NewestCut() {
    const auto file = store_->OpenFile("a.h5");
    EXPECT_TRUE(file.ok()) << file.status();
    return static_cast<int64_t>((*file)->NewestCut());
  }
  Received First(const v1::FollowFileRequest& request) {
    Received received;
    EXPECT_TRUE(Next(*client_->FollowFile(request), received));
    return received;
  }
  // All of the file came, and it is `bytes`.
  void ExpectWhole(const Received& received, const std::string& bytes) {
    EXPECT_TRUE(received.first.whole()) << "cut " << received.first.snapshot().cut();
    std::string taken;
    TakeInto(received, &taken);
    EXPECT_TRUE(taken == bytes);
  }

 private:
  std::vector<std::unique_ptr<FaultEnv>> disks_;  // the last one is the server's
};

TEST_F(FollowRestartTest, FromACutThatIsThereItGoesOn) {
  Start();
  const int64_t cut = MakeFile();
  const Received held = First(Request("a.h5", kAllMetadata));
  EXPECT_EQ(held.first.snapshot().cut(), cut);
  for (const bool is_clean : {true, false}) {
    is_clean ? Restart() : RestartOn(AfterKill());
    auto stream = client_->FollowFile(After(held, kAllMetadata));
    Received received;
    ASSERT_TRUE(Next(*stream, received));
    EXPECT_EQ(received.first.snapshot().cut(), cut);
    EXPECT_FALSE(received.first.whole());
    EXPECT_THAT(received.changed(), IsEmpty());
    auto writer = GoOn(cut);
    Write(*writer, 5 * kPage + 1, "metadata");
    Write(*writer, 8 * kPage, "raw");
    const int64_t next = Tick(*writer, 1, kSize, {5});
    std::string page(kPage, 'a');
    page.replace(1, 8, "metadata");
    auto late = client_->FollowFile(After(held, kAllMetadata));
    for (rpc::FollowStream* each : {stream.get(), late.get()}) {
      received = Until(*each, next);
      EXPECT_FALSE(received.first.whole());
      EXPECT_THAT(received.changed(), ElementsAre(Extent{5 * kPage + 1, 8}, Extent{8 * kPage, 3}));
      EXPECT_THAT(received.data, ElementsAre(std::pair(5 * kPage, page)));
    }
    // The next round begins at `cut`, without what was not durable.
    if (is_clean) RestartOn(AfterKill());
  }
}

TEST_F(FollowRestartTest, AWriterWhoIsBackFirstIsFollowedFromTheCutBefore) {
  Start();
  int64_t cut = MakeFile();
  Received held = First(Request("a.h5", kAllMetadata));
  for (const bool is_clean : {true, false}) {
    is_clean ? Restart() : RestartOn(AfterKill());
    auto writer = GoOn(cut);
    Write(*writer, 5 * kPage + 1, "metadata");
    Tick(*writer, 1, kSize, {5});
    Write(*writer, 8 * kPage, "raw");
    cut = Commit(*writer, 2, kSize);
    held = First(After(held, kAllMetadata));
    EXPECT_EQ(held.first.snapshot().cut(), cut);
    EXPECT_FALSE(held.first.whole());
    EXPECT_THAT(held.changed(), ElementsAre(Extent{5 * kPage + 1, 8}, Extent{8 * kPage, 3}));
  }
}

TEST_F(FollowRestartTest, FollowersAreExpectedForAMinute) {
  const absl::Time start = absl::FromUnixSeconds(2'000'000'000);
  disk().SetTime([=] { return start; });
  Start();
  int64_t cut = MakeFile();
  Received held = First(Request("a.h5"));
  for (const bool is_late : {false, true}) {
    disk().SetTime([=] { return start; });
    Restart();
    auto writer = GoOn(cut);
    disk().SetTime([=] { return start + absl::Seconds(is_late ? 61 : 59); });
    Write(*writer, 0, "new");
    cut = Commit(*writer, 1, kSize);
    held = First(After(held));
    EXPECT_EQ(held.first.snapshot().cut(), cut);
    EXPECT_EQ(held.first.whole(), is_late);
  }
}

TEST_F(FollowRestartTest, ACutThatACrashDiscardedIsFollowedByAllOfTheFile) {
  Start();
  const int64_t cut = MakeFile();
  std::string bytes(kSize, 'a');
  for (const bool is_power_loss : {false, true}) {
    auto writer = GoOn(cut);
    Write(*writer, 0, "lost");
    const int64_t discarded = Tick(*writer, 1, kSize, {0});
    const Received held = First(Request("a.h5"));
    EXPECT_EQ(held.first.snapshot().cut(), discarded);
    RestartOn(is_power_loss ? AfterPowerLoss(7) : AfterKill());
    auto stream = client_->FollowFile(After(held, kAllMetadata));
    Received received;
    ASSERT_TRUE(Next(*stream, received));
    EXPECT_EQ(received.first.snapshot().cut(), cut);
    ExpectWhole(received, bytes);
    writer = GoOn(cut);
    Write(*writer, kPage, "new");
    const int64_t next = Tick(*writer, 1, kSize, {1});
    EXPECT_GT(next, discarded) << "its number was given again";
    received = Until(*stream, next);
    EXPECT_FALSE(received.first.whole());
    EXPECT_THAT(received.changed(), ElementsAre(Extent{kPage, 3}));
    std::string changed = bytes;
    changed.replace(kPage, 3, "new");
    ExpectWhole(First(After(held, kAllMetadata)), changed);
    RestartOn(AfterKill());
  }
}

// What a server gave between two crashes, of which nothing became durable, was seen nevertheless.
TEST_F(FollowRestartTest, CrashAfterCrashGivesNoNumberAgain) {
  Start();
  const int64_t cut = MakeFile();
  std::vector<Received> discarded;
  for (int crash = 0; crash < 4; ++crash) {
    auto writer = GoOn(cut);
    auto stream = client_->FollowFile(Request("a.h5"));
    std::vector<Received> seen;
    std::string bytes(kSize, 'a');
    for (uint64_t seq = 1; seq <= 3; ++seq) {
      const std::string data(100, static_cast<char>('A' + 3 * crash + seq));
      Write(*writer, seq * kPage, data);
      bytes.replace(seq * kPage, data.size(), data);
      const int64_t number = Tick(*writer, seq, kSize);
      seen.push_back(Until(*stream, number));
      for (const Received& held : discarded) {
        EXPECT_NE(held.first.snapshot().cut(), number) << "after crash " << crash;
        ExpectWhole(First(After(held)), bytes);
      }
    }
    discarded.insert(discarded.end(), seen.begin(), seen.end());
    RestartOn(crash % 2 == 0 ? AfterKill() : AfterPowerLoss(crash));
  }
}

// Its server knows nothing of the numbers that were given since.
TEST_F(FollowRestartTest, ABackupThatIsPutBackGivesOtherNumbers) {
  Start();
  const int64_t cut = MakeFile();
  auto backup = disk().CopyNow();
  RestartOn(AfterKill());
  std::vector<Received> lost;
  for (const bool is_restored : {false, true}) {
    if (is_restored) RestartOn(std::move(backup));
    auto stream = client_->FollowFile(Request("a.h5"));
    auto writer = GoOn(cut);
    std::string bytes(kSize, 'a');
    for (uint64_t seq = 1; seq <= 5; ++seq) {
      const uint64_t offset = is_restored ? kPage * seq : 0;
      Write(*writer, offset, StrCat(is_restored, seq));
      bytes.replace(offset, 2, StrCat(is_restored, seq));
      const int64_t cut = Tick(*writer, seq, kSize);
      if (is_restored) {
        EXPECT_GT(cut, lost.back().first.snapshot().cut()) << "the follower waits for newer cuts";
      }
      const Received received = Until(*stream, cut);
      if (!is_restored) lost.push_back(received);
      if (!is_restored) continue;
      for (const Received& held : lost) ExpectWhole(First(After(held)), bytes);
    }
  }
}

// A follower comes back after each crash, before the writer or some cuts later. The bytes that it
// puts together equal the server's.
TEST_F(FollowRestartTest, RandomCrashesLeaveAFollowerWithTheRightBytes) {
  const char* given = std::getenv("H5M_SEED");
  const unsigned seed = given != nullptr ? std::stoul(given) : std::random_device{}();
  SCOPED_TRACE(StrCat("H5M_SEED=", seed));
  std::minstd_rand random(seed);
  Start();
  const int64_t first = MakeFile();
  std::map<int64_t, std::string> written = {{first, std::string(kSize, 'a')}};
  Received held;
  std::string held_bytes;
  int whole = 0, merged = 0;
  for (int life = 0; life < 12; ++life) {
    std::unique_ptr<rpc::FollowStream> stream;
    const auto follow = [&] {
      stream = client_->FollowFile(held_bytes.empty() ? Request("a.h5", kAllMetadata)
                                                      : After(held, kAllMetadata));
    };
    const auto take = [&] {
      ASSERT_TRUE(Next(*stream, held)) << stream->Finish();
      ++(held.first.whole() ? whole : merged);
      TakeInto(held, &held_bytes);
      ASSERT_TRUE(written.contains(held.first.snapshot().cut()));
      ASSERT_TRUE(held_bytes == written[held.first.snapshot().cut()])
          << "life " << life << ", cut " << held.first.snapshot().cut();
    };
    if (random() % 2 == 0) {
      follow();
      take();
      if (HasFatalFailure()) return;
    }
    const int64_t base = stream != nullptr ? held.first.snapshot().cut() : NewestCut();
    std::string bytes = written[base];
    auto writer = GoOn(base);
    const uint64_t cuts = 1 + random() % 12;
    for (uint64_t seq = 1; seq <= cuts; ++seq) {
      const uint64_t offset = random() % kSize;
      const std::string data(1 + random() % kPage, static_cast<char>('A' + random() % 26));
      bytes.resize(std::max(bytes.size(), offset + data.size()), '\0');
      bytes.replace(offset, data.size(), data);
      Write(*writer, offset, data);
      const bool is_commit = random() % 8 == 0;
      const int64_t cut = is_commit ? Commit(*writer, seq, bytes.size())
                                    : Tick(*writer, seq, bytes.size(), {random() % kPages});
      ASSERT_FALSE(written.contains(cut)) << "the number was given again";
      written[cut] = bytes;
      if (random() % 2 == 0) continue;
      if (stream == nullptr) follow();
      do {
        take();
        if (HasFatalFailure()) return;
      } while (held.first.snapshot().cut() < cut);
    }
    if (random() % 4 == 0) {
      writer.reset();
      Restart();
    } else {
      RestartOn(random() % 2 == 0 ? AfterKill() : AfterPowerLoss(random()));
    }
  }
  EXPECT_GT(whole, 1);
  EXPECT_GT(merged, 10);
}

}  // namespace
}  // namespace h5mirror::server
