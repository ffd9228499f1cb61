#include "archive/sha256.h"

#include "absl/strings/escaping.h"
#include "archive/s3_signature.h"
#include "gtest/gtest.h"

namespace h5mirror::archive {
namespace {

// FIPS 180-4 has these as examples.
TEST(Sha256Test, OfNothingAndOfABC) {
  EXPECT_EQ(Sha256Hex(""), kEmptySha256);
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256Test, PiecesMakeTheWhole) {
  Sha256 sha;
  for (const char* piece : {"a", "", "b", "c"}) sha.Update(piece);
  EXPECT_EQ(sha.HexDigest(), Sha256Hex("abc"));
}

// RFC 4231, test case 2.
TEST(Sha256Test, Hmac) {
  EXPECT_EQ(absl::BytesToHexString(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

}  // namespace
}  // namespace h5mirror::archive
