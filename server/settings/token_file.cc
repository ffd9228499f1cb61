#include "server/settings/token_file.h"

#include <sys/stat.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/errno_status.h"
#include "base/glob.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "openssl/evp.h"
#include "server/settings/secret_file.h"

namespace h5mirror::server {
namespace {

std::string HexOfBytes(std::string_view bytes) { return absl::BytesToHexString(ToAbsl(bytes)); }

absl::Status CheckTokenName(std::string_view name) {
  const bool good =
      !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' ||
               c == '@' || c == '-';
      });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("token name \"", name, "\": 1 to 64 of letters, digits and . _ @ -"));
}

absl::StatusOr<Sha256Digest> ParseDigest(std::string_view hex) {
  const bool good = hex.size() == 64 && std::all_of(hex.begin(), hex.end(), [](char c) {
                      return absl::ascii_isxdigit(static_cast<unsigned char>(c));
                    });
  if (!good) {
    return absl::InvalidArgumentError(StrCat("\"", hex, "\" is not a SHA-256 (64 hex digits)"));
  }
  const std::string bytes = absl::HexStringToBytes(ToAbsl(hex));
  Sha256Digest digest;
  std::copy(bytes.begin(), bytes.end(), digest.begin());
  return digest;
}

absl::StatusOr<TokenEntry> ParseLine(absl::string_view line) {
  const std::vector<std::string> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.size() < 3)
    return absl::InvalidArgumentError("a line is NAME RIGHTS SHA256 [LIMIT...]");
  TokenEntry entry;
  H5M_RETURN_IF_ERROR(CheckTokenName(words[0]));
  entry.name = words[0];
  H5M_ASSIGN_OR_RETURN(entry.rights, Rights::Parse(words[1]));
  H5M_ASSIGN_OR_RETURN(entry.digest, ParseDigest(words[2]));
  for (size_t i = 3; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const std::string text = equals == std::string::npos ? "" : words[i].substr(equals + 1);
    H5M_RETURN_IF_ERROR(entry.limits.Set(words[i].substr(0, equals), text));
  }
  return entry;
}

absl::Status NoToken(const std::filesystem::path& path, std::string_view name) {
  return absl::NotFoundError(StrCat(path.string(), " has no token \"", name, "\""));
}

auto FindByName(std::vector<TokenEntry>& entries, std::string_view name) {
  return std::find_if(entries.begin(), entries.end(),
                      [name](const TokenEntry& entry) { return entry.name == name; });
}

}  // namespace

absl::Status TokenLimits::Set(std::string_view key, std::string_view text) {
  if (key == "expires") {
    std::string error;
    if (absl::ParseTime(absl::RFC3339_full, ToAbsl(text), &expires, &error)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        StrCat("expires=", text, ": is no time, as in 2027-02-24T00:00:00Z"));
  }
  if (key != "files" && key != "from") {
    return absl::InvalidArgumentError(
        StrCat("\"", key, "\": behind the digest stand files=, expires= or from="));
  }
  for (absl::string_view word : absl::StrSplit(ToAbsl(text), ',')) {
    if (key == "from") {
      H5M_ASSIGN_OR_RETURN(const AddressRange range, AddressRange::Parse(ToStd(word)));
      from.push_back(range);
      continue;
    }
    H5M_RETURN_IF_ERROR(CheckGlob(ToStd(word)));
    if (word.find_first_of(" \t\r\n#") != absl::string_view::npos) {
      return absl::InvalidArgumentError(
          StrCat("files=", text, ": a glob of a token has no spaces and no '#'; '?' matches one"));
    }
    files.emplace_back(word);
  }
  return absl::OkStatus();
}

