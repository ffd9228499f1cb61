#include "onion_store/file/writer/writer_session.h"

#include <string>

#include "gmock/gmock.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;

const std::string& Name() {
  static const std::string name = "x.h5";
  return name;
}

Provenance FromHere() {
  Provenance provenance;
  provenance.host = "here";
  return provenance;
}

class WriterSessionTest : public testing::Test {
 protected:
  void Write(Token token) {
    session_.Lease(token);
    session_.Begin();
  }
  WriterSession session_;
};

TEST_F(WriterSessionTest, TokenZeroNeverHasTheLease) {
  EXPECT_TRUE(absl::IsAborted(session_.CheckLease(Name(), 0)));
  EXPECT_TRUE(absl::IsAborted(session_.CheckWriting(Name(), 0)));
}

TEST_F(WriterSessionTest, WritesOnlyOnceItHasBegun) {
  session_.Lease(7);
  EXPECT_EQ(session_.phase(), WriterPhase::kLeased);
  EXPECT_TRUE(session_.CheckLease(Name(), 7).ok());
  EXPECT_TRUE(absl::IsAborted(session_.CheckCanWrite(Name(), 7)));
  session_.Begin();
  EXPECT_TRUE(session_.is_writing());
  EXPECT_TRUE(session_.CheckCanWrite(Name(), 7).ok());
}

TEST_F(WriterSessionTest, ANewLeaseFencesTheFormerOneAndForgetsIt) {
  Write(7);
  session_.NoteCut(FromHere());
  session_.Lease(8);
  const absl::Status fenced = session_.CheckCanWrite(Name(), 7);
  EXPECT_TRUE(absl::IsAborted(fenced));
  EXPECT_THAT(std::string(fenced.message()), HasSubstr("x.h5: token 7 is fenced"));
  EXPECT_FALSE(session_.is_writing());
  EXPECT_EQ(session_.cut_count(), 0);
  EXPECT_EQ(session_.provenance(), Provenance());
}

TEST_F(WriterSessionTest, AfterAFailureEveryWriteFailsWithIt) {
  Write(7);
  EXPECT_TRUE(absl::IsResourceExhausted(session_.Note(7, absl::ResourceExhaustedError("full"))));
  EXPECT_EQ(session_.phase(), WriterPhase::kFailed);
  EXPECT_TRUE(absl::IsResourceExhausted(session_.CheckCanWrite(Name(), 7)));
  EXPECT_TRUE(session_.CheckWriting(Name(), 7).ok()) << "it may still read what it wrote";
  EXPECT_TRUE(session_.is_writing()) << "it must still end";
  session_.End();
  EXPECT_EQ(session_.phase(), WriterPhase::kNone);
}

TEST_F(WriterSessionTest, ALateFailureOfAFencedOneIsNotTheNextOnes) {
  Write(7);
  Write(8);
  EXPECT_TRUE(absl::IsAborted(session_.Note(7, absl::AbortedError("fenced"))));
  EXPECT_TRUE(session_.CheckCanWrite(Name(), 8).ok());
}

TEST_F(WriterSessionTest, ACutWithoutProvenanceKeepsThatOfTheCutBefore) {
  Write(7);
  session_.NoteCut(FromHere());
  session_.NoteCut({});
  EXPECT_EQ(session_.cut_count(), 2);
  EXPECT_EQ(session_.provenance().host, "here");
}

}  // namespace
}  // namespace h5mirror::store
