// Random sessions of an embedded store, and power losses during them. H5M_SEED=N replays.
#include <cstdlib>
#include <map>
#include <random>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/testing/fault_env.h"
#include "onion_store/embedded/embedded_store.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

constexpr char kHead[] = "/x.h5";

// The promises made, with the number of disk changes at that time.
struct Promises {
  absl::Mutex mutex;
  std::map<size_t, CutNumber> acked ABSL_GUARDED_BY(mutex);
  std::map<CutNumber, std::string> golden;

  CutNumber NeededAt(size_t changes) {
    absl::MutexLock lock(&mutex);
    CutNumber needed = 0;
    for (const auto& [count, cut] : acked) {
      if (count <= changes) needed = std::max(needed, cut);
    }
    return needed;
  }
};

std::unique_ptr<EmbeddedStore> OpenOn(FaultEnv& env) {
  auto lease = EmbeddedLease::Take(env, kHead, LockKind::kExclusive, "test", {});
  EXPECT_TRUE(lease.ok()) << lease.status();
  EmbeddedOptions options;
  options.page_size_bytes = 512;
  auto store = EmbeddedStore::Open(*std::move(lease), options);
  EXPECT_TRUE(store.ok()) << store.status();
  return *std::move(store);
}

std::string HeadOf(FaultEnv& env) {
  auto tree = *env.OpenTree("/");
  auto file = tree->Open("x.h5", OpenKind::kRead, 0);
  if (!file.ok()) return "";
  std::string bytes(*(*file)->Size(), '\0');
  EXPECT_TRUE((*file)->ReadAt(0, absl::MakeSpan(bytes)).ok());
  return bytes;
}

// One open of the file: some writes and cuts, and an end that is clean, mostly.
void RunSession(FaultEnv& env, std::mt19937_64& random, Promises& promises, std::string* content) {
  auto store = OpenOn(env);
  auto file = store->OpenOrCreateFile("x.h5", 0);
  ASSERT_TRUE(file.ok()) << file.status();
  const bool fresh = random() % 4 == 0 || content->empty();
  Writer writer(*file, fresh ? SessionStart::kNewGeneration : SessionStart::kContinue, *content);
  ASSERT_TRUE(writer.begun().ok()) << writer.begun();
  for (int i = 0; i < 12; ++i) {
    const std::string bytes(1 + random() % 1500, static_cast<char>('a' + random() % 26));
    ASSERT_TRUE(writer.Write(random() % 6000, bytes).ok());
    if (random() % 3 != 0 && i != 11) continue;
    const std::string now = writer.content();
    auto on_durable = [&promises, &env](absl::StatusOr<DurableCut> result) {
      if (!result.ok()) return;
      absl::MutexLock lock(&promises.mutex);
      promises.acked[env.change_count()] = result->cut;
    };
    const auto cut = writer.Cut(static_cast<BarrierKind>(1 + random() % 3), on_durable);
    ASSERT_TRUE(cut.ok()) << cut.status();
    promises.golden[*cut] = *content = now;
  }
  ASSERT_TRUE(writer.End(random() % 3 == 0 ? SessionEnd::kLost : SessionEnd::kClean).ok());
  ASSERT_TRUE(store->Close(absl::Seconds(random() % 2 * 20)).ok());
}

void Check(FaultEnv& env, Promises& promises, CutNumber needed) {
  const std::string plain = HeadOf(env);
  bool unclean = false;
  {
    auto lease = EmbeddedLease::Take(env, kHead, LockKind::kExclusive, "test", {});
    ASSERT_TRUE(lease.ok()) << lease.status();
    unclean = *(*lease)->IsUnclean();
  }
  std::string notice;
  auto file = OpenEmbeddedToRead(env, kHead, "test", absl::Seconds(20), &notice);
  if (absl::IsNotFound(file.status()) && needed == 0) return;
  ASSERT_TRUE(file.ok()) << file.status() << ", acked cut " << needed;
  EXPECT_EQ(notice, "");
  const auto info = (*file)->Info();
  ASSERT_TRUE(info.ok() && promises.golden.contains(info->durable_cut)) << info.status();
  EXPECT_GE(info->durable_cut, needed);
  const std::string& newest = promises.golden[info->durable_cut];
  EXPECT_TRUE(HeadOf(env) == newest) << "the head is not cut " << info->durable_cut;
  // Without a mark that warns its readers, the plain file must hold the newest cut. Uncut bytes may
  // follow its end.
  EXPECT_TRUE(unclean || plain.substr(0, newest.size()) == newest) << "no mark, and another head";
  const auto versions = (*file)->ListVersions({}, 1000);
  ASSERT_TRUE(versions.ok());
  for (const VersionInfo& version : *versions) {
    EXPECT_TRUE(ReadVersion(**file, version.version) == promises.golden[version.cut])
        << "version " << version.version;
  }
}

TEST(EmbeddedCrashTest, NoPowerLossLosesAnAckedCutOrHidesAHeadBetweenTwo) {
  const char* given = std::getenv("H5M_SEED");
  const uint64_t first_seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  for (uint64_t seed = first_seed; seed < first_seed + 12 && !testing::Test::HasFailure(); ++seed) {
    std::mt19937_64 random(seed);
    FaultEnv env;
    Promises promises;
    std::string content;
    for (int session = 0; session < 4; ++session) RunSession(env, random, promises, &content);
    for (int crash = 0; crash < 60 && !testing::Test::HasFailure(); ++crash) {
      const size_t changes = random() % (env.change_count() + 1);
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", crash after " << changes);
      const auto crashed = env.Crash(changes, random());
      Check(*crashed, promises, promises.NeededAt(changes));
    }
  }
}

}  // namespace
}  // namespace h5mirror::store