std::string TokenLimits::ToString() const {
  std::string text;
  if (!files.empty()) StrAppend(&text, " files=", absl::StrJoin(files, ","));
  if (expires != absl::InfiniteFuture()) {
    StrAppend(&text,
              " expires=", absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", expires, absl::UTCTimeZone()));
  }
  const auto add = [](std::string* out, const AddressRange& range) {
    out->append(range.ToString());
  };
  if (!from.empty()) StrAppend(&text, " from=", absl::StrJoin(from, ",", add));
  return text;
}

Sha256Digest Sha256(std::string_view text) {
  Sha256Digest digest;
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  return digest;
}

std::string MakeToken() { return StrCat("h5m_", HexOf(RandomBytes16()), HexOf(RandomBytes16())); }

absl::StatusOr<std::vector<TokenEntry>> ParseTokens(std::string_view text,
                                                    std::string_view source) {
  std::vector<TokenEntry> entries;
  int line_number = 0;
  for (absl::string_view line : absl::StrSplit(ToAbsl(text), '\n')) {
    ++line_number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    auto entry = ParseLine(line);
    if (entry.ok() && FindByName(entries, entry->name) != entries.end()) {
      entry = absl::InvalidArgumentError(StrCat("token name \"", entry->name, "\" is there twice"));
    }
    if (!entry.ok()) {
      return absl::InvalidArgumentError(
          StrCat(source, ":", line_number, ": ", entry.status().message()));
    }
    entries.push_back(*std::move(entry));
  }
  return entries;
}

absl::StatusOr<std::vector<TokenEntry>> ReadTokenFile(const std::filesystem::path& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    return ErrnoToStatus(errno, StrCat("tokens_file ", path.string(),
                                       errno == ENOENT ? " (h5mirrord token add makes it)" : ""));
  }
  if ((info.st_mode & 0022) != 0) {
    return absl::PermissionDeniedError(StrCat(
        "tokens_file ", path.string(), " can be written by others: chmod 600 ", path.string()));
  }
  H5M_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path));
  return ParseTokens(text, path.string());
}

absl::Status WriteTokenFile(const std::filesystem::path& path,
                            const std::vector<TokenEntry>& entries) {
  std::string text =
      "# NAME RIGHTS SHA256 [LIMIT...], kept by `h5mirrord token`. SIGHUP makes a server read "
      "it.\n";
  for (const TokenEntry& entry : entries) {
    const std::string_view digest(reinterpret_cast<const char*>(entry.digest.data()),
                                  entry.digest.size());
    StrAppend(&text, entry.name, " ", entry.rights.ToString(), " ", HexOfBytes(digest),
              entry.limits.ToString(), "\n");
  }
  return ReplaceSecretFile(path, text);
}

absl::StatusOr<std::string> AddToken(const std::filesystem::path& path, std::string_view name,
                                     Rights rights, TokenLimits limits) {
  H5M_RETURN_IF_ERROR(CheckTokenName(name));
  auto entries = ReadTokenFile(path);
  if (absl::IsNotFound(entries.status())) entries = std::vector<TokenEntry>();
  H5M_RETURN_IF_ERROR(entries.status());
  if (FindByName(*entries, name) != entries->end()) {
    return absl::AlreadyExistsError(StrCat(path.string(), " has a token \"", name,
                                           "\": remove it first, or take another name"));
  }
  const std::string token = MakeToken();
  entries->push_back({std::string(name), rights, Sha256(token), std::move(limits)});
  H5M_RETURN_IF_ERROR(WriteTokenFile(path, *entries));
  return token;
}

absl::StatusOr<std::string> RotateToken(const std::filesystem::path& path, std::string_view name) {
  H5M_ASSIGN_OR_RETURN(std::vector<TokenEntry> entries, ReadTokenFile(path));
  const auto entry = FindByName(entries, name);
  if (entry == entries.end()) return NoToken(path, name);
  const std::string token = MakeToken();
  entry->digest = Sha256(token);
  H5M_RETURN_IF_ERROR(WriteTokenFile(path, entries));
  return token;
}

absl::Status RemoveToken(const std::filesystem::path& path, std::string_view name) {
  H5M_ASSIGN_OR_RETURN(std::vector<TokenEntry> entries, ReadTokenFile(path));
  const auto entry = FindByName(entries, name);
  if (entry == entries.end()) return NoToken(path, name);
  entries.erase(entry);
  return WriteTokenFile(path, entries);
}

}  // namespace h5mirror::server
