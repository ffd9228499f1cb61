#include "server/cluster/cluster.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "cluster/file_registry.h"
#include "cluster/testing/fake_fencer.h"
#include "cluster/testing/memory_registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onion_store/testing/test_store.h"
#include "rpc/elsewhere.h"
#include "server/cluster/prepare_registry.h"
#include "server/testing/test_directory.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;

class CountingRegistry final : public cluster::Registry {
 public:
  explicit CountingRegistry(std::atomic<int>& reads) : reads_(reads) {}
  absl::StatusOr<cluster::RegistryView> ReadAll() override {
    ++reads_;
    return memory_.ReadAll();
  }
  absl::StatusOr<cluster::RegistryView> Read(absl::Span<const std::string> names) override {
    return memory_.Read(names);
  }
  absl::Status CompareAndSet(absl::Span<const cluster::Expectation> expected,
                             absl::Span<const cluster::NewText> changes) override {
    return memory_.CompareAndSet(expected, changes);
  }

 private:
  std::atomic<int>& reads_;
  cluster::MemoryRegistry memory_;
};

// Two servers of one process, on one directory. The store's lock is held by descriptor, so it keeps
// them apart as it does two processes.
class ClusterTest : public ::testing::Test {
 protected:
  ClusterTest() {
    std::filesystem::create_directories(root());
    std::filesystem::create_directories(directory_.path() / "registry");
  }
  std::filesystem::path root() { return directory_.path() / "root"; }
  ClusterSettings SettingsOf(const std::string& node) {
    ClusterSettings settings;
    settings.directory = directory_.path() / "registry";
    settings.node = node;
    settings.source = "h5mirrord.toml:3";
    settings.beat = absl::Milliseconds(100);
    settings.lease = absl::Seconds(2);
    return settings;
  }
  absl::StatusOr<OpenedStore> OpenStore(const std::string& cell) {
    store::StoreOptions options;
    options.root = root() / cell;
    auto store = store::Store::Open(Env::Posix(), options);
    if (!store.ok()) return store.status();
    return OpenedStore{nullptr, *std::move(store)};
  }
  std::unique_ptr<Cluster> Start(const std::string& node) {
    return Start(
        node, [this](const std::string& cell) { return OpenStore(cell); }, nullptr);
  }
  std::unique_ptr<Cluster> Start(const std::string& node, StoreOpener open,
                                 std::function<void(const absl::Status&)> on_lost) {
    Config config;
    config.root = root();
    config.cluster = SettingsOf(node);
    Cluster::Parts parts;
    auto holder = RegistryHolder::Open(config);
    EXPECT_TRUE(holder.ok()) << holder.status();
    parts.registry = *std::move(holder);
    const absl::Status prepared =
        PrepareRegistry(parts.registry->registry(), *config.cluster, config.root);
    EXPECT_TRUE(prepared.ok()) << prepared;
    parts.open = std::move(open);
    parts.is_fenced = [this] { return is_fenced_.load(); };
    parts.close_timeout = absl::Seconds(5);
    parts.on_lost = std::move(on_lost);
    if (parts.on_lost == nullptr) {
      parts.on_lost = [node](const absl::Status& why) { ADD_FAILURE() << node << ": " << why; };
    }
    auto cluster = std::make_unique<Cluster>(*config.cluster, std::move(parts));
    cluster->Start(node + ":7447");
    return cluster;
  }
  // The first open that is answered by the cell's owner.
  static std::shared_ptr<store::File> AwaitFile(Cluster& cluster, const std::string& name) {
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    absl::StatusOr<std::shared_ptr<store::File>> file = absl::UnknownError("");
    while (!file.ok() && absl::Now() < deadline) {
      file = cluster.store().OpenOrCreateFile(name, 0);
      if (!file.ok()) absl::SleepFor(absl::Milliseconds(10));
    }
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *file : nullptr;
  }

  TestDirectory directory_;
  std::atomic<bool> is_fenced_ = false;
};

