#include "swmr_agent/reader_rights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/strings.h"
#include "base/testing/fake_clock.h"
#include "swmr_agent/upstream.h"

namespace h5mirror::agent {
namespace {

using ::testing::HasSubstr;
using Answer = absl::StatusOr<v1::CheckReaderResponse>;

constexpr uid_t kAnna = 1000, kBob = 1001, kNameless = 4711;

Answer Says(bool has_tables, bool may_read) {
  v1::CheckReaderResponse response;
  response.set_has_tables(has_tables);
  response.set_may_read(may_read);
  return response;
}

class ReaderRightsTest : public ::testing::Test {
 protected:
  absl::Status Check(uid_t user, const std::string& name = "a.h5") {
    return rights_.Check(server_, user, name);
  }
  absl::Status Look(uid_t user) { return rights_.Look(server_, user, "a.h5"); }

  FakeClock clock_;
  Upstream server_{rpc::ClientOptions{}};
  Answer answer_ = Says(true, true);
  std::vector<std::string> asked_;  // "USER FILE"
  ReaderRights rights_{clock_,
                       [this](Upstream&, const v1::CheckReaderRequest& request) {
                         asked_.push_back(StrCat(request.user(), " ", request.name()));
                         return answer_;
                       },
                       [](uid_t uid) -> absl::StatusOr<std::string> {
                         if (uid == kNameless) return absl::NotFoundError("no name");
                         return std::string(uid == kAnna ? "anna" : "bob");
                       }};
};

TEST_F(ReaderRightsTest, AYesCountsForSeconds) {
  EXPECT_TRUE(absl::IsUnavailable(Look(kAnna)));
  EXPECT_TRUE(Check(kAnna).ok());
  EXPECT_TRUE(Look(kAnna).ok());
  clock_.Advance(ReaderRights::kKeep - absl::Milliseconds(1));
  EXPECT_TRUE(Check(kAnna).ok());
  EXPECT_THAT(asked_, ::testing::ElementsAre("anna a.h5"));
  answer_ = Says(true, false);
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(absl::IsUnavailable(Look(kAnna)));
  EXPECT_TRUE(absl::IsNotFound(Check(kAnna)));
  EXPECT_TRUE(absl::IsNotFound(Look(kAnna)));
}

TEST_F(ReaderRightsTest, AYesIsOfOneUserAndOneFile) {
  EXPECT_TRUE(Check(kAnna).ok());
  answer_ = Says(true, false);
  EXPECT_TRUE(absl::IsNotFound(Check(kBob)));
  EXPECT_TRUE(absl::IsNotFound(Check(kAnna, "b.h5")));
  EXPECT_TRUE(absl::IsUnavailable(Look(kNameless)));
  EXPECT_TRUE(absl::IsNotFound(Check(kNameless)));
  EXPECT_THAT(asked_, ::testing::ElementsAre("anna a.h5", "bob a.h5", "anna b.h5", " a.h5"));
  Upstream other{rpc::ClientOptions{}};
  EXPECT_TRUE(absl::IsNotFound(rights_.Check(other, kAnna, "a.h5")));
}

TEST_F(ReaderRightsTest, ANoIsAskedAgainSoon) {
  answer_ = Says(true, false);
  EXPECT_TRUE(absl::IsNotFound(Check(kBob)));
  answer_ = Says(true, true);
  EXPECT_TRUE(absl::IsNotFound(Check(kBob)));
  clock_.Advance(ReaderRights::kKeepNo);
  EXPECT_TRUE(Check(kBob).ok());
}

TEST_F(ReaderRightsTest, WithoutTablesAllUsersReadAllFilesByOneQuestion) {
  answer_ = Says(false, false);
  EXPECT_TRUE(Check(kAnna).ok());
  EXPECT_TRUE(Check(kBob, "b.h5").ok());
  EXPECT_TRUE(Check(kNameless).ok());
  EXPECT_TRUE(Look(kNameless).ok());
  EXPECT_EQ(asked_.size(), 1);
  // A table has come.
  answer_ = Says(true, false);
  clock_.Advance(ReaderRights::kKeep);
  EXPECT_TRUE(absl::IsNotFound(Check(kBob)));
  answer_ = absl::UnavailableError("away");
  EXPECT_TRUE(absl::IsUnavailable(Check(kAnna, "b.h5")));
}

TEST_F(ReaderRightsTest, WhileTheServerIsAwayTheLastYesCounts) {
  EXPECT_TRUE(Check(kAnna).ok());
  answer_ = absl::DeadlineExceededError("away");
  clock_.Advance(ReaderRights::kOutageMax - absl::Seconds(1));
  EXPECT_TRUE(Check(kAnna).ok());
  EXPECT_TRUE(absl::IsUnavailable(Check(kBob))) << "nothing is known of bob";
  clock_.Advance(ReaderRights::kKeepNo);
  const absl::Status late = Check(kAnna);
  EXPECT_TRUE(absl::IsUnavailable(late));
  EXPECT_THAT(std::string(late.message()), HasSubstr("a.h5: the server cannot be asked"));
}

TEST_F(ReaderRightsTest, ANoEndsWhatAnOutageWouldKeep) {
  EXPECT_TRUE(Check(kAnna).ok());
  answer_ = Says(true, false);
  clock_.Advance(ReaderRights::kKeep);
  EXPECT_TRUE(absl::IsNotFound(Check(kAnna)));
  answer_ = absl::UnavailableError("away");
  clock_.Advance(ReaderRights::kKeepNo);
  EXPECT_TRUE(absl::IsUnavailable(Check(kAnna)));
}

TEST_F(ReaderRightsTest, AServerThatIsNotToBeAskedOpensNothing) {
  for (const absl::Status& why :
       {absl::PermissionDeniedError("operate"), absl::UnimplementedError("old"),
        absl::UnauthenticatedError("expired")}) {
    answer_ = Says(false, false);
    EXPECT_TRUE(Check(kAnna).ok());
    answer_ = why;
    clock_.Advance(ReaderRights::kKeep);
    EXPECT_TRUE(absl::IsPermissionDenied(Check(kAnna))) << why;
    EXPECT_TRUE(absl::IsPermissionDenied(Check(kBob))) << why;
    clock_.Advance(ReaderRights::kKeep);
  }
  answer_ = absl::NotFoundError("the agent may not read it either");
  EXPECT_TRUE(absl::IsNotFound(Check(kAnna)));
}

TEST_F(ReaderRightsTest, FilesOfAUserAreBounded) {
  for (size_t i = 0; i < 2 * ReaderRights::kFilesMax; ++i) {
    EXPECT_TRUE(Check(kAnna, std::to_string(i)).ok());
    clock_.Advance(absl::Nanoseconds(1));
  }
  asked_.clear();
  EXPECT_TRUE(Check(kAnna, std::to_string(2 * ReaderRights::kFilesMax - 1)).ok());
  EXPECT_EQ(asked_.size(), 0);
  EXPECT_TRUE(Check(kAnna, "0").ok());
  EXPECT_EQ(asked_.size(), 1) << "the oldest answer was forgotten";
}

TEST(ReaderRightsQuestions, ReadersOfOneUserShareAQuestion) {
  FakeClock clock;
  Upstream server{rpc::ClientOptions{}};
  absl::Notification begun, answer;
  int asked = 0;
  ReaderRights rights(
      clock,
      [&](Upstream&, const v1::CheckReaderRequest&) {
        ++asked;
        begun.Notify();
        answer.WaitForNotification();
        return Says(true, true);
      },
      [](uid_t) { return std::string("anna"); });
  std::vector<std::thread> readers;
  readers.emplace_back([&] { EXPECT_TRUE(rights.Check(server, kAnna, "a.h5").ok()); });
  begun.WaitForNotification();
  // One that waits in vain has an answer of its own.
  EXPECT_TRUE(absl::IsUnavailable(rights.Check(server, kAnna, "a.h5")));
  for (int i = 0; i < 8; ++i) {
    readers.emplace_back([&] { EXPECT_TRUE(rights.Check(server, kAnna, "a.h5").ok()); });
  }
  answer.Notify();
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(asked, 1);
}

TEST(NameOfUser, KnowsRootAndNotAStranger) {
  EXPECT_EQ(*NameOfUser(0), "root");
  EXPECT_TRUE(absl::IsNotFound(NameOfUser(uid_t{0x7ffffff0}).status()));
}

}  // namespace
}  // namespace h5mirror::agent
