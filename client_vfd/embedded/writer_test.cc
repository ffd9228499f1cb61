#include "client_vfd/embedded/writer.h"

#include <string>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::vfd {
namespace {

constexpr char kHead[] = "/d/x.h5";

EmbeddedWriterConfig ConfigOn(FaultEnv& env, store::SessionStart start) {
  EmbeddedWriterConfig config;
  config.env = &env;
  config.path = kHead;
  config.start = start;
  config.locking = HeadLocking::kNo;
  config.timeout = absl::Seconds(20);
  config.page_size_bytes = 512;
  config.program = "test";
  return config;
}

std::unique_ptr<EmbeddedWriter> Open(FaultEnv& env, store::SessionStart start) {
  auto writer = EmbeddedWriter::Open(ConfigOn(env, start), [](const std::string&) {});
  EXPECT_TRUE(writer.ok()) << writer.status();
  return writer.ok() ? *std::move(writer) : nullptr;
}

// A file that was closed as `bytes`.
void Make(FaultEnv& env, const std::string& bytes) {
  auto writer = Open(env, store::SessionStart::kNewGeneration);
  ASSERT_TRUE(writer->Write(0, bytes).ok());
  ASSERT_TRUE(writer->Close(store::SessionEnd::kClean, "").ok());
}

std::string NewestOf(FaultEnv& env) {
  std::string notice;
  auto file = store::OpenEmbeddedToRead(env, kHead, "test", absl::Seconds(20), &notice);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? store::ReadVersion(**file, 0) : "";
}

TEST(EmbeddedWriterTest, ACloseThatSaysOkSurvivesPowerLoss) {
  const std::string before(2000, 'a'), after(3000, 'b');
  bool met = true;
  int refused = 0;
  for (uint64_t call = 0; met && !HasFailure(); ++call) {
    FaultEnv env;
    Make(env, before);
    auto writer = Open(env, store::SessionStart::kContinue);
    ASSERT_TRUE(writer->Write(0, after).ok());
    env.FailCall(call, absl::InternalError("no such luck"));
    const bool closed = writer->Close(store::SessionEnd::kClean, "").ok();
    met = env.fault_met();
    writer.reset();
    refused += closed ? 0 : 1;
    const auto later = env.Crash(env.change_count(), call);
    const std::string found = NewestOf(*later);
    EXPECT_TRUE(found == after || (!closed && found == before)) << "call " << call;
  }
  EXPECT_GT(refused, 3) << "no fault was met that matters";
}

TEST(EmbeddedWriterTest, AWriteAndAChangeOfSizeEndTheStateOfTheNewestCut) {
  FaultEnv env;
  Make(env, std::string(2000, 'a'));
  auto writer = Open(env, store::SessionStart::kContinue);
  EXPECT_FALSE(writer->is_at_cut()) << "there was none";
  const auto cut = [&] {
    return writer->Barrier(store::BarrierKind::kTick, AckLevel::kVisible, "").ok();
  };
  ASSERT_TRUE(writer->Write(0, "b").ok());
  EXPECT_FALSE(writer->is_at_cut());
  ASSERT_TRUE(cut());
  EXPECT_TRUE(writer->is_at_cut());
  ASSERT_TRUE(writer->Truncate(100).ok());
  EXPECT_FALSE(writer->is_at_cut());
  ASSERT_TRUE(cut());
  ASSERT_TRUE(writer->Truncate(100).ok());
  EXPECT_TRUE(writer->is_at_cut()) << "it had that size";
  ASSERT_TRUE(writer->Close(store::SessionEnd::kClean, "").ok());
}

TEST(EmbeddedWriterTest, AnOpenThatFailsLateLeavesAFileThatCanBeClosed) {
  const std::string before(2000, 'a');
  bool met = true;
  int refused = 0;
  for (uint64_t call = 0; met && !HasFailure(); ++call) {
    FaultEnv env;
    Make(env, before);
    auto writer = Open(env, store::SessionStart::kContinue);
    env.FailCall(call, absl::InternalError("no such luck"));
    const bool written = writer->Write(0, "b").ok();
    met = env.fault_met();
    if (!written) {
      ++refused;
      // What HDF5 does next.
      writer->Write(0, "c").IgnoreError();
      writer->Truncate(100).IgnoreError();
      writer->Barrier(store::BarrierKind::kTick, AckLevel::kVisible, "").IgnoreError();
      writer->FileForReaders().status().IgnoreError();
    }
    writer->Close(written ? store::SessionEnd::kClean : store::SessionEnd::kLost, "").IgnoreError();
    writer.reset();
    if (written) continue;
    EXPECT_THAT(NewestOf(env),
                testing::AnyOf(before, "c" + before.substr(1), "c" + std::string(99, 'a')))
        << "call " << call;
  }
  EXPECT_GT(refused, 3) << "no fault was met that matters";
}

}  // namespace
}  // namespace h5mirror::vfd
