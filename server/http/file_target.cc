#include "server/http/file_target.h"

#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/store.h"

namespace h5mirror::server {
namespace {

// -1: no hexadecimal digit.
int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

absl::StatusOr<std::string> DecodePercent(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    const bool is_whole = text.size() - i > 2;
    const int high = is_whole ? DigitOf(text[i + 1]) : -1;
    const int low = is_whole ? DigitOf(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return absl::InvalidArgumentError("the path has a % without two hexadecimal digits");
    }
    decoded.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return decoded;
}

absl::StatusOr<FileTarget> ParseFileTarget(std::string_view path) {
  FileTarget target;
  const size_t at = path.rfind('@');
  H5M_ASSIGN_OR_RETURN(target.name, DecodePercent(path.substr(0, at)));
  H5M_RETURN_IF_ERROR(store::CheckName(target.name));
  if (at == std::string_view::npos) return target;
  H5M_ASSIGN_OR_RETURN(const std::string version, DecodePercent(path.substr(at + 1)));
  auto spec = rpc::ParseVersionSpec(version, absl::UTCTimeZone());
  if (!spec.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec.status().message(), "; an @ in a file's name is written %40"));
  }
  target.version = *std::move(spec);
  return target;
}

}  // namespace h5mirror::server