TEST_F(ClusterTest, ACellIsHandedOverInOrder) {
  auto first = Start("a");
  auto file = AwaitFile(*first, "x.h5");
  ASSERT_NE(file, nullptr);
  store::Writer writer(file, store::SessionStart::kNewGeneration);
  ASSERT_TRUE(writer.Write(0, "bytes").ok());
  ASSERT_TRUE(writer.CutDurably(store::BarrierKind::kCommit).ok());
  ASSERT_TRUE(writer.End().ok());

  auto second = Start("b");
  std::optional<rpc::Elsewhere> elsewhere;
  while (!elsewhere.has_value()) {  // Until it has looked at the registry.
    elsewhere = rpc::ElsewhereOf(second->store().OpenFile("x.h5").status());
  }
  EXPECT_EQ(elsewhere->address, "a:7447");

  const absl::Status drained = first->Drain(absl::Seconds(60));
  EXPECT_TRUE(drained.ok()) << drained;
  EXPECT_FALSE(first->store().OpenFile("x.h5").ok());
  file = AwaitFile(*second, "x.h5");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(store::ReadVersion(*file, 1), "bytes");
  EXPECT_TRUE(second->Drain(absl::Seconds(60)).ok());
}

TEST_F(ClusterTest, ACellMovesAndIsWhole) {
  auto first = Start("a");
  auto file = AwaitFile(*first, "x.h5");
  ASSERT_NE(file, nullptr);
  store::Writer writer(file, store::SessionStart::kNewGeneration);
  ASSERT_TRUE(writer.Write(0, "bytes").ok());
  ASSERT_TRUE(writer.CutDurably(store::BarrierKind::kCommit).ok());
  ASSERT_TRUE(writer.End().ok());
  auto second = Start("b");
  EXPECT_TRUE(absl::IsNotFound(first->Move("", "c").status()));
  absl::StatusOr<uint64_t> asked = absl::NotFoundError("");
  while (absl::IsNotFound(asked.status())) asked = second->Move("", "b");
  EXPECT_EQ(asked.value(), 1u);
  const auto moved = AwaitFile(*second, "x.h5");
  ASSERT_NE(moved, nullptr);
  EXPECT_EQ(store::ReadVersion(*moved, 1), "bytes");
  EXPECT_TRUE(absl::IsUnavailable(file->Info().status()));
  EXPECT_EQ(first->Counts().handovers, 1u);
  const auto state = first->Look();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->node, "a");
  EXPECT_EQ(state->view.cells.at("").owner, "b");
  EXPECT_FALSE(state->view.servers.at("b").version.empty());
  EXPECT_EQ(second->RoutesBelow("d")->at("").kind, cluster::RouteKind::kServe);

  const absl::Status alive = first->Evict("b", /*force=*/false);
  EXPECT_TRUE(absl::IsFailedPrecondition(alive)) << alive;
  EXPECT_TRUE(absl::IsFailedPrecondition(first->Evict("a", /*force=*/true)));
  EXPECT_TRUE(first->Drain("b", cluster::DrainWish::kStay).ok());
  EXPECT_NE(AwaitFile(*first, "x.h5"), nullptr);
  EXPECT_TRUE(second->Drain(absl::Seconds(60)).ok());
  EXPECT_TRUE(first->Drain(absl::Seconds(60)).ok());
}

TEST_F(ClusterTest, ALifeWithoutADrainIsGivenUpByTheNextOne) {
  {
    const auto first = Start("a");
    ASSERT_NE(AwaitFile(*first, "x.h5"), nullptr);
  }
  auto again = Start("a");
  EXPECT_NE(AwaitFile(*again, "x.h5"), nullptr);
  EXPECT_TRUE(again->Drain(absl::Seconds(60)).ok());
}

// The first one to claim the cell meets a disk block that it cannot read. The next one gets it.
TEST_F(ClusterTest, ACellThatCannotBeReadEndsNoServer) {
  absl::Notification tried;
  auto first = Start(
      "a",
      [&](const std::string&) -> absl::StatusOr<OpenedStore> {
        if (!tried.HasBeenNotified()) tried.Notify();
        return absl::InternalError("read index: Input/output error");
      },
      nullptr);
  tried.WaitForNotification();
  auto second = Start("b");
  EXPECT_NE(AwaitFile(*second, "x.h5"), nullptr);
  EXPECT_TRUE(second->Drain(absl::Seconds(60)).ok());
  EXPECT_TRUE(first->Drain(absl::Seconds(60)).ok());
}

