// A copy of a large head that was broken off goes on from where it stopped.
#include <algorithm>
#include <memory>

#include "onion_store/pages/archived_copy.h"
#include "onion_store/restore_root.h"
#include "onion_store/testing/archive_fixture.h"

namespace h5mirror::store {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::SizeIs;

constexpr ArchiveRequest kCopy{SealSegment::kNo, UINT64_MAX, ArchiveCopy::kKeep};
constexpr uint64_t kParts = 4;

class ArchiveBegunTest : public ArchiveFixture {
 protected:
  ArchiveBegunTest() {
    Writer writer(file_, SessionStart::kNewGeneration);
    Must(writer.Write(0, Bytes(kParts * kPartDataBytesMax - 5 * kPage)));
    Commit(writer);
  }
  ~ArchiveBegunTest() override {
    file_.reset();
    store_.reset();
  }
  void Commit(Writer& writer) {
    const auto cut = writer.CutDurably(BarrierKind::kCommit);
    Must(cut.status());
    golden_[cut->version] = writer.content();
    Must(writer.End());
    Must(file_->WaitApplied(absl::Seconds(60)));
  }
  void Change(uint64_t offset) {
    Writer writer(file_, SessionStart::kContinue, golden_.rbegin()->second);
    Must(writer.Write(offset, Bytes(kPage)));
    Commit(writer);
  }
  // Makes a copy, and breaks it off once it has noted `parts` parts; 0: with the first part.
  void BreakOffAfter(int parts) {
    auto job = StartJob(kCopy);
    const std::string_view kind = parts == 0 ? "-data-" : "-begun-";
    int left = std::max(parts, 1);
    archive_->SetOnCall([&](const std::string& call) {
      if (!call.starts_with("put ") || call.find(kind) == call.npos || --left > 0) return;
      archive_->FailCalls(1000, absl::UnavailableError("away"));
    });
    const absl::Status broken = Finish(*job).status();
    EXPECT_TRUE(absl::IsUnavailable(broken)) << broken;
    archive_->SetOnCall(nullptr);
    archive_->FailCalls(0, absl::OkStatus());
  }
  int PutsOf(const ArchiveRequest& request, VersionNumber version) {
    const int before = archive_->CountCalls("put");
    EXPECT_EQ(Archive(request).copied_version, version);
    return archive_->CountCalls("put") - before;
  }
  std::vector<std::string> Names(std::string_view part) {
    std::vector<std::string> names = archive_->names();
    std::erase_if(names, [&](const auto& name) { return name.find(part) == name.npos; });
    return names;
  }
  void ExpectRestored() {
    FaultEnv fresh;
    auto files = ListRestorable(*archive_);
    Must(files.status());
    ASSERT_THAT(*files, SizeIs(1));
    auto restore = RootRestore::Begin(fresh, "/", "0123456789abcdef0123456789abcdef");
    Must(restore.status());
    Must((*restore)->Restore(*archive_, {}, &files->front()).status());
    Must((*restore)->End());
    restore->reset();
    const auto store = OpenStore(fresh, "/");
    const auto file = *store->OpenFile("x.h5");
    for (const auto& [version, bytes] : golden_) {
      EXPECT_TRUE(ReadVersion(*file, version) == bytes) << version;
    }
  }
};

TEST_F(ArchiveBegunTest, ItGoesOnBehindThePartsThatAreThere) {
  BreakOffAfter(2);
  EXPECT_THAT(Names("-begun-"), Not(IsEmpty()));
  const auto there = Names("-data-");
  ASSERT_THAT(there, SizeIs(2));
  // A later job deletes parts that no note names.
  const std::string more = there[1].substr(0, there[1].size() - 1) + "9";
  ASSERT_TRUE(archive_->Put(more, *std::make_unique<TextSource>("?"), absl::Seconds(1)).ok());
  // Two parts, with a note after the first; the index and the list.
  EXPECT_EQ(PutsOf(kCopy, 1), 5);
  EXPECT_THAT(Names("-begun-"), IsEmpty());
  EXPECT_THAT(Names("-data-"), IsSupersetOf(there));
  EXPECT_THAT(Names("-data-"), Not(Contains(more)));
  ExpectRestored();
  EXPECT_EQ(PutsOf(kCopy, 0), 0);
  Change(5 * kPage);
  EXPECT_EQ(Archive(kCopy).copied_version, 2);
  ExpectRestored();
}

TEST_F(ArchiveBegunTest, WhatChangedMeanwhileComesOnTop) {
  BreakOffAfter(2);
  Change(3 * kPage);
  Change(3 * kPartDataBytesMax);
  BreakOffAfter(1);
  EXPECT_EQ(Archive(kCopy).copied_version, 3);
  EXPECT_THAT(Names("-begun-"), IsEmpty());
  ExpectRestored();
}

TEST_F(ArchiveBegunTest, ItBeginsAnewWhereItsVersionWasDropped) {
  BreakOffAfter(2);
  Change(3 * kPage);
  Prune({1});
  const auto there = Names("-data-");
  EXPECT_EQ(Archive(kCopy).copied_version, 2);
  for (const std::string& part : there) EXPECT_THAT(Names(part), IsEmpty());
  EXPECT_THAT(Names("-begun-"), IsEmpty());
  ExpectRestored();
}

TEST_F(ArchiveBegunTest, ItBeginsAnewWhereAPartOrItsNoteIsNotWhatItWas) {
  for (const bool loses_part : {true, false}) {
    BreakOffAfter(2);
    const auto there = Names("-data-");
    ASSERT_THAT(there, SizeIs(2));
    if (loses_part) {
      archive_->Lose(there[0]);
    } else {
      archive_->Change(Names("-begun-").back(), [](std::string* bytes) { bytes->back() ^= 1; });
    }
    BreakOffAfter(0);
    EXPECT_THAT(Names("-data-"), SizeIs(1));
    EXPECT_THAT(there, Not(Contains(Names("-data-").at(0))));
    EXPECT_THAT(Names("-begun-"), IsEmpty());
  }
  EXPECT_EQ(Archive(kCopy).copied_version, 1);
  ExpectRestored();
}

// Even after a head that has more parts than the next one.
TEST_F(ArchiveBegunTest, EachHeadIsNoted) {
  {
    Writer writer(file_, SessionStart::kNewGeneration);
    Must(writer.Write(0, Bytes(3 * kPartDataBytesMax - 5 * kPage)));
    Commit(writer);
  }
  // Notes of the first head: after one, two and three parts, and when it is whole.
  BreakOffAfter(4);
  EXPECT_THAT(Names("-data-"), SizeIs(kParts));
  // The first part of the second head, and the second.
  BreakOffAfter(2);
  EXPECT_THAT(Names("-data-"), SizeIs(kParts + 2));
  const auto there = Names("-data-");
  // Its last part, the index and the list.
  EXPECT_EQ(PutsOf(kCopy, 2), 3);
  EXPECT_THAT(Names("-data-"), IsSupersetOf(there));
  ExpectRestored();
}

// Else its parts would stay until the next copy is whole.
TEST_F(ArchiveBegunTest, ANoteOfADroppedVersionGivesItsPartsUpAtOnce) {
  BreakOffAfter(3);
  Change(3 * kPage);
  Prune({1});
  const auto there = Names("-data-");
  BreakOffAfter(0);
  for (const std::string& part : there) EXPECT_THAT(Names(part), IsEmpty());
}

// Else a late deletion could remove a part that the next owner of the cell relies on.
TEST_F(ArchiveBegunTest, WhatNamesPartsGoesBeforeThem) {
  BreakOffAfter(2);
  Change(3 * kPage);
  Prune({1});
  std::vector<std::string> deleted;
  archive_->SetOnCall([&](const std::string& call) {
    if (call.starts_with("delete ")) deleted.push_back(call);
  });
  Archive(kCopy);
  archive_->SetOnCall(nullptr);
  const auto kind = [&](std::string_view part) {
    return std::find_if(deleted.begin(), deleted.end(),
                        [&](const auto& call) { return call.find(part) != call.npos; });
  };
  ASSERT_NE(kind("-begun-"), deleted.end());
  EXPECT_LT(kind("-begun-") - deleted.begin(), kind("-data-") - deleted.begin());
}

TEST(BegunCopyFormatTest, WhatCannotBeIsRefused) {
  BegunCopy begun;
  begun.file_id[0] = 7;
  CopyLayer layer;
  layer.prefix = NewCopyPrefix(begun.file_id, 5);
  layer.parts = {{100, 1}};
  begun.heads = {{1, 1, 1, 100, {layer}}};
  begun.done_bytes = 50;
  const std::string object = EncodeBegunCopy(begun);
  EXPECT_EQ(*DecodeBegunCopy(begun.file_id, object), begun);
  EXPECT_TRUE(absl::IsDataLoss(DecodeBegunCopy({}, object).status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeCopyList(layer.prefix, object).status()));
  for (size_t at = 0; at < object.size(); at += 7) {
    std::string wrong = object;
    wrong[at] ^= 1;
    EXPECT_TRUE(absl::IsDataLoss(DecodeBegunCopy(begun.file_id, wrong).status())) << at;
  }
  EXPECT_TRUE(IsBegunCopyName(BegunCopyName(layer.prefix, 3)));
  EXPECT_FALSE(IsBegunCopyName(CopyListName(layer.prefix)));
}

}  // namespace
}  // namespace h5mirror::store
