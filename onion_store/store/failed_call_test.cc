// One call fails while durable cuts, or a change from outside, get into the head. The next open
// repeats the work. A power loss then must not find bytes that only the first attempt had written:
// if a failed sync should have covered bytes, no later sync covers them.
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/strings.h"
#include "base/testing/fault_env.h"
#include "gtest/gtest.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

constexpr uint32_t kPage = 512;

absl::StatusOr<std::unique_ptr<Store>> OpenByHand(Env& env) {
  StoreOptions options;
  options.root = "/";
  options.background_threads = 0;
  options.page_size_bytes = kPage;
  options.durable_every = absl::Milliseconds(50);
  return Store::Open(env, options);
}

using Versions = std::map<VersionNumber, std::string>;  // the bytes of each version

// Opens x.h5 and applies waiting cuts. The caller judges the error, because a fault was planted.
absl::Status OpenAndApply(Env& env) {
  const auto store = OpenByHand(env);
  if (!store.ok()) return store.status();
  const auto file = (*store)->OpenFile("x.h5");
  while ((*store)->RunBackground()) continue;
  return file.ok() ? (*file)->WaitApplied(absl::ZeroDuration()) : file.status();
}

// The broken promises on the disk that a power loss leaves; "": none.
std::string Differences(const FaultEnv& env, Unsynced unsynced, const Versions& wanted) {
  CrashPoint point;
  point.change_count = env.change_count();
  point.data = point.names = unsynced;
  const auto crashed = env.Crash(point);
  const auto store = OpenByHand(*crashed);
  if (!store.ok()) return store.status().ToString();
  const auto file = (*store)->OpenFile("x.h5");
  if (!file.ok()) return file.status().ToString();
  while ((*store)->RunBackground()) continue;
  std::string differences;
  for (const auto& [version, content] : wanted) {
    const auto reader = (*file)->OpenVersion(version);
    std::string bytes(content.size(), '\0');
    const absl::Status read =
        reader.ok() ? (*reader)->Read(0, absl::MakeSpan(bytes)) : reader.status();
    if (!read.ok()) differences += StrCat("version ", version, ": ", read.ToString(), "\n");
    if (read.ok() && bytes != content)
      differences += StrCat("version ", version, ": other bytes\n");
  }
  return differences;
}

struct Prepared {
  std::unique_ptr<FaultEnv> env;
  Versions wanted;
};

// Each call of the open and the apply fails once.
void EachCallFails(const Prepared& prepared) {
  uint64_t call_count = 1;
  for (uint64_t call = 0; call < call_count; ++call) {
    const auto env = prepared.env->CopyNow();
    if (call == 0) {
      const auto copy = prepared.env->CopyNow();
      const absl::Status well = OpenAndApply(*copy);
      ASSERT_TRUE(well.ok()) << well;
      call_count = copy->call_count();
    }
    env->FailCall(call, absl::InternalError("Input/output error"));
    OpenAndApply(*env).IgnoreError();
    ASSERT_TRUE(env->fault_met());
    const absl::Status again = OpenAndApply(*env);
    ASSERT_TRUE(again.ok()) << again << ", after call " << call << " failed";
    for (const Unsynced unsynced : {Unsynced::kDropped, Unsynced::kKept}) {
      EXPECT_EQ(Differences(*env, unsynced, prepared.wanted), "")
          << "call " << call << " of " << call_count << " failed"
          << (unsynced == Unsynced::kKept ? ", all else kept" : ", all else lost");
    }
  }
  EXPECT_GT(call_count, 40u);
}

