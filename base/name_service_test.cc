#include "base/name_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace h5mirror {
namespace {

using ::testing::HasSubstr;

// A name service that answers with one error after the other, the last one for ever; 0: an entry.
class NameServiceTest : public ::testing::Test {
 protected:
  absl::Status Fetch(std::vector<int> errors) {
    return FetchFromNameService("uid 7", buffer_, record_, found_,
                                [&](int* record, char*, size_t size, int** found) {
                                  sizes_.push_back(size);
                                  const int error = errors.front();
                                  if (errors.size() > 1) errors.erase(errors.begin());
                                  if (error == 0) *found = record;
                                  return error;
                                });
  }

  std::vector<char> buffer_;
  int record_ = 0;
  int* found_ = nullptr;
  std::vector<size_t> sizes_;
};

TEST_F(NameServiceTest, AnEntryIsFoundAfterTriesWithLargerBuffers) {
  ASSERT_TRUE(Fetch({ERANGE, EINTR, ERANGE, 0}).ok());
  EXPECT_EQ(found_, &record_);
  EXPECT_GT(sizes_.back(), 2 * sizes_.front());
}

TEST_F(NameServiceTest, NoEntryIsNoError) {
  for (const int error : {ENOENT, ESRCH}) {
    EXPECT_TRUE(Fetch({error}).ok());
    EXPECT_EQ(found_, nullptr);
  }
}

TEST_F(NameServiceTest, AFailureNamesWhatWasAskedFor) {
  const absl::Status status = Fetch({EIO});
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("uid 7"));
}

TEST_F(NameServiceTest, AnEntryWithoutEndIsAFailure) {
  EXPECT_TRUE(absl::IsUnavailable(Fetch({ERANGE})));
  EXPECT_LE(sizes_.back(), 2 * kNameServiceBytesMax);
}

}  // namespace
}  // namespace h5mirror