TEST_F(ClusterTest, AnOpenThatMeetsAFenceEndsItsServer) {
  absl::Notification lost;
  is_fenced_ = true;
  auto first = Start(
      "a",
      [](const std::string&) -> absl::StatusOr<OpenedStore> {
        return absl::InternalError("this server is fenced off");
      },
      [&](const absl::Status& why) {
        EXPECT_THAT(std::string(why.message()), HasSubstr("fenced off"));
        lost.Notify();
      });
  lost.WaitForNotification();
}

// An open that adds its mount only when the cluster ends.
TEST_F(ClusterTest, ItsEndWaitsForAnOpen) {
  absl::Notification opening;
  absl::Notification ends;
  Cluster* cluster_of_opener = nullptr;
  auto first = Start(
      "a",
      [&](const std::string& cell) -> absl::StatusOr<OpenedStore> {
        opening.Notify();
        ends.WaitForNotification();
        absl::SleepFor(absl::Milliseconds(50));
        const absl::Status added = cluster_of_opener->AddMount("m-1", {});
        EXPECT_TRUE(added.ok()) << added;
        return OpenStore(cell);
      },
      nullptr);
  cluster_of_opener = first.get();
  opening.WaitForNotification();
  ends.Notify();
  first.reset();
}

// Whether this thread is one that HangingRegistry does not answer.
thread_local bool t_hangs = false;

// A registry that does not answer one thread until Release().
class HangingRegistry final : public cluster::Registry {
 public:
  struct Gate {
    absl::Notification reached;
    absl::Notification release;
  };
  explicit HangingRegistry(Gate& gate) : gate_(gate) {}
  absl::StatusOr<cluster::RegistryView> ReadAll() override {
    if (t_hangs) {
      gate_.reached.Notify();
      gate_.release.WaitForNotification();
    }
    return memory_.ReadAll();
  }
  absl::StatusOr<cluster::RegistryView> Read(absl::Span<const std::string> names) override {
    return memory_.Read(names);
  }
  absl::Status CompareAndSet(absl::Span<const cluster::Expectation> expected,
                             absl::Span<const cluster::NewText> changes) override {
    return memory_.CompareAndSet(expected, changes);
  }

 private:
  Gate& gate_;
  cluster::MemoryRegistry memory_;
};

TEST_F(ClusterTest, OneCallerWaitsForARegistryThatHangs) {
  ClusterSettings settings = SettingsOf("a");
  settings.cells = {"x"};
  settings.beat = absl::Milliseconds(10);
  std::filesystem::create_directories(root() / "x");
  HangingRegistry::Gate gate;
  Cluster::Parts parts;
  parts.registry = RegistryHolder::Of(std::make_unique<HangingRegistry>(gate),
                                      std::make_unique<cluster::FakeFencer>());
  ASSERT_TRUE(PrepareRegistry(parts.registry->registry(), settings, root()).ok());
  parts.open = [this](const std::string& cell) { return OpenStore(cell); };
  Cluster cluster(settings, std::move(parts));
  cluster.Start("a:7447");
  const auto await = [&](uint64_t seen_epoch) {
    while (cluster.FindSent("x", seen_epoch).kind != cluster::RouteKind::kServe) {
      absl::SleepFor(absl::Milliseconds(1));
    }
  };
  constexpr uint64_t kMadeUp = 1'000'000;
  await(0);
  std::thread first([&] {
    t_hangs = true;
    cluster.FindSent("x", kMadeUp);
  });
  gate.reached.WaitForNotification();
  // Many beats later it is still the only one.
  const absl::Time end = absl::Now() + 20 * settings.beat;
  while (absl::Now() < end) {
    EXPECT_EQ(cluster.FindSent("x", kMadeUp).kind, cluster::RouteKind::kWait);
    absl::SleepFor(absl::Milliseconds(1));
  }
  gate.release.Notify();
  first.join();
  await(kMadeUp);  // It may ask again, and learns that there is no such epoch.
}

