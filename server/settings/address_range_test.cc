#include "server/settings/address_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;

std::array<uint8_t, 16> Address(const char* text) { return AddressRange::Parse(text)->address; }

TEST(AddressRangeTest, RangesHaveTheirAddressesAlone) {
  const AddressRange v4 = *AddressRange::Parse("192.0.2.128/25");
  EXPECT_TRUE(v4.Contains(Address("192.0.2.128")));
  EXPECT_TRUE(v4.Contains(Address("192.0.2.255")));
  EXPECT_FALSE(v4.Contains(Address("192.0.2.127")));
  EXPECT_FALSE(v4.Contains(Address("192.0.3.128")));
  EXPECT_FALSE(v4.Contains(Address("2001:db8::1")));
  EXPECT_TRUE(AddressRange::Parse("0.0.0.0/0")->Contains(Address("8.8.8.8")));
  EXPECT_FALSE(AddressRange::Parse("0.0.0.0/0")->Contains(Address("::1")));
  EXPECT_TRUE(AddressRange::Parse("::/0")->Contains(Address("8.8.8.8")));
  const AddressRange v6 = *AddressRange::Parse("2001:db8::/33");
  EXPECT_TRUE(v6.Contains(Address("2001:db8:7fff::1")));
  EXPECT_FALSE(v6.Contains(Address("2001:db8:8000::1")));
  EXPECT_FALSE(AddressRange::Parse("192.0.2.7")->Contains(Address("192.0.2.6")));
}

TEST(AddressRangeTest, TextsComeBack) {
  for (const char* text :
       {"192.0.2.7", "192.0.2.0/24", "0.0.0.0/0", "2001:db8::/32", "::1", "::/0"}) {
    EXPECT_EQ(AddressRange::Parse(text)->ToString(), text);
  }
}

TEST(AddressRangeTest, ErrorsQuoteTheText) {
  const auto error = [](const char* text) {
    return std::string(AddressRange::Parse(text).status().message());
  };
  EXPECT_THAT(error(""), HasSubstr("is no address or range"));
  EXPECT_THAT(error("lab7"), HasSubstr("\"lab7\""));
  EXPECT_THAT(error("192.0.2.0/33"), HasSubstr("0..32"));
  EXPECT_THAT(error("192.0.2.0/"), HasSubstr("0..32"));
  EXPECT_THAT(error("192.0.2.0/-1"), HasSubstr("0..32"));
  EXPECT_THAT(error("2001:db8::/129"), HasSubstr("0..128"));
  EXPECT_THAT(error("192.0.2.7/24"), HasSubstr("is within 192.0.2.0/24"));
}

}  // namespace
}  // namespace h5mirror::server
