// A server's session is ended before one of its calls, another one for each life: the successor
// finds all that was acked, verify finds nothing, and the file can be used. The calls are those of
// a store that commits, syncs, cuts, rolls back and moves, in the foreground and behind it.
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "gtest/gtest.h"
#include "onion_store/store.h"
#include "onion_store/testing/counting_env.h"
#include "onion_store/testing/test_store.h"
#include "tests/ceph/ceph_place.h"

namespace h5mirror::ceph {
namespace {

using store::BarrierKind;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPages = 64;
// Lives: so many of the calls of a whole one, spread over it.
constexpr int kLives = 24;
constexpr uint64_t kNever = UINT64_MAX;

// What a store had promised when its session ended.
struct Promises {
  std::string name = "x.h5";
  std::string new_name;                                  // of a move that may have happened
  std::map<store::VersionNumber, std::string> versions;  // acked
  std::string newest;                                    // of the last durable cut
};

// One life of a server, up to its end by eviction or of its work.
class Life {
 public:
  // `root` is a directory of the filesystem. The session ends before change number `last`.
  Life(std::string root, uint64_t last) : root_(std::move(root)), last_(last) {}

  void Run() {
    auto mounted = MountCluster([](const std::string& /*why*/) {});
    ASSERT_TRUE(mounted.ok()) << mounted.status();
    mounted_ = *std::move(mounted);
    store::CountingEnv env(*mounted_);
    env.counts().before_change = [this] {
      if (change_count_++ == last_) EndSession();
    };
    store::StoreOptions options;
    options.root = root_;
    options.durable_every = absl::Milliseconds(50);
    auto store = store::Store::Open(env, options);
    const absl::Status ended = store.ok() ? Work(**store) : store.status();
    // Where all was durable, what the end still tidies up may fail unheard.
    EXPECT_TRUE(ended.ok() || evicted_) << ended;
    // SQLite says of a call that was refused no more than that.
    EXPECT_TRUE(ended.ok() || absl::IsInternal(ended) || absl::IsUnavailable(ended)) << ended;
  }

  const Promises& promises() const { return promises_; }
  uint64_t change_count() const { return change_count_; }
  bool evicted() const { return evicted_; }

 private:
  // As a server does that takes over: by the session's uuid.
  void EndSession() {
    auto other = MountCluster(nullptr);
    ASSERT_TRUE(other.ok()) << other.status();
    ceph_mount_info* const mount = static_cast<CephEnv&>(**other).mount().get();
    ASSERT_EQ(ceph_start_reclaim(mount, mounted_->Session().uuid.c_str(), CEPH_RECLAIM_RESET), 0);
    ceph_finish_reclaim(mount);
    evicted_ = true;
  }

  absl::Status Work(store::Store& store) {
    H5M_ASSIGN_OR_RETURN(auto file, store.OpenOrCreateFile("x.h5", kPage));
    store::Writer writer(file, store::SessionStart::kNewGeneration);
    H5M_RETURN_IF_ERROR(writer.begun());
    H5M_RETURN_IF_ERROR(Cut(writer, 'a', kPages, BarrierKind::kCommit));
    H5M_RETURN_IF_ERROR(Cut(writer, 'b', 5, BarrierKind::kSync));
    H5M_RETURN_IF_ERROR(Cut(writer, 'c', 40, BarrierKind::kCommit));
    H5M_RETURN_IF_ERROR(writer.Truncate(kPages * kPage / 2));
    H5M_RETURN_IF_ERROR(Cut(writer, 'd', 3, BarrierKind::kCommit));
    H5M_RETURN_IF_ERROR(writer.End());
    H5M_RETURN_IF_ERROR(file->WaitApplied(absl::Seconds(60)));
    H5M_ASSIGN_OR_RETURN(const auto rolled, file->Rollback(1, {}, RandomBytes16()));
    promises_.versions[rolled.version] = promises_.newest = promises_.versions[1];
    H5M_RETURN_IF_ERROR(file->WaitApplied(absl::Seconds(60)));
    file.reset();
    promises_.new_name = "d/y.h5";
    H5M_RETURN_IF_ERROR(store.Move("x.h5", "d/y.h5"));
    promises_.name = promises_.new_name;
    return store.Close(absl::Seconds(30));
  }

