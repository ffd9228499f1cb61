#include "server/live/publication.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/testing/fault_env.h"
#include "gtest/gtest.h"
#include "onion_store/testing/test_store.h"
#include "server/calls/raw_message.h"

namespace h5mirror::server {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kAll = uint64_t{1} << 30;

class PublicationTest : public testing::Test {
 protected:
  using Message = v1::FollowFileResponse;

  void SetUp() override {
    store_ = store::OpenStore(env_, "/");
    file_ = store_->OpenOrCreateFile("x.h5", 0).value();
    file_->NoteChanges();
    writer_ = std::make_unique<store::Writer>(file_, store::SessionStart::kContinue);
  }

  // A cut whose bytes differ from page to page, all of them metadata.
  void CutOfMetadata(uint64_t bytes) {
    for (uint64_t at = 0; at < bytes; at += kPage) {
      ASSERT_TRUE(
          writer_->Write(at, std::string(kPage, static_cast<char>('a' + at / kPage % 26))).ok());
    }
    const Extent all{0, bytes};
    file_->metadata().Add({&all, 1});
    Cut();
  }
  void Cut() { ASSERT_TRUE(writer_->Cut(store::BarrierKind::kTick).ok()); }
  std::unique_ptr<Publication> Publish() {
    return std::make_unique<Publication>(file_, file_->PinNewestCut().value(), file_->file_id(),
                                         absl::Now(), true);
  }
  static std::vector<Message> All(CutMessages& messages) {
    std::vector<Message> all;
    for (size_t i = 0;; ++i) {
      auto message = messages.Get(i);
      EXPECT_TRUE(message.ok()) << message.status();
      if (!message.ok() || !message->has_value()) return all;
      all.push_back(ParseMessage<Message>(**message).value());
      EXPECT_EQ(all.back().data_crc32c(), Crc32c(all.back().data()));
    }
  }
  std::string AllData(CutMessages& messages) {
    std::string data;
    for (const Message& message : All(messages)) data += message.data();
    return data;
  }

  FaultEnv env_;
  std::unique_ptr<store::Store> store_;
  std::shared_ptr<store::File> file_;
  std::unique_ptr<store::Writer> writer_;
};

TEST_F(PublicationTest, WhoHoldTheSameCutShareItsMessages) {
  CutOfMetadata(kPage);
  const auto first = Publish();
  CutOfMetadata(kPage);
  const auto publication = Publish();
  const std::string id = publication->file_id();
  const auto changes = publication->MessagesFrom(first->cut(), id, kAll);
  EXPECT_EQ(publication->MessagesFrom(first->cut(), id, kAll), changes);
  EXPECT_FALSE(All(*changes).front().whole());
  EXPECT_GT(changes->kept_bytes(), kPage) << "made once";
  const auto whole = publication->MessagesFrom(0, "", kAll);
  EXPECT_NE(whole, changes);
  EXPECT_TRUE(All(*whole).front().whole());
  EXPECT_EQ(publication->MessagesFrom(first->cut(), std::string(16, 'x'), kAll), whole)
      << "a cut of another file is none";
  EXPECT_NE(publication->MessagesFrom(0, "", kPage), whole)
      << "a follower that wants less gets other messages";
}

TEST_F(PublicationTest, MetadataIsSplitUpAtTheBound) {
  const uint64_t bytes = 2 * CutMessages::kPartBytes + kPage;
  CutOfMetadata(bytes);
  const auto all = All(*Publish()->MessagesFrom(0, "", kAll));
  ASSERT_EQ(all.size(), 3);
  std::string data;
  for (const Message& message : all) {
    EXPECT_EQ(message.has_snapshot(), data.empty()) << "in the first one";
    EXPECT_EQ(message.data_offset(0), data.size());
    EXPECT_LE(message.data().size(), CutMessages::kPartBytes);
    data += message.data();
    EXPECT_EQ(message.last(), data.size() == bytes);
  }
  EXPECT_TRUE(data == writer_->content());
}

TEST_F(PublicationTest, ACutWithoutMetadataIsOneMessage) {
  ASSERT_TRUE(writer_->Write(0, "raw data").ok());
  Cut();
  const auto all = All(*Publish()->MessagesFrom(0, "", kAll));
  ASSERT_EQ(all.size(), 1);
  EXPECT_TRUE(all[0].last());
  EXPECT_TRUE(all[0].data().empty());
}

TEST_F(PublicationTest, BeyondSomeDifferentCutsNothingIsShared) {
  CutOfMetadata(2 * kPage);
  const auto publication = Publish();
  std::vector<std::shared_ptr<CutMessages>> shared;
  for (size_t i = 0; i < Publication::kChangesMax; ++i) {
    shared.push_back(publication->MessagesFrom(0, "", kAll + i));
  }
  const auto own = publication->MessagesFrom(0, "", kPage);
  EXPECT_NE(publication->MessagesFrom(0, "", kPage), own);
  EXPECT_EQ(publication->MessagesFrom(0, "", kAll), shared.front());
  EXPECT_EQ(AllData(*own).size(), kPage);
  EXPECT_EQ(own->kept_bytes(), 0) << "nobody else takes them";
}

TEST_F(PublicationTest, LargeChangesAreNotKept) {
  CutOfMetadata(CutMessages::kKeptBytesMax + kPage);
  const auto messages = Publish()->MessagesFrom(0, "", kAll);
  EXPECT_TRUE(AllData(*messages) == writer_->content());
  EXPECT_EQ(messages->kept_bytes(), 0);
}

TEST_F(PublicationTest, OfAnOldOneNothingIsKept) {
  CutOfMetadata(3 * CutMessages::kPartBytes);
  const std::string bytes = writer_->content();
  const auto publication = Publish();
  const auto messages = publication->MessagesFrom(0, "", kAll);
  ASSERT_TRUE(messages->Get(0).ok());
  EXPECT_GT(publication->kept_bytes(), 0);
  ASSERT_TRUE(writer_->Write(0, "of the next cut").ok());
  Cut();
  publication->EndSharing();
  EXPECT_TRUE(AllData(*messages) == bytes) << "a slow follower gets the rest of it";
  EXPECT_EQ(messages->kept_bytes(), 0);
  const auto late = publication->MessagesFrom(0, "", kAll);
  EXPECT_TRUE(AllData(*late) == bytes);
  EXPECT_EQ(late->kept_bytes() + publication->kept_bytes(), 0);
}

TEST_F(PublicationTest, WhatHasExpiredIsNotSent) {
  CutOfMetadata(kPage);
  const auto publication = Publish();
  const auto messages = publication->MessagesFrom(0, "", kAll);
  publication->snapshot()->Expire();
  EXPECT_TRUE(absl::IsOutOfRange(messages->Get(0).status()));
}

}  // namespace
}  // namespace h5mirror::server
