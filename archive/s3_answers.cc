#include "archive/s3_answers.h"

#include <expat.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace h5mirror::archive {
namespace {

constexpr size_t kDepthMax = 16;
constexpr size_t kMessageBytesMax = 200;

// Goes through a document. At the end of each element `on_end` gets its path, as "Error/Code", and
// its text. Names lose their name space.
class Walk {
 public:
  using OnEnd = std::function<void(const std::string& path, const std::string& text)>;

  // kDataLoss: the document is not well-formed, or too deep, or has a document type.
  static absl::Status Run(std::string_view xml, OnEnd on_end) {
    Walk walk(std::move(on_end));
    const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(
        XML_ParserCreate(nullptr), &XML_ParserFree);
    if (parser == nullptr) return absl::ResourceExhaustedError("no memory for an XML parser");
    walk.parser_ = parser.get();
    XML_SetUserData(walk.parser_, &walk);
    XML_SetElementHandler(walk.parser_, Begin, End);
    XML_SetCharacterDataHandler(walk.parser_, Text);
    // No answer has a document type; it could define entities.
    XML_SetStartDoctypeDeclHandler(walk.parser_, Refuse);
    const auto status = XML_Parse(walk.parser_, xml.data(), static_cast<int>(xml.size()), XML_TRUE);
    if (status == XML_STATUS_OK) return absl::OkStatus();
    return absl::DataLossError(StrCat("the answer is no XML that is expected: ",
                                      XML_ErrorString(XML_GetErrorCode(walk.parser_))));
  }

 private:
  explicit Walk(OnEnd on_end) : on_end_(std::move(on_end)) {}

  static void Begin(void* self, const XML_Char* name, const XML_Char**) {
    auto& walk = *static_cast<Walk*>(self);
    const std::string_view whole = name;
    const size_t colon = whole.rfind(':');
    walk.ends_.push_back(walk.path_.size());
    StrAppend(&walk.path_, walk.path_.empty() ? "" : "/",
              colon == std::string_view::npos ? whole : whole.substr(colon + 1));
    walk.text_.clear();
    if (walk.ends_.size() > kDepthMax) XML_StopParser(walk.parser_, XML_FALSE);
  }
  static void End(void* self, const XML_Char*) {
    auto& walk = *static_cast<Walk*>(self);
    walk.on_end_(walk.path_, walk.text_);
    walk.path_.resize(walk.ends_.back());
    walk.ends_.pop_back();
    walk.text_.clear();
  }
  static void Text(void* self, const XML_Char* text, int size) {
    static_cast<Walk*>(self)->text_.append(text, static_cast<size_t>(size));
  }
  static void Refuse(void* self, const XML_Char*, const XML_Char*, const XML_Char*, int) {
    XML_StopParser(static_cast<Walk*>(self)->parser_, XML_FALSE);
  }

  const OnEnd on_end_;
  XML_Parser parser_ = nullptr;
  std::string path_;
  std::vector<size_t> ends_;  // of the path, before each open element
  std::string text_;
};

// Builds a page from the elements of a list.
struct ListBuilder {
  store::ObjectPage page;
  store::ObjectInfo object;
  bool has_size = false;
  bool is_truncated = false;
  bool is_there = false;
  std::string wrong;