// An applied version of twelve pages, and one or two versions that are only durable.
Prepared ToApply(const std::function<absl::Status(Writer&)>& second,
                 const std::function<absl::Status(Writer&)>& third = nullptr) {
  Prepared prepared;
  FaultEnv env;
  const auto opened = OpenByHand(env);
  Store* store = opened->get();
  Writer writer(*store->OpenOrCreateFile("x.h5", 0), SessionStart::kNewGeneration);
  size_t at_durable = 0;
  auto commit = [&] {
    const std::string content = writer.content();
    const auto cut = writer.Cut(BarrierKind::kCommit, [&, content](const auto& made) {
      ASSERT_TRUE(made.ok()) << made.status();
      prepared.wanted[made->version] = content;
      at_durable = env.change_count();
    });
    EXPECT_TRUE(cut.ok()) << cut.status();
  };
  EXPECT_TRUE(writer.Write(0, std::string(12 * kPage, 'a')).ok());
  commit();
  while (store->RunBackground()) continue;
  EXPECT_TRUE(second(writer).ok());
  commit();
  if (third != nullptr) {
    EXPECT_TRUE(third(writer).ok());
    commit();
  }
  while (store->RunBackground()) continue;
  EXPECT_EQ(prepared.wanted.size(), third == nullptr ? 2u : 3u);
  CrashPoint point;
  point.change_count = at_durable;
  point.data = point.names = Unsynced::kDropped;
  prepared.env = env.Crash(point);
  return prepared;
}

absl::Status Overwrite(Writer& writer) { return writer.Write(2 * kPage, std::string(700, 'b')); }
absl::Status Shorten(Writer& writer) { return writer.Truncate(4 * kPage); }
absl::Status WriteBehindAHole(Writer& writer) {
  return writer.Write(7 * kPage, std::string(3 * kPage, 'c'));
}
absl::Status ShortenAndGrow(Writer& writer) {
  const absl::Status shorter = Shorten(writer);
  return shorter.ok() ? WriteBehindAHole(writer) : shorter;
}

TEST(FailedCallTest, OfAnOverwriteIsMadeGood) { EachCallFails(ToApply(Overwrite)); }
TEST(FailedCallTest, OfATruncationIsMadeGood) { EachCallFails(ToApply(Shorten)); }
TEST(FailedCallTest, OfATruncationThatIsGrownOverIsMadeGood) {
  EachCallFails(ToApply(Shorten, WriteBehindAHole));
}
TEST(FailedCallTest, OfATruncationWithinAPageIsMadeGood) {
  EachCallFails(
      ToApply([](Writer& writer) { return writer.Truncate(4 * kPage + 100); }, WriteBehindAHole));
}
TEST(FailedCallTest, OfTwoTruncationsIsMadeGood) {
  EachCallFails(ToApply(ShortenAndGrow, Shorten));
}

// A file that another program wrote while no store had it open.
Prepared Changed(const std::function<void(EnvFile& head)>& change, const std::string& content) {
  Prepared prepared = ToApply(Overwrite);
  EXPECT_TRUE(OpenAndApply(*prepared.env).ok());
  const auto tree = prepared.env->OpenTree("/");
  const auto head = (*tree)->Open("x.h5", OpenKind::kWrite, 0);
  change(**head);
  prepared.wanted = {{3, content}};
  return prepared;
}

std::string Before() {
  std::string content(12 * kPage, 'a');
  return content.replace(2 * kPage, 700, 700, 'b');
}

TEST(FailedCallTest, OfTakingInAnOutsideChangeIsMadeGood) {
  EachCallFails(Changed(
      [](EnvFile& head) {
        ASSERT_TRUE(WriteAt(head, 5 * kPage, std::string(kPage, 'x')).ok());
        ASSERT_TRUE(head.Sync().ok());
      },
      Before().replace(5 * kPage, kPage, kPage, 'x')));
}

TEST(FailedCallTest, OfTakingInAnOutsideTruncationIsMadeGood) {
  EachCallFails(Changed(
      [](EnvFile& head) {
        ASSERT_TRUE(head.Truncate(3 * kPage).ok());
        ASSERT_TRUE(head.Sync().ok());
      },
      Before().substr(0, 3 * kPage)));
}

TEST(FailedCallTest, OfTakingInOutsideGrowthIsMadeGood) {
  EachCallFails(Changed(
      [](EnvFile& head) {
        ASSERT_TRUE(WriteAt(head, kPage, "x").ok());
        ASSERT_TRUE(WriteAt(head, 14 * kPage, std::string(kPage, 'x')).ok());
        ASSERT_TRUE(head.Sync().ok());
      },
      Before().replace(kPage, 1, "x") + std::string(2 * kPage, '\0') + std::string(kPage, 'x')));
}

}  // namespace
}  // namespace h5mirror::store
