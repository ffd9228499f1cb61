#include "client_vfd/session/child_writes.h"

#include "base/random.h"
#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

TEST(WriteWatchTest, AWriteEndsTheCutsState) {
  WriteWatch watch(RandomBytes16());
  EXPECT_FALSE(watch.is_at_cut()) << "there was none";
  watch.OnCut();
  EXPECT_TRUE(watch.is_at_cut());
  watch.OnWrite();
  EXPECT_FALSE(watch.is_at_cut());
}

TEST(WriteWatchTest, SoDoesAChildsWrite) {
  const Bytes16 session_id = RandomBytes16();
  WriteWatch watch(session_id);
  watch.OnCut();
  NoteChildWrite(session_id);
  EXPECT_FALSE(watch.is_at_cut());
  EXPECT_TRUE(watch.TakeChildWrites());
  EXPECT_FALSE(watch.TakeChildWrites()) << "once";
  EXPECT_TRUE(watch.is_at_cut());
}

TEST(WriteWatchTest, WritesBeforeItBeginsAreNotItsOwn) {
  const Bytes16 session_id = RandomBytes16();
  NoteChildWrite(session_id);
  WriteWatch watch(session_id);
  EXPECT_FALSE(watch.TakeChildWrites());
}

}  // namespace
}  // namespace h5mirror::vfd