  void Take(const std::string& path, const std::string& text) {
    if (path == "ListBucketResult/Contents/Key") {
      object.name = text;
    } else if (path == "ListBucketResult/Contents/Size") {
      has_size = absl::SimpleAtoi(text, &object.size_bytes);
    } else if (path == "ListBucketResult/Contents") {
      if (object.name.empty() || !has_size) wrong = "an object has no key or no size";
      page.objects.push_back(std::exchange(object, {}));
      has_size = false;
    } else if (path == "ListBucketResult/IsTruncated") {
      is_truncated = text == "true";
    } else if (path == "ListBucketResult/NextContinuationToken") {
      page.next = text;
    } else if (path == "ListBucketResult") {
      is_there = true;
    }
  }
};

struct Meaning {
  std::string_view code;
  absl::StatusCode status;
  std::string_view advice;
};

constexpr std::string_view kRaise = ": raise the quota, or drop versions";

// Codes that say more than the HTTP status, or something else.
constexpr Meaning kMeanings[] = {
    {"NoSuchKey", absl::StatusCode::kNotFound, ""},
    {"NoSuchBucket", absl::StatusCode::kFailedPrecondition, ": make the bucket first"},
    {"PreconditionFailed", absl::StatusCode::kAlreadyExists, ""},
    {"ConditionalRequestConflict", absl::StatusCode::kUnavailable, ""},
    {"OperationAborted", absl::StatusCode::kUnavailable, ""},
    {"BadDigest", absl::StatusCode::kUnavailable, ""},
    {"XAmzContentSHA256Mismatch", absl::StatusCode::kUnavailable, ""},
    {"IncompleteBody", absl::StatusCode::kUnavailable, ""},
    {"RequestTimeout", absl::StatusCode::kUnavailable, ""},
    {"InvalidRange", absl::StatusCode::kDataLoss, ": the object ends before"},
    {"RequestTimeTooSkewed", absl::StatusCode::kFailedPrecondition,
     ": the clock of this machine, or of the service, is wrong"},
    {"SignatureDoesNotMatch", absl::StatusCode::kUnauthenticated, ": the secret key is wrong"},
    {"InvalidAccessKeyId", absl::StatusCode::kUnauthenticated,
     ": the service does not know the access key"},
    {"AccessDenied", absl::StatusCode::kPermissionDenied,
     ": PutObject, GetObject, DeleteObject and ListBucket are needed"},
    {"ExpiredToken", absl::StatusCode::kUnauthenticated, ""},
    {"InvalidToken", absl::StatusCode::kUnauthenticated, ""},
    {"AuthorizationHeaderMalformed", absl::StatusCode::kFailedPrecondition,
     ": the bucket may be in another region"},
    {"PermanentRedirect", absl::StatusCode::kFailedPrecondition,
     ": the bucket is at another endpoint or in another region"},
    {"QuotaExceeded", absl::StatusCode::kResourceExhausted, kRaise},
    {"XMinioAdminBucketQuotaExceeded", absl::StatusCode::kResourceExhausted, kRaise},
    {"XMinioStorageFull", absl::StatusCode::kResourceExhausted, ""},
    {"NotImplemented", absl::StatusCode::kUnimplemented, ""},
};

absl::StatusCode CodeOfHttp(int http) {
  switch (http) {
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 412:
      return absl::StatusCode::kAlreadyExists;
    case 416:
      return absl::StatusCode::kDataLoss;
    case 501:
      return absl::StatusCode::kUnimplemented;
    case 507:
      return absl::StatusCode::kResourceExhausted;
    default:
      break;
  }
  const bool is_passing = http >= 500 || http == 408 || http == 409 || http == 425 || http == 429;
  if (is_passing) return absl::StatusCode::kUnavailable;
  return http < 400 ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kInvalidArgument;
}

}  // namespace

S3Error ParseS3Error(std::string_view xml) {
  S3Error error;
  const absl::Status parsed = Walk::Run(xml, [&](const std::string& path, const std::string& text) {
    if (path == "Error/Code") error.code = text;
    if (path == "Error/Message") error.message = Printable(text.substr(0, kMessageBytesMax));
  });
  return parsed.ok() ? error : S3Error();
}

absl::StatusOr<store::ObjectPage> ParseS3List(std::string_view xml) {
  ListBuilder list;
  H5M_RETURN_IF_ERROR(Walk::Run(
      xml, [&](const std::string& path, const std::string& text) { list.Take(path, text); }));
  if (!list.is_there) list.wrong = "the answer is no list";
  if (list.is_truncated == list.page.next.empty()) {
    if (list.is_truncated) list.wrong = "a list goes on, and does not say where";
    list.page.next.clear();
  }
  if (!list.wrong.empty()) return absl::DataLossError(list.wrong);
  return std::move(list.page);
}

absl::Status StatusOfAnswer(int http, std::string_view xml, std::string_view what) {
  const S3Error error = ParseS3Error(xml);
  const auto meaning = std::find_if(std::begin(kMeanings), std::end(kMeanings),
                                    [&](const Meaning& one) { return one.code == error.code; });
  const bool is_known = meaning != std::end(kMeanings);
  std::string text = StrCat(what, ": answered with ", http);
  if (!error.code.empty()) StrAppend(&text, " ", Printable(error.code.substr(0, 60)));
  if (!error.message.empty()) StrAppend(&text, ", \"", error.message, "\"");
  if (is_known) StrAppend(&text, meaning->advice);
  return absl::Status(is_known ? meaning->status : CodeOfHttp(http), text);
}

}  // namespace h5mirror::archive
