#include "rpc/elsewhere.h"

#include "absl/strings/cord.h"
#include "base/strings.h"
#include "h5mirror/v1/cluster.pb.h"

namespace h5mirror::rpc {
namespace {

constexpr char kPayload[] = "type.googleapis.com/h5mirror.v1.ServedElsewhere";

std::optional<v1::ServedElsewhere> MessageOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  v1::ServedElsewhere message;
  if (!payload.has_value() || !message.ParseFromString(std::string(*payload))) return std::nullopt;
  return message;
}

std::optional<v1::ServedElsewhere> MessageOfUnavailable(const absl::Status& status) {
  return absl::IsUnavailable(status) ? MessageOf(status) : std::nullopt;
}

}  // namespace

absl::Status ElsewhereError(const Elsewhere& elsewhere) {
  absl::Status status = absl::UnavailableError(
      StrCat("the server ", elsewhere.address, " of this cluster serves it: ask there"));
  v1::ServedElsewhere message;
  message.set_address(elsewhere.address);
  message.set_cell(elsewhere.cell);
  message.set_epoch(elsewhere.epoch);
  status.SetPayload(kPayload, absl::Cord(message.SerializeAsString()));
  return status;
}

absl::Status NobodyServesError(std::string_view text) {
  absl::Status status = absl::UnavailableError(ToAbsl(text));
  status.SetPayload(kPayload, absl::Cord(v1::ServedElsewhere().SerializeAsString()));
  return status;
}

absl::Status WithoutElsewhere(const absl::Status& status) {
  return absl::Status(status.code(), status.message());
}

bool IsNobodyServes(const absl::Status& status) {
  const std::optional<v1::ServedElsewhere> message = MessageOfUnavailable(status);
  return message.has_value() && message->address().empty();
}

absl::Status OwnerLacksIt(absl::Status status, std::string_view cell, uint64_t epoch) {
  v1::ServedElsewhere message;
  message.set_cell(std::string(cell));
  message.set_epoch(epoch);
  status.SetPayload(kPayload, absl::Cord(message.SerializeAsString()));
  return status;
}

bool IsOwnerLacksIt(const absl::Status& status) {
  return absl::IsNotFound(status) && MessageOf(status).has_value();
}

std::optional<Elsewhere> ElsewhereOf(const absl::Status& status) {
  const std::optional<v1::ServedElsewhere> message = MessageOfUnavailable(status);
  if (!message.has_value() || message->address().empty()) return std::nullopt;
  return Elsewhere{message->address(), message->cell(), message->epoch()};
}

std::string DetailsOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return "";
  v1::StatusDetails details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(std::string(status.message()));
  google::protobuf::Any& detail = *details.add_details();
  detail.set_type_url(kPayload);
  detail.set_value(std::string(*payload));
  return details.SerializeAsString();
}

void TakeDetails(const std::string& details, absl::Status& status) {
  v1::StatusDetails message;
  if (details.empty() || !message.ParseFromString(details)) return;
  for (const google::protobuf::Any& detail : message.details()) {
    if (detail.type_url() != kPayload) continue;
    status.SetPayload(kPayload, absl::Cord(detail.value()));
  }
}

}  // namespace h5mirror::rpc