  // Changes `pages` pages, every second one, and waits for the ack.
  absl::Status Cut(store::Writer& writer, char fill, uint64_t pages, BarrierKind kind) {
    const uint64_t all = std::max<uint64_t>(kPages, pages);
    for (uint64_t i = 0; i < pages; ++i) {
      const uint64_t page = pages == all ? i : 2 * i % (all / 2);
      H5M_RETURN_IF_ERROR(writer.Write(page * kPage, std::string(kPage, fill)));
    }
    H5M_ASSIGN_OR_RETURN(const store::DurableCut cut, writer.CutDurably(kind));
    promises_.newest = writer.content();
    if (kind == BarrierKind::kCommit) promises_.versions[cut.version] = writer.content();
    return absl::OkStatus();
  }

  const std::string root_;
  const uint64_t last_;
  std::unique_ptr<MountedEnv> mounted_;
  std::atomic<uint64_t> change_count_{0};
  std::atomic<bool> evicted_{false};
  Promises promises_;
};

absl::Status Verify(store::File& file) {
  H5M_ASSIGN_OR_RETURN(const auto job, file.StartVerify({}));
  while (true) {
    H5M_ASSIGN_OR_RETURN(const store::VerifyProgress progress, job->Step());
    for (const store::Damage& damage : progress.found) {
      return absl::DataLossError(StrCat(damage.file, ": ", damage.message));
    }
    if (progress.done) return absl::OkStatus();
  }
}

// The successor of a life on its root.
void CheckSuccessor(const std::string& root, const Promises& promises) {
  auto mounted = MountCluster(nullptr);
  ASSERT_TRUE(mounted.ok()) << mounted.status();
  std::unique_ptr<store::Store> store = store::OpenStore(**mounted, root);
  ASSERT_NE(store, nullptr);
  auto file = store->OpenFile(promises.name);
  if (absl::IsNotFound(file.status()) && !promises.new_name.empty()) {
    file = store->OpenFile(promises.new_name);
  }
  if (promises.newest.empty() && !file.ok()) return;  // Nothing was acked.
  ASSERT_TRUE(file.ok()) << file.status();
  for (const auto& [version, content] : promises.versions) {
    EXPECT_EQ(store::ReadVersion(**file, version) == content, true) << "version " << version;
  }
  ASSERT_TRUE((*file)->WaitApplied(absl::Seconds(60)).ok());
  EXPECT_EQ(Verify(**file), absl::OkStatus());
  const size_t version_count = static_cast<size_t>((*file)->Info()->version_count);
  EXPECT_GE(version_count, promises.versions.size());
  // It can be used.
  store::Writer writer(*file, store::SessionStart::kNewGeneration);
  ASSERT_TRUE(writer.Write(0, "and on").ok());
  auto cut = writer.CutDurably(BarrierKind::kCommit);
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(promises.versions.count(cut->version), 0u) << "a version's number was given twice";
  EXPECT_EQ(store::ReadVersion(**file, cut->version), "and on");
  EXPECT_TRUE(writer.End().ok());
}

std::string NewRoot() {
  auto mounted = MountCluster(nullptr);
  EXPECT_TRUE(mounted.ok()) << mounted.status();
  auto root = MakeTestRoot(**mounted);
  EXPECT_TRUE(root.ok()) << root.status();
  return *root;
}

TEST(EvictionTest, ASuccessorFindsAllThatWasAckedWhicheverCallWasTheLast) {
  uint64_t whole = 0;
  {
    const std::string root = NewRoot();
    Life life(root, kNever);
    life.Run();
    whole = life.change_count();
    ASSERT_GT(whole, 50u);
    CheckSuccessor(root, life.promises());
  }
  int evicted = 0;
  for (int i = 0; i < kLives; ++i) {
    SCOPED_TRACE(StrCat("the session ends before change ", whole * i / kLives, " of ", whole));
    const std::string root = NewRoot();
    Life life(root, whole * i / kLives);
    life.Run();
    evicted += life.evicted() ? 1 : 0;
    CheckSuccessor(root, life.promises());
    if (HasFailure()) return;
  }
  // The background makes a few changes more or fewer.
  EXPECT_GE(evicted, kLives - 2);
}

}  // namespace
}  // namespace h5mirror::ceph
