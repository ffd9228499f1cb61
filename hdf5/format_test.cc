#include "hdf5/format.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::hdf5 {
namespace {

using testing::ElementsAre;

// Little-endian integers one after the other, each in `width` bytes.
std::string Ints(size_t width, std::initializer_list<uint64_t> values) {
  std::string bytes;
  for (const uint64_t value : values) {
    for (size_t i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i));
  }
  return bytes;
}

std::string OldHeader(uint32_t messages_bytes) {
  return std::string("\1\0", 2) + Ints(2, {3}) + Ints(4, {1, messages_bytes, 0});
}

TEST(FormatTest, AHeaderOwnsNoMoreThanItsLength) {
  std::string read = OldHeader(256);
  read.resize(512);
  EXPECT_EQ(OwnedBytes(ReadKind::kObjectHeader, 800, read), 16u + 256);
  read = OldHeader(9000);
  read.resize(512);
  EXPECT_EQ(OwnedBytes(ReadKind::kObjectHeader, 800, read), 512u);
  // Signature, version 2, no times, the first chunk's length in one byte.
  read = std::string("OHDR\2\0", 6) + Ints(1, {100});
  read.resize(512);
  EXPECT_EQ(OwnedBytes(ReadKind::kObjectHeader, 48, read), 7u + 100 + 4);
  read[5] = 0x21;
  read.replace(22, 2, Ints(2, {300}));
  EXPECT_EQ(OwnedBytes(ReadKind::kObjectHeader, 48, read), 24u + 300 + 4);
}

TEST(FormatTest, AContinuationIsOwnedWhole) {
  // A dataspace message: type 1, 24 bytes.
  std::string read = Ints(2, {1, 24}) + Ints(4, {0, 0});
  read.resize(512);
  EXPECT_EQ(OwnedBytes(ReadKind::kObjectHeader, 800, read), 512u);
  EXPECT_EQ(OwnedBytes(ReadKind::kOtherMetadata, 800, read), 512u);
  EXPECT_EQ(OwnedBytes(ReadKind::kSuperblock, 0, read), 0u);
}

TEST(FormatTest, ALocalHeapOwnsItsDataWhereItFollows) {
  std::string read = std::string("HEAP\0\0\0\0", 8) + Ints(8, {88, 1, 832});
  read.resize(512);
  EXPECT_EQ(OwnedBytes(ReadKind::kLocalHeap, 800, read), 32u + 88);
  EXPECT_EQ(OwnedBytes(ReadKind::kLocalHeap, 900, read), 32u);
  EXPECT_EQ(ParseLocalHeap(read)->data_address, 832u);
}

TEST(FormatTest, AGlobalHeapHasItsValuesByIndex) {
  const std::string collection = std::string("GCOL\1\0\0\0", 8) + Ints(8, {4096}) +
                                 Ints(2, {1, 1, 0, 0}) + Ints(8, {3}) + "abc\0\0\0\0\0" +
                                 std::string(5, '\0') + Ints(2, {7, 1, 0, 0}) + Ints(8, {2}) +
                                 "xy" + std::string(6, '\0') + Ints(8, {0, 4000});
  ASSERT_TRUE(IsGlobalHeap(collection));
  const auto values = GlobalHeapValues(collection);
  EXPECT_THAT(values, ElementsAre(testing::Pair(1, "abc"), testing::Pair(7, "xy")));
  // What is cut short or says too much ends the list.
  EXPECT_THAT(GlobalHeapValues(collection.substr(0, 45)), ElementsAre(testing::Pair(1, "abc")));
}

TEST(FormatTest, MessagesLeadToTheSymbolTableAndOn) {
  const std::string messages = Ints(2, {0x10, 16}) + Ints(4, {0}) + Ints(8, {5000, 120}) +
                               Ints(2, {0x11, 16}) + Ints(4, {0}) + Ints(8, {136, 680});
  const HeaderMessages found = ParseMessages(messages);
  EXPECT_EQ(found.symbol_table, (SymbolTable{136, 680}));
  EXPECT_THAT(found.continuations, ElementsAre(Extent{5000, 120}));
  EXPECT_FALSE(ParseMessages(messages.substr(0, 40)).symbol_table.has_value());
}

TEST(FormatTest, NodesThatSayMoreThanThereIsAreNone) {
  const std::string tree =
      std::string("TREE\0\1", 6) + Ints(2, {2}) + Ints(8, {~0ull, ~0ull, 0, 900, 8, 1400, 16});
  ASSERT_TRUE(ParseTreeNode(tree).has_value());
  EXPECT_EQ(ParseTreeNode(tree)->level, 1);
  EXPECT_THAT(ParseTreeNode(tree)->children, ElementsAre(900, 1400));
  EXPECT_FALSE(ParseTreeNode(tree.substr(0, 60)).has_value());
  const std::string symbols = std::string("SNOD\1\0", 6) + Ints(2, {2}) + Ints(8, {8, 800}) +
                              Ints(4, {0, 0}) + Ints(8, {0, 0}) + Ints(8, {16, ~0ull}) +
                              Ints(4, {2, 0}) + Ints(8, {0, 0});
  ASSERT_TRUE(ParseSymbols(symbols).has_value());
  EXPECT_EQ(ParseSymbols(symbols)->at(0).address, 800u);
  EXPECT_FALSE(ParseSymbols(symbols)->at(1).is_object);
  EXPECT_FALSE(ParseSymbols(symbols)->at(0).is_group);
  EXPECT_FALSE(ParseSymbols(symbols.substr(0, 80)).has_value());
}

}  // namespace
}  // namespace h5mirror::hdf5
