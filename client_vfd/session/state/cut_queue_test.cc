#include "client_vfd/session/state/cut_queue.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using testing::ElementsAre;

// A local file, the queue, and a server that does what it is told.
class World {
 public:
  explicit World(size_t extents_max = Changes::kExtentsMax) : queue_(extents_max) {}

  void Write(uint64_t offset, const std::string& bytes) {
    CopyOut({offset, bytes.size()});
    if (local_.size() < offset + bytes.size()) local_.resize(offset + bytes.size());
    local_.replace(offset, bytes.size(), bytes);
    queue_.AddWrite({offset, bytes.size()});
  }

  void Truncate(uint64_t size) {
    CopyOut({size, uint64_t{1} << 40});
    local_.resize(size);
    queue_.Truncate(size);
  }

  void Cut(CutKind kind = CutKind::kTick) {
    CutEnd end;
    end.kind = kind;
    end.size_bytes = local_.size();
    queue_.Close(end);
    moments_.push_back(local_);
  }

  // One message. False when there is nothing to send.
  bool Send(uint64_t bytes_max = 7, uint64_t open_bytes_min = 1) {
    const Work work = queue_.Next(bytes_max, 3, open_bytes_min);
    if (const auto* truncate = std::get_if<SendTruncate>(&work))
      remote_.resize(std::min<size_t>(remote_.size(), truncate->size_bytes));
    if (const auto* writes = std::get_if<SendWrites>(&work)) Apply(*writes);
    if (const auto* barrier = std::get_if<SendBarrier>(&work)) {
      remote_.resize(barrier->end.size_bytes);
      cuts_.push_back(remote_);
    }
    queue_.DoneReading();
    return !std::holds_alternative<std::monostate>(work);
  }

  void SendAll() {
    while (Send()) {
    }
  }

  CutQueue queue_;
  std::string local_;
  std::string remote_;
  std::vector<std::string> moments_;  // the local file at each cut
  std::vector<std::string> cuts_;     // the server's cuts

 private:
  void CopyOut(Extent extent) {
    for (const Extent& part : queue_.AtRisk(extent)) queue_.Save(part, ReadLocal(part));
  }
  std::string ReadLocal(Extent extent) const {
    std::string bytes =
        extent.offset < local_.size() ? local_.substr(extent.offset, extent.length) : "";
    bytes.resize(extent.length);
    return bytes;
  }
  void Apply(const SendWrites& writes) {
    for (const Piece& piece : writes.pieces) {
      const std::string bytes = piece.saved.empty() ? ReadLocal(piece.extent) : piece.saved;
      if (remote_.size() < piece.extent.end()) remote_.resize(piece.extent.end());
      remote_.replace(piece.extent.offset, bytes.size(), bytes);
    }
  }
};

TEST(CutQueueTest, CutsArriveAsTheyWere) {
  World world;
  world.Write(0, "aaaaaaaa");
  world.Cut();
  world.Write(2, "bbb");
  world.Cut();
  world.SendAll();
  EXPECT_THAT(world.cuts_, ElementsAre("aaaaaaaa", "aabbbaaa"));
}

TEST(CutQueueTest, UnreadAreTheBytesThatClosedCutsStillReadFromTheFile) {
  World world;
  world.Write(0, "abcdef");
  EXPECT_EQ(world.queue_.unread_bytes(), 0) << "the cut is open";
  world.Cut();
  EXPECT_EQ(world.queue_.unread_bytes(), 6);
  world.Write(0, "AB");  // Two bytes are copied first.
  EXPECT_EQ(world.queue_.unread_bytes(), 4);
  world.SendAll();
  EXPECT_EQ(world.queue_.unread_bytes(), 0);
  EXPECT_EQ(world.cuts_, world.moments_);
}

TEST(CutQueueTest, RepeatedWritesAreSentOnce) {
  World world;
  world.Write(0, "aaaa");
  world.Write(0, "bbbb");
  EXPECT_EQ(world.queue_.pending_bytes(), 4u);
}

TEST(CutQueueTest, SmallOpenCutWaits) {
  World world;
  world.Write(0, "aaaa");
  EXPECT_FALSE(world.Send(7, 5));
  world.Cut();
  EXPECT_TRUE(world.Send(7, 5));
}

TEST(CutQueueTest, BytesUnderTruncationAreCopiedOut) {
  World world;
  world.Write(0, "aaaaaaaa");
  world.Cut();
  world.Truncate(2);
  world.Write(5, "c");
  world.Cut();
  world.SendAll();
  EXPECT_THAT(world.cuts_, ElementsAre("aaaaaaaa", std::string("aa\0\0\0c", 6)));
}

