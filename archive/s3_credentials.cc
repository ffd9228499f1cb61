#include "archive/s3_credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::archive {
namespace {

constexpr size_t kFileBytesMax = 64 << 10;

// Whether a header may hold the key.
bool IsGoodKey(std::string_view key) {
  return std::all_of(key.begin(), key.end(),
                     [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); });
}

absl::Status CheckIsSecret(int fd, const std::string& file) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return ErrnoToStatus(errno, StrCat("stat ", file));
  if (!S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(StrCat(file, " is no regular file"));
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return absl::PermissionDeniedError(
        StrCat(file, " belongs to another user: chown it to the one that this process runs as"));
  }
  if ((info.st_mode & 0077) != 0) {
    return absl::PermissionDeniedError(
        StrCat(file, " can be read or written by others: chmod 600 ", file));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadSecret(const std::string& file) {
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // No wait for a FIFO.
  if (fd < 0) return ErrnoToStatus(errno, StrCat("open ", file));
  const absl::Cleanup closer = [fd] { close(fd); };
  H5M_RETURN_IF_ERROR(CheckIsSecret(fd, file));
  std::string text(kFileBytesMax + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(fd, &text[size], text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoToStatus(errno, StrCat("read ", file));
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > kFileBytesMax)
    return absl::InvalidArgumentError(StrCat(file, " has more than 64 KiB"));
  text.resize(size);
  return text;
}

absl::Status CheckComplete(const S3Credentials& credentials, std::string_view source) {
  if (!credentials.access_key.empty() && !credentials.secret_key.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(source, ": [default] has no ",
             credentials.access_key.empty() ? "aws_access_key_id" : "aws_secret_access_key"));
}

// nullptr: a key of another kind.
std::string* FieldOf(S3Credentials& credentials, std::string_view key) {
  if (key == "aws_access_key_id") return &credentials.access_key;
  if (key == "aws_secret_access_key") return &credentials.secret_key;
  if (key == "aws_session_token") return &credentials.session_token;
  return nullptr;
}

absl::StatusOr<std::string> FromEnvironment(const char* name, bool is_needed) {
  const char* const value = getenv(name);
  if (value == nullptr || *value == '\0') {
    if (!is_needed) return std::string();
    return absl::FailedPreconditionError(
        StrCat("an archive in S3 needs keys: name a file of them, or set ", name));
  }
  if (IsGoodKey(value)) return std::string(value);
  return absl::InvalidArgumentError(StrCat(name, " has a character that no key has"));
}

}  // namespace

absl::StatusOr<S3Credentials> ParseS3Credentials(std::string_view text, std::string_view source) {
  S3Credentials credentials;
  bool is_default = false;
  int number = 0;
  for (const absl::string_view raw : absl::StrSplit(ToAbsl(text), '\n')) {
    ++number;
    const std::string_view line = ToStd(absl::StripAsciiWhitespace(raw));
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      is_default = line == "[default]";
      continue;
    }
    if (!is_default) continue;
    const size_t equal = line.find('=');
    const auto part = [&](size_t from, size_t count) {
      return ToStd(absl::StripAsciiWhitespace(ToAbsl(line.substr(from, count))));
    };
    if (equal == std::string_view::npos || !IsGoodKey(part(equal + 1, line.size()))) {
      return absl::InvalidArgumentError(StrCat(source, ":", number, ": want KEY = VALUE"));
    }
    if (std::string* const field = FieldOf(credentials, part(0, equal)); field != nullptr) {
      *field = std::string(part(equal + 1, line.size()));
    }
  }
  H5M_RETURN_IF_ERROR(CheckComplete(credentials, source));
  return credentials;
}

absl::StatusOr<S3Credentials> LoadS3Credentials(const std::string& file) {
  if (!file.empty()) {
    H5M_ASSIGN_OR_RETURN(const std::string text, ReadSecret(file));
    return ParseS3Credentials(text, file);
  }
  S3Credentials credentials;
  H5M_ASSIGN_OR_RETURN(credentials.access_key, FromEnvironment("AWS_ACCESS_KEY_ID", true));
  H5M_ASSIGN_OR_RETURN(credentials.secret_key, FromEnvironment("AWS_SECRET_ACCESS_KEY", true));
  H5M_ASSIGN_OR_RETURN(credentials.session_token, FromEnvironment("AWS_SESSION_TOKEN", false));
  return credentials;
}

}  // namespace h5mirror::archive
