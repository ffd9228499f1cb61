#include "client_vfd/plugin/parallel/rank_notes.h"

#include <cstring>

#include "client_vfd/plugin/parallel/mpi_constants.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

RankNotes SomeNotes() {
  RankNotes notes;
  notes.raw = {{0, 4096}, {8192, 16384}};
  notes.metadata = {{4096, 8192}};
  return notes;
}

TEST(RankNotesTest, ComeAsTheyWent) {
  for (const bool flag : {false, true}) {
    RankNotes notes = SomeNotes();
    notes.has_failed = flag;
    notes.is_incomplete = !flag;
    const auto read = NotesFromBytes(ToBytes(notes));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->raw, notes.raw);
    EXPECT_EQ(read->metadata, notes.metadata);
    EXPECT_EQ(read->has_failed, flag);
    EXPECT_EQ(read->is_incomplete, !flag);
    EXPECT_TRUE(read->HasChanges());
  }
  const auto none = NotesFromBytes(ToBytes(RankNotes()));
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->HasChanges());
}

TEST(RankNotesTest, OtherBytesAreRefused) {
  const std::string whole = ToBytes(SomeNotes());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(NotesFromBytes(whole.substr(0, size))) << size;
  }
  std::string many = whole;
  const uint64_t huge = ~uint64_t{0} / 2;
  std::memcpy(many.data() + sizeof huge, &huge, sizeof huge);  // the number of runs
  EXPECT_FALSE(NotesFromBytes(many));
  std::string backwards = whole;
  std::memcpy(backwards.data() + 3 * sizeof huge, &huge, sizeof huge);  // an offset beyond its end
  EXPECT_FALSE(NotesFromBytes(backwards));
}

TEST(MpichConstantsTest, AreThoseOfMpichAndItsRelativesOnly) {
  for (const char* version : {"MPICH Version:\t4.0.2", "MVAPICH2 Version 2.3.7",
                              "Intel(R) MPI Library 2021.11", "CRAY MPICH version 8.1.25"}) {
    EXPECT_EQ(MpichConstants(version), (MpiConstants{0x4c00010d, 0x04000000})) << version;
  }
  for (const char* version : {"", "Open MPI v4.1.4", "Some MPI"}) {
    EXPECT_FALSE(MpichConstants(version)) << version;
  }
}

}  // namespace
}  // namespace h5mirror::vfd
