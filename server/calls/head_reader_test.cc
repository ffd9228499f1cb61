#include "server/calls/head_reader.h"

#include "gtest/gtest.h"

namespace h5mirror::server {
namespace {

Principal Anna(Principal::Issuer issuer) {
  Principal anna{"anna", Rights::All(), issuer};
  anna.uid = 1001;
  return anna;
}

TEST(HeadReaderTest, AUserOfThisHostReadsItsHead) {
  EXPECT_EQ(HeadReaderOf(Anna(Principal::Issuer::kUnix), Rights::All()), 1001u);
}

TEST(HeadReaderTest, WhoeverTheKernelHasNotNamedDoesNot) {
  using Issuer = Principal::Issuer;
  for (const Issuer issuer :
       {Issuer::kNone, Issuer::kToken, Issuer::kCertificate, Issuer::kJwt, Issuer::kMunge}) {
    EXPECT_EQ(HeadReaderOf(Anna(issuer), Rights::All()), std::nullopt) << IssuerName(issuer);
  }
}

TEST(HeadReaderTest, AUserWithoutTheRightToReadDoesNot) {
  Rights rights;
  rights.Add(Right::kWrite);
  EXPECT_EQ(HeadReaderOf(Anna(Principal::Issuer::kUnix), rights), std::nullopt);
}

}  // namespace
}  // namespace h5mirror::server
