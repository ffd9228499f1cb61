#include "rpc/status.h"

#include <cstddef>
#include <string>

#include "absl/strings/match.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "rpc/elsewhere.h"

namespace h5mirror::rpc {
namespace {

constexpr size_t kMessageBytesMax = 4096;
constexpr std::string_view kEndedByServer =
    "the server, or something between, has ended this call, which may have been done; the server "
    "may be stopping: ask again once it runs";

bool IsContinuationByte(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Cuts before the character that does not fit, never inside one.
std::string Cut(std::string_view message) {
  if (message.size() <= kMessageBytesMax) return std::string(message);
  constexpr std::string_view kDots = "...";
  size_t end = kMessageBytesMax - kDots.size();
  while (end > 0 && IsContinuationByte(message[end])) --end;
  return StrCat(message.substr(0, end), kDots);
}

}  // namespace

// Either way messages become printable: names in them are of one stranger or another.
grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      Cut(Printable(ToStd(status.message()))), DetailsOf(status));
}

bool IsTooOften(const absl::Status& status) {
  return absl::IsResourceExhausted(status) &&
         absl::StrContains(status.message(), ToAbsl(kCallsASecond));
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const int code = static_cast<int>(status.error_code());
  const bool known = code > 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  absl::Status translated(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
                          Printable(status.error_message()));
  TakeDetails(status.error_details(), translated);
  return translated;
}

absl::Status FromServer(const grpc::Status& status) {
  if (status.error_code() != grpc::StatusCode::CANCELLED) return FromGrpc(status);
  return absl::UnavailableError(ToAbsl(kEndedByServer));
}

}  // namespace h5mirror::rpc