TEST_F(ClusterTest, NamesInNoCellCostOneReadInABeat) {
  ClusterSettings settings = SettingsOf("a");
  settings.cells = {"x"};
  settings.beat = absl::Seconds(30);
  settings.lease = absl::Seconds(90);
  std::atomic<int> reads = 0;
  Cluster::Parts parts;
  parts.registry = RegistryHolder::Of(std::make_unique<CountingRegistry>(reads),
                                      std::make_unique<cluster::FakeFencer>());
  ASSERT_TRUE(PrepareRegistry(parts.registry->registry(), settings, root()).ok());
  parts.open = [this](const std::string& cell) { return OpenStore(cell); };
  Cluster cluster(settings, std::move(parts));
  // It knows nothing yet, and so it lists nothing as all there is.
  EXPECT_TRUE(absl::IsUnavailable(cluster.RoutesBelow("").status()));
  EXPECT_TRUE(absl::IsUnavailable(cluster.store().List("", "", 9).status()));
  EXPECT_TRUE(absl::IsUnavailable(cluster.store().ListRemoved().status()));
  cluster.Start("a:7447");
  EXPECT_TRUE(absl::IsInvalidArgument(cluster.store().OpenFile("v/a.h5").status()));
  reads = 0;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(absl::IsInvalidArgument(cluster.store().OpenFile("v/a.h5").status()));
  }
  EXPECT_LT(reads, 10) << "some by the thread of the protocol";
}

TEST_F(ClusterTest, ACellOfAnotherRootIsClosedAgain) {
  const ClusterSettings settings = SettingsOf("a");
  Cluster::Parts parts;
  parts.registry =
      RegistryHolder::Of(*cluster::FileRegistry::Open(Env::Posix(), directory_.path() / "registry"),
                         std::make_unique<cluster::FakeFencer>());
  cluster::Registry& registry = parts.registry->registry();
  // Its disk came after the check of the start.
  ASSERT_TRUE(PrepareRegistry(registry, settings, root()).ok());
  ASSERT_TRUE(KeepRoot(registry, settings, directory_.path() / "other").ok());
  parts.root = root();
  std::atomic<int> refusals = 0;
  std::atomic<int> unmounted = 0;
  parts.open = [&](const std::string& cell) {
    auto opened = OpenStore(cell);
    if (opened.ok()) opened->on_unmounted = [&unmounted] { ++unmounted; };
    return opened;
  };
  parts.on_note = [&refusals](const std::string& line) {
    if (absl::StrContains(line, "name the right one of both")) ++refusals;
  };
  Cluster cluster(settings, std::move(parts));
  cluster.Start("a:7447");
  // The second one finds the store's lock free.
  while (refusals < 2) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_GE(unmounted, 2);
  EXPECT_TRUE(absl::IsUnavailable(cluster.store().OpenFile("x.h5").status()));
}

TEST_F(ClusterTest, ServersOfOneClusterHaveTheSameTimesAndCells) {
  const auto first = Start("a");
  ASSERT_NE(AwaitFile(*first, "x.h5"), nullptr);
  const auto registry = *cluster::FileRegistry::Open(Env::Posix(), directory_.path() / "registry");
  ClusterSettings other = SettingsOf("b");
  other.lease = absl::Seconds(3);
  EXPECT_THAT(std::string(PrepareRegistry(*registry, other, root()).message()),
              HasSubstr("all servers must have the same"));
  other = SettingsOf("b");
  other.cells = {"x"};
  EXPECT_THAT(std::string(PrepareRegistry(*registry, other, root()).message()),
              HasSubstr("all servers must name all cells"));
  EXPECT_TRUE(first->Drain(absl::Seconds(60)).ok());
  // None is there any more that has the former ones.
  other = SettingsOf("b");
  other.lease = absl::Seconds(3);
  EXPECT_TRUE(PrepareRegistry(*registry, other, root()).ok());
}

}  // namespace
}  // namespace h5mirror::server
