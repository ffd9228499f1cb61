#include "archive/s3_signature.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "archive/sha256.h"
#include "base/strings.h"

namespace h5mirror::archive {
namespace {

constexpr char kAlgorithm[] = "AWS4-HMAC-SHA256";

std::string QueryOf(const S3Request& request) {
  std::string query;
  for (const auto& [key, value] : request.query) {  // The map is sorted, as the signature demands.
    StrAppend(&query, query.empty() ? "" : "&", UriEncode(key), "=", UriEncode(value));
  }
  return query;
}

std::string PathOf(const S3Request& request) { return UriEncode(request.path, "/"); }

// The headers that are signed, with the host.
std::map<std::string, std::string> AllHeaders(const S3Request& request,
                                              const S3Credentials& credentials,
                                              const std::string& time) {
  std::map<std::string, std::string> headers = request.headers;
  headers["host"] = request.host;
  headers["x-amz-date"] = time;
  headers["x-amz-content-sha256"] = request.body_sha256;
  if (!credentials.session_token.empty()) {
    headers["x-amz-security-token"] = credentials.session_token;
  }
  return headers;
}

std::string SigningKey(std::string_view secret, std::string_view day, std::string_view region) {
  std::string key = HmacSha256(StrCat("AWS4", secret), day);
  for (const std::string_view part :
       {region, std::string_view("s3"), std::string_view("aws4_request")}) {
    key = HmacSha256(key, part);
  }
  return key;
}

}  // namespace

std::string UriEncode(std::string_view text, std::string_view kept) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || std::string_view("-._~").find(c) != std::string_view::npos ||
        kept.find(c) != std::string_view::npos) {
      encoded.push_back(c);
    } else {
      encoded.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return encoded;
}

std::string TargetOf(const S3Request& request) {
  const std::string query = QueryOf(request);
  return StrCat(PathOf(request), query.empty() ? "" : "?", query);
}

std::vector<std::string> SignedHeaders(const S3Request& request, const S3Credentials& credentials,
                                       std::string_view region, absl::Time now) {
  const std::string time = absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone());
  const std::string day = time.substr(0, 8);
  const auto headers = AllHeaders(request, credentials, time);
  std::string canonical =
      StrCat(request.method, "\n", PathOf(request), "\n", QueryOf(request), "\n");
  std::vector<std::string> names;
  for (const auto& [name, value] : headers) {
    StrAppend(&canonical, name, ":", value, "\n");
    names.push_back(name);
  }
  const std::string signed_names = absl::StrJoin(names, ";");
  StrAppend(&canonical, "\n", signed_names, "\n", request.body_sha256);
  const std::string scope = StrCat(day, "/", region, "/s3/aws4_request");
  const std::string text = StrCat(kAlgorithm, "\n", time, "\n", scope, "\n", Sha256Hex(canonical));
  const std::string signature =
      absl::BytesToHexString(HmacSha256(SigningKey(credentials.secret_key, day, region), text));

  std::vector<std::string> lines{StrCat("Authorization: ", kAlgorithm,
                                        " Credential=", credentials.access_key, "/", scope,
                                        ",SignedHeaders=", signed_names, ",Signature=", signature)};
  for (const auto& [name, value] : headers) {
    if (name != "host") lines.push_back(StrCat(name, ": ", value));
  }
  return lines;
}

}  // namespace h5mirror::archive
