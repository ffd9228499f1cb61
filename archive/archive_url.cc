#include "archive/archive_url.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "archive/directory_store.h"
#include "base/curl_library.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::archive {
namespace {

constexpr std::string_view kScheme = "s3://";
constexpr std::string_view kDirectoryScheme = "dir:";
constexpr std::string_view kForm =
    "must be a directory, as in dir:/mnt/archive, or "
    "s3://BUCKET/PREFIX?endpoint=URL&region=NAME&credentials=FILE&ca=FILE, of which only the "
    "bucket is needed";

absl::Status Refuse(std::string_view why) {
  return absl::InvalidArgumentError(StrCat(kForm, ": ", why));
}

// S3 wants the form of a host name.
bool IsBucket(std::string_view name) {
  return name.size() >= 3 && name.size() <= 63 && std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_islower(static_cast<unsigned char>(c)) ||
                  absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-' || c == '.';
         });
}

bool IsRegion(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
  });
}

absl::Status Take(std::string_view part, S3Settings* s3, std::string* seen) {
  const size_t equals = part.find('=');
  const std::string_view key = part.substr(0, equals);
  std::string* const field = key == "endpoint"      ? &s3->endpoint
                             : key == "region"      ? &s3->region
                             : key == "credentials" ? &s3->credentials_file
                             : key == "ca"          ? &s3->ca_file
                                                    : nullptr;
  if (field == nullptr) {
    return Refuse(StrCat("\"", key, "\" is not one of endpoint, region, credentials, ca"));
  }
  if (equals == part.npos || equals + 1 == part.size()) {
    return Refuse(StrCat("\"", key, "\" has no value"));
  }
  const std::string mark = StrCat("&", key, "=");
  if (seen->find(mark) != seen->npos) return Refuse(StrCat("\"", key, "\" is there twice"));
  StrAppend(seen, mark);
  *field = part.substr(equals + 1);
  return absl::OkStatus();
}

absl::Status TakeAll(std::string_view query, S3Settings* s3) {
  std::string seen;
  while (true) {
    const size_t end = query.find('&');
    H5M_RETURN_IF_ERROR(Take(query.substr(0, end), s3, &seen));
    if (end == query.npos) return absl::OkStatus();
    query.remove_prefix(end + 1);
  }
}

absl::Status CheckEndpoint(const std::string& endpoint) {
  if (endpoint.empty()) return absl::OkStatus();
  const absl::Status is_url = CheckHttpUrl(endpoint);
  if (!is_url.ok()) return Refuse(StrCat("endpoint ", ToStd(is_url.message())));
  if (HttpOrigin(endpoint) != endpoint) return Refuse("endpoint has a path");
  return absl::OkStatus();
}

absl::Status CheckS3(const S3Settings& s3) {
  if (!IsBucket(s3.bucket)) {
    return Refuse("a bucket has 3 to 63 small letters, digits, '-' and '.'");
  }
  if (!s3.prefix.empty() && !store::CheckObjectName(s3.prefix).ok()) {
    return Refuse("a prefix has letters, digits, '.', '_', '-' and '/'");
  }
  if (!IsRegion(s3.region)) return Refuse("a region has letters, digits, '-' and '_'");
  for (const std::string* file : {&s3.credentials_file, &s3.ca_file}) {
    // A relative path would depend on the server's working directory.
    if (!file->empty() && !file->starts_with("/")) return Refuse(*file + " is no absolute path");
  }
  return CheckEndpoint(s3.endpoint);
}

}  // namespace

absl::StatusOr<ArchiveUrl> ParseArchiveUrl(std::string_view text) {
  if (text.find('\0') != text.npos) return Refuse("it has a NUL byte");
  ArchiveUrl url;
  if (text.starts_with(kDirectoryScheme)) {
    text.remove_prefix(kDirectoryScheme.size());
    if (!text.starts_with("/")) return Refuse("the path of a directory is absolute");
    url.directory = std::string(text);
    return url;
  }
  if (!text.starts_with(kScheme)) return Refuse("it begins neither with dir: nor with s3://");
  text.remove_prefix(kScheme.size());
  const size_t question = text.find('?');
  std::string_view place = text.substr(0, question);
  if (place.ends_with('/')) place.remove_suffix(1);
  const size_t slash = place.find('/');
  url.s3.bucket = std::string(place.substr(0, slash));
  if (slash != place.npos) url.s3.prefix = std::string(place.substr(slash + 1));
  if (question != text.npos) H5M_RETURN_IF_ERROR(TakeAll(text.substr(question + 1), &url.s3));
  H5M_RETURN_IF_ERROR(CheckS3(url.s3));
  return url;
}

absl::StatusOr<std::unique_ptr<store::ObjectStore>> OpenArchive(Env& env, std::string_view text) {
  H5M_ASSIGN_OR_RETURN(ArchiveUrl url, ParseArchiveUrl(text));
  std::unique_ptr<store::ObjectStore> opened;
  if (url.directory.empty()) {
    H5M_ASSIGN_OR_RETURN(opened, S3Store::Open(std::move(url.s3)));
  } else {
    H5M_ASSIGN_OR_RETURN(opened, DirectoryStore::Open(env, url.directory));
  }
  return opened;
}

}  // namespace h5mirror::archive
