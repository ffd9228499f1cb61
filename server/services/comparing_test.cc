// The whole server, compared with local files: digests, checks, and sessions that resync.
#include "base/block_digest.h"
#include "server/testing/mirror_server_fixture.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;

class ComparingTest : public MirrorServerTest {
 protected:
  absl::StatusOr<std::string> Digests(const std::string& name, int64_t version,
                                      const std::vector<Extent>& ranges,
                                      uint32_t block_bytes = 4096) {
    v1::DigestFileRequest request;
    request.set_name(name);
    request.set_version(version);
    request.set_block_size_bytes(block_bytes);
    for (const Extent range : ranges) {
      v1::ByteRange& wanted = *request.add_ranges();
      wanted.set_offset(range.offset);
      wanted.set_length_bytes(range.length);
    }
    std::string digests;
    const absl::Status status =
        client_->DigestFile(request, [&digests](const v1::DigestFileResponse& response) {
          digests += response.digests();
          return absl::OkStatus();
        });
    if (!status.ok()) return status;
    return digests;
  }
  static std::string DigestText(const std::string& block) {
    const BlockDigest digest = DigestOf(block);
    return {digest.begin(), digest.end()};
  }
};

TEST_F(ComparingTest, DigestsAreOfAVersionOrItsRanges) {
  Start();
  MirrorWhole("x.h5", std::string(4096, 'a') + std::string(4096, 'b') + std::string(1000, 'c'));
  MirrorWhole("x.h5", std::string(4096, 'd'));
  const std::string a = DigestText(std::string(4096, 'a')), c = DigestText(std::string(1000, 'c'));
  const std::string b = DigestText(std::string(4096, 'b')), d = DigestText(std::string(4096, 'd'));
  EXPECT_EQ(*Digests("x.h5", 0, {}), d);
  EXPECT_EQ(*Digests("x.h5", 1, {}), a + b + c);
  EXPECT_EQ(*Digests("x.h5", 1, {{0, 4096}, {8192, 1000}}), a + c);
  EXPECT_EQ(*Digests("x.h5", 1, {{4096, 5096}}), b + c);
  EXPECT_TRUE(absl::IsNotFound(Digests("x.h5", 3, {}).status()));
}

// The smallest block is the smallest user block of HDF5.
TEST_F(ComparingTest, BlocksAreOf512BytesOrMore) {
  Start();
  MirrorWhole("x.h5", std::string(512, 'a') + std::string(700, 'b'));
  EXPECT_EQ(*Digests("x.h5", 0, {{0, 1024}}, 512),
            DigestText(std::string(512, 'a')) + DigestText(std::string(512, 'b')));
  for (const uint32_t bad : {256u, 513u, 6144u, 32u << 20}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Digests("x.h5", 0, {}, bad).status())) << bad;
  }
}

TEST_F(ComparingTest, RangesOfDigestsAreOfWholeBlocks) {
  Start();
  MirrorWhole("x.h5", std::string(10'000, 'x'));
  const std::vector<std::vector<Extent>> bad = {{{1, 4096}},
                                                {{0, 100}},
                                                {{0, 0}},
                                                {{0, 20'000}},
                                                {{4096, UINT64_MAX}},
                                                {{12'288, 4096}},
                                                {{4096, 4096}, {0, 4096}}};
  for (const std::vector<Extent>& ranges : bad) {
    const absl::Status refused = Digests("x.h5", 0, ranges).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("ranges["));
  }
  EXPECT_TRUE(
      absl::IsInvalidArgument(Digests("x.h5", 0, std::vector<Extent>(65'537, {0, 4096})).status()));
}

TEST_F(ComparingTest, HolesAreDigestedAsZeros) {
  Start();
  auto stream = Open("x.h5", v1::INTENT_CREATE);
  Write(*stream, 5 << 20, "end");
  Cut(*stream, 1, v1::BARRIER_KIND_COMMIT, (5 << 20) + 3);
  ASSERT_TRUE(stream->Finish().ok());
  ASSERT_TRUE(Settled("x.h5").ok());
  const auto digests = Digests("x.h5", 0, {{0, 8192}, {5 << 20, 3}});
  ASSERT_TRUE(digests.ok()) << digests.status();
  const std::string zeros = DigestText(std::string(4096, '\0'));
  EXPECT_EQ(*digests, zeros + zeros + DigestText("end"));
}

TEST_F(ComparingTest, AResyncGoesOnFromTheNewestCutAndTakesTheOrigin) {
  Start();
  MirrorWhole("x.h5", std::string(10'000, 'x'));
  const v1::FileStatus before = *Settled("x.h5");
  v1::MirrorFileRequest request = OpenRequest("x.h5", v1::INTENT_RESYNC);
  request.mutable_open()->mutable_origin()->set_path("/elsewhere/x.h5");
  request.mutable_open()->set_base_cut(before.last_cut() - 1);
  auto refused = *client_->OpenMirrorStream();
  ASSERT_TRUE(refused->Send(request).ok());
  EXPECT_EQ(refused->Receive()->opened().relation(), v1::RELATION_DIVERGED);
  request.mutable_open()->set_base_cut(before.last_cut());
  request.mutable_open()->set_file_id(before.file_id());
  auto stream = *client_->OpenMirrorStream();
  ASSERT_TRUE(stream->Send(request).ok());
  EXPECT_EQ(stream->Receive()->opened().relation(), v1::RELATION_MATCH);
  Write(*stream, 5000, "changed");
  EXPECT_EQ(Cut(*stream, 1, v1::BARRIER_KIND_COMMIT, 9000).version(), 2);
  ASSERT_TRUE(stream->Finish().ok());
  const v1::FileStatus after = *Settled("x.h5");
  EXPECT_EQ(after.origin().path(), "/elsewhere/x.h5");
  EXPECT_EQ(after.generation(), before.generation());
  EXPECT_EQ(Head("x.h5"), std::string(5000, 'x') + "changed" + std::string(3993, 'x'));
}

TEST_F(ComparingTest, AResyncOfNoFileMakesNone) {
  Start();
  v1::SessionOpened opened;
  Open("x.h5", v1::INTENT_RESYNC, &opened);
  EXPECT_EQ(opened.relation(), v1::RELATION_DIVERGED);
  EXPECT_THAT(opened.state(), HasSubstr("no such file"));
  EXPECT_TRUE(absl::IsNotFound(Settled("x.h5").status()));
}

TEST_F(ComparingTest, ChecksAreKeptWithTheFile) {
  Start();
  MirrorWhole("x.h5", std::string(10'000, 'x'));
  EXPECT_FALSE(Settled("x.h5")->has_last_check());
  v1::RecordCheckRequest request;
  request.set_name("x.h5");
  request.set_version(1);
  const auto check = client_->RecordCheck(request);
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_TRUE(check->has_equal_time());
  request.set_differing_bytes(4096);
  ASSERT_TRUE(client_->RecordCheck(request).ok());
  EXPECT_EQ(Settled("x.h5")->last_check().differing_bytes(), 4096);
  EXPECT_TRUE(Settled("x.h5")->last_check().has_equal_time());
  request.set_differing_bytes(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(client_->RecordCheck(request).status()));
  request.set_differing_bytes(0);
  request.set_version(2);
  EXPECT_TRUE(absl::IsInvalidArgument(client_->RecordCheck(request).status()));
  request.set_name("y.h5");
  EXPECT_TRUE(absl::IsNotFound(client_->RecordCheck(request).status()));
}

}  // namespace
}  // namespace h5mirror::server