TEST(CutQueueTest, ALargeCopyGoesInParts) {
  World world;
  const std::string old(1'000'000, 'o');
  world.Write(3, old);
  world.Cut();
  world.Write(0, std::string(1'000'003, 'n'));
  EXPECT_EQ(world.queue_.saved_bytes(), old.size());
  for (int sends = 0; world.cuts_.empty(); ++sends) {
    ASSERT_TRUE(world.Send(70'000));
    ASSERT_LT(sends, 40);
  }
  EXPECT_EQ(world.queue_.saved_bytes(), 0u);
  EXPECT_TRUE(world.cuts_[0] == world.moments_[0]);
}

TEST(CutQueueTest, EverythingIsWhatALostStreamLeaves) {
  World world;
  world.Write(0, "aaaaaaaa");
  world.Cut();
  world.SendAll();  // handed out, not durable
  world.Write(20, "bbbb");
  world.Cut();
  world.Write(21, "c");  // copies "b" out
  world.Cut();
  world.Truncate(22);
  const Changes all = world.queue_.Everything();
  EXPECT_EQ(world.queue_.pending_cuts(), 3u) << "asking changes nothing";
  world.queue_.SendAgain();
  EXPECT_EQ(all.extents.ToVector(), world.queue_.open_changes().extents.ToVector());
  EXPECT_EQ(all.truncate, world.queue_.open_changes().truncate);
  EXPECT_EQ(all.truncate, 22u);
}

TEST(CutQueueTest, MergedTickJoinsTheNextCut) {
  World world;
  world.Write(0, "aaaaaaaa");
  world.Cut();
  world.Write(0, "bb");
  world.Cut();
  world.Write(0, "c");
  EXPECT_TRUE(world.queue_.MergeTick());
  world.SendAll();
  EXPECT_THAT(world.cuts_, ElementsAre("bbaaaaaa"));
  EXPECT_EQ(world.queue_.saved_bytes(), 0u);
}

TEST(CutQueueTest, OnlyTicksAreMerged) {
  World world;
  world.Write(0, "a");
  world.Cut(CutKind::kCommit);
  EXPECT_FALSE(world.queue_.MergeTick());
}

TEST(CutQueueTest, WithTooManyCutsATickGoesOn) {
  World world;
  for (int i = 0; i < 1000; ++i) {
    world.Write(0, std::to_string(1000 + i));
    world.Cut();
  }
  EXPECT_EQ(world.queue_.closed_cuts(), 256u);
  world.Cut(CutKind::kCommit);
  EXPECT_EQ(world.queue_.closed_cuts(), 257u);
  world.SendAll();
  EXPECT_EQ(world.cuts_.back(), "1999");
}

TEST(CutQueueTest, LostStreamSendsWhatIsNotDurableAgain) {
  World world;
  world.Write(0, "aaaa");
  world.Cut();
  world.Write(4, "bbbb");
  world.Cut();
  world.SendAll();
  world.queue_.ForgetDurable(1);
  world.queue_.SendAgain();
  EXPECT_EQ(world.queue_.pending_bytes(), 4u);
}

TEST(CutQueueTest, ReadingOfClosedCutsIsSeen) {
  World world;
  world.Write(0, "aaaa");
  static_cast<void>(world.queue_.Next(4, 1, 1));
  EXPECT_FALSE(world.queue_.IsBeingRead({0, 1}));  // Its cut is open: it will be sent again.
  world.Cut();
  EXPECT_TRUE(world.queue_.IsBeingRead({0, 1}));
  EXPECT_FALSE(world.queue_.IsBeingRead({4, 1}));
  world.queue_.DoneReading();
  EXPECT_FALSE(world.queue_.IsBeingRead({0, 1}));
}

// Random programs: every cut that the server makes equals the local file at some cut, in order,
// and the last one equals the last.
// Every cut that is sent is the file at one of the moments that a cut was made, in their order.
void KeepTheirCuts(size_t extents_max, unsigned file_bytes, unsigned write_bytes) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return random() % n; };
  for (int round = 0; round < 300; ++round) {
    World world(extents_max);
    for (int step = 0; step < 60; ++step) {
      switch (below(8)) {
        case 0:
          world.Cut(below(4) == 0 ? CutKind::kCommit : CutKind::kTick);
          break;
        case 1:
          world.Truncate(below(file_bytes));
          break;
        case 2:
          world.queue_.MergeTick();
          break;
        case 3:
        case 4:
          world.Send(1 + below(9));
          break;
        default:
          for (unsigned n = 0; n <= write_bytes / 9; ++n) {
            world.Write(below(file_bytes),
                        std::string(1 + below(write_bytes), static_cast<char>('a' + below(26))));
          }
      }
    }
    world.Cut();
    world.SendAll();
    size_t at = 0;
    for (const std::string& cut : world.cuts_) {
      while (at < world.moments_.size() && world.moments_[at] != cut) ++at;
      ASSERT_LT(at, world.moments_.size()) << "a cut that never was, round " << round;
    }
    ASSERT_EQ(world.cuts_.back(), world.local_);
    ASSERT_EQ(world.queue_.saved_bytes(), 0u);
  }
}

