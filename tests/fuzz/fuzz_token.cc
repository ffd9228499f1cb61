// A signed token with no valid signature, as a whole ('t' in front) or by header, claims and
// signature on lines ('p'): none is accepted. Else a set of keys.
#include <sys/stat.h>

#include <array>
#include <fstream>
#include <string>

#include "absl/strings/escaping.h"
#include "base/strings.h"
#include "server/door/json_web_tokens.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/text_file.h"

namespace h5mirror::server {
namespace {

// The generator of the curve: a public key whose secret is 1, which no corpus signs with.
constexpr char kKeys[] =
    R"({"keys": [{"kty": "EC", "kid": "e", "crv": "P-256",
        "x": "axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY",
        "y": "T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"}]})";

std::unique_ptr<JsonWebTokens> MakeTokens() {
  const TextFile file(kKeys);
  FuzzCheck(chmod(file.path().c_str(), 0600) == 0);
  auto tokens = JsonWebTokens::Load({.keys = file.path(), .issuer = "https://i", .audience = "a"});
  FuzzCheck(tokens.ok());
  return *std::move(tokens);
}

std::string Encoded(std::string_view text) { return absl::WebSafeBase64Escape(ToAbsl(text)); }

void Show(std::string_view token) {
  static const auto* const tokens = MakeTokens().release();
  const auto found = tokens->Find(token);
  FuzzCheck(absl::IsUnauthenticated(found.status()));
}

void ShowParts(std::string_view rest) {
  std::array<std::string_view, 3> parts;
  for (std::string_view& part : parts) {
    part = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  }
  Show(StrCat(Encoded(parts[0]), ".", Encoded(parts[1]), ".", Encoded(parts[2])));
}

void Parse(std::string_view text) {
  const auto set = ParseJsonWebKeys(text, "keys");
  if (!set.ok()) return FuzzCheck(absl::IsInvalidArgument(set.status()));
  for (const JsonWebKey& key : set->keys) {
    FuzzCheck(key.key != nullptr && !key.Fits("none") && !key.Fits("HS256"));
  }
}

}  // namespace
}  // namespace h5mirror::server

int h5mirror::LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  h5mirror::FuzzInput input(data, size);
  switch (input.Take<char>()) {
    case 't':
      h5mirror::server::Show(input.rest());
      break;
    case 'p':
      h5mirror::server::ShowParts(input.rest());
      break;
    default:
      h5mirror::server::Parse(input.rest());
  }
  return 0;
}