TEST(CutQueueTest, AnExactQueueNeverCoversMoreThanWasWritten) {
  constexpr uint64_t kWrites = Changes::kExtentsMax + 5000;
  CutQueue queue(CutQueue::kExact);
  const auto write = [&](uint64_t from) {
    for (uint64_t i = 0; i < kWrites; ++i) queue.AddWrite({from + 100 * i, 10});
  };
  const auto send = [&] {
    uint64_t bytes = 0;
    for (;;) {
      const Work work = queue.Next(1 << 20, 8192, 1);
      const auto* writes = std::get_if<SendWrites>(&work);
      if (writes == nullptr) return bytes;
      for (const Piece& piece : writes->pieces) bytes += piece.extent.length;
      queue.DoneReading();
    }
  };
  write(0);
  EXPECT_EQ(send(), 10 * kWrites) << "of the open cut";
  queue.Close({});
  write(50);
  queue.Close({});
  ASSERT_TRUE(queue.MergeTick());
  queue.SendAgain();
  EXPECT_EQ(queue.open_bytes(), 20 * kWrites);
  EXPECT_EQ(queue.Everything().extents.byte_count(), 20 * kWrites);
  EXPECT_EQ(send(), 20 * kWrites) << "again";
}

TEST(CutQueueTest, RandomHistoriesKeepTheirCuts) { KeepTheirCuts(Changes::kExtentsMax, 40, 9); }

// More extents than the open cut holds: it covers more than was written, and no cut may show that.
TEST(CutQueueTest, RandomHistoriesOfScatteredWritesKeepTheirCuts) { KeepTheirCuts(4, 400, 20); }

TEST(CutQueueTest, RandomHistoriesSurviveALostStream) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return random() % n; };
  for (int round = 0; round < 300; ++round) {
    World world;
    std::string durable;
    for (int step = 0; step < 60; ++step) {
      const size_t cuts = world.cuts_.size();
      switch (below(8)) {
        case 0:
          world.Cut();
          break;
        case 1:
          world.Truncate(below(40));
          break;
        case 2:
          if (below(4) == 0) {
            world.queue_.SendAgain();
            world.remote_ = durable;
          }
          break;
        case 3:
        case 4:
          world.Send(1 + below(9));
          break;
        default:
          world.Write(below(40), std::string(1 + below(9), static_cast<char>('a' + below(26))));
      }
      if (world.cuts_.size() > cuts && below(2) == 0) {
        world.queue_.ForgetDurable(world.queue_.last_seq());
        durable = world.cuts_.back();
      }
    }
    world.Cut();
    world.SendAll();
    ASSERT_EQ(world.cuts_.back(), world.local_) << "round " << round;
  }
}

TEST(CutQueueTest, InheritedChangesAreSentAgainUntilABarrierIsDurable) {
  CutQueue queue;
  Changes changes;
  changes.extents.Add({100, 20});
  changes.truncate = 50;
  queue.Inherit(changes);
  EXPECT_TRUE(queue.TakeBack());  // They went with another stream, and stay what they are.
  EXPECT_EQ(queue.pending_bytes(), 0u);
  EXPECT_EQ(queue.NotDurable().extents.byte_count(), 20u);
  queue.SendAgain();
  EXPECT_EQ(queue.pending_bytes(), 20u);
  EXPECT_EQ(std::get<SendTruncate>(queue.Next(1 << 20, 100, 1)).size_bytes, 50u);
  queue.Inherit(changes);
  queue.ForgetDurable(1);
  EXPECT_TRUE(queue.NotDurable().extents.ToVector() == (std::vector<Extent>{}));
}

TEST(CutQueueTest, WhatWasHandedOutIsTakenBackWithItsCut) {
  CutQueue queue;
  queue.AddWrite({0, 100});
  EXPECT_EQ(std::get<SendWrites>(queue.Next(1 << 20, 100, 1)).pieces.size(), 1u);
  EXPECT_FALSE(queue.TakeBack());  // It is being read.
  queue.DoneReading();
  CutEnd end;
  end.size_bytes = 100;
  queue.Close(end);
  EXPECT_TRUE(queue.TakeBack());
  EXPECT_EQ(queue.pending_bytes(), 100u);
  EXPECT_EQ(std::get<SendWrites>(queue.Next(1 << 20, 100, 1)).pieces[0].extent.length, 100u);
  queue.DoneReading();
  EXPECT_EQ(std::get<SendBarrier>(queue.Next(1 << 20, 100, 1)).end.size_bytes, 100u);
  EXPECT_FALSE(queue.TakeBack());  // The barrier is gone.
}

TEST(CutQueueTest, WhatAnotherProcessHasSentIsSentAgainUntilItsBarrierIsDurable) {
  CutQueue queue;
  queue.AddWrite({0, 4});
  queue.AddHandedOut({100, 50});
  EXPECT_EQ(queue.pending_bytes(), 4u) << "this process sends nothing of it";
  queue.Close({});
  EXPECT_TRUE(std::holds_alternative<SendWrites>(queue.Next(1 << 20, 8, 1)));
  const Work barrier = queue.Next(1 << 20, 8, 1);
  ASSERT_TRUE(std::holds_alternative<SendBarrier>(barrier));
  EXPECT_THAT(queue.NotDurable().extents.ToVector(), ElementsAre(Extent{0, 4}, Extent{100, 50}));
  CutQueue lost = queue;
  lost.SendAgain();
  EXPECT_EQ(lost.pending_bytes(), 54u);
  queue.ForgetDurable(std::get<SendBarrier>(barrier).seq);
  EXPECT_TRUE(queue.Everything().empty());
}

TEST(CutQueueTest, ItIsAtABarrierWhileNothingIsHandedOutBehindOne) {
  CutQueue queue;
  EXPECT_TRUE(queue.IsAtBarrier());
  queue.AddWrite({0, 100});
  EXPECT_TRUE(queue.IsAtBarrier()) << "that is read later, as the file is then";
  (void)queue.Next(1 << 20, 100, 1);
  EXPECT_FALSE(queue.IsAtBarrier()) << "those bytes may come late";
  queue.DoneReading();
  EXPECT_FALSE(queue.IsAtBarrier());
  queue.Close({});
  EXPECT_FALSE(queue.IsAtBarrier());
  EXPECT_TRUE(std::holds_alternative<SendBarrier>(queue.Next(1 << 20, 100, 1)));
  EXPECT_TRUE(queue.IsAtBarrier());
}

TEST(CutQueueTest, ATickThatIsGivenUpLeavesItBehindABarrierUntilTheNextOne) {
  CutQueue queue;
  queue.AddWrite({0, 200});
  queue.Close({});
  (void)queue.Next(100, 100, 1);
  queue.DoneReading();
  ASSERT_TRUE(queue.MergeTick());
  EXPECT_FALSE(queue.has_closed());
  EXPECT_FALSE(queue.IsAtBarrier()) << "the first half is on its way";
  CutQueue lost = queue;
  lost.SendAgain();
  EXPECT_TRUE(lost.IsAtBarrier()) << "the next stream has nothing yet";
  queue.Close({});
  (void)queue.Next(1 << 20, 100, 1);
  queue.DoneReading();
  (void)queue.Next(1 << 20, 100, 1);
  EXPECT_TRUE(queue.IsAtBarrier());
}

TEST(CutQueueTest, ItIsAtNoBarrierWhileATruncateIsToComeOrOnItsWay) {
  CutQueue queue;
  queue.Truncate(50);
  EXPECT_FALSE(queue.IsAtBarrier());
  queue.AddWrite({0, 50});
  EXPECT_TRUE(std::holds_alternative<SendTruncate>(queue.Next(1 << 20, 100, 1)));
  EXPECT_FALSE(queue.IsAtBarrier());
  CutQueue lost = queue;
  lost.SendAgain();
  EXPECT_FALSE(lost.IsAtBarrier());
  (void)queue.Next(1 << 20, 100, 1);
  queue.DoneReading();
  queue.Close({});
  (void)queue.Next(1 << 20, 100, 1);
  EXPECT_TRUE(queue.IsAtBarrier());
}

TEST(CutQueueTest, NothingIsTakenBackThatTheFileNoLongerHolds) {
  CutQueue queue;
  queue.AddWrite({0, 100});
  (void)queue.Next(1 << 20, 100, 1);
  queue.DoneReading();
  queue.Close(CutEnd());
  queue.AddWrite({50, 10});  // Over bytes of the closed cut; nobody copied them.
  EXPECT_FALSE(queue.TakeBack());
}

}  // namespace
}  // namespace h5mirror::vfd
