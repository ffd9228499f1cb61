#include "rpc/texts.h"

#include <string>
#include <string_view>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "google/protobuf/descriptor.h"

namespace h5mirror::rpc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr size_t kShownBytesMax = 256;

absl::Status CheckText(const FieldDescriptor& field, const std::string& text) {
  if (IsUtf8(text)) return absl::OkStatus();
  const std::string_view shown = std::string_view(text).substr(0, kShownBytesMax);
  return absl::InvalidArgumentError(StrCat(
      field.name(), " \"", Printable(shown), shown.size() < text.size() ? "..." : "",
      "\" is not UTF-8, as all texts of a server are; write it so, in a terminal with a UTF-8 "
      "locale (`locale charmap`), or rename the file or directory that has these bytes"));
}

absl::Status CheckStrings(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  std::string scratch;
  if (!field.is_repeated()) {
    return CheckText(field, reflection.GetStringReference(message, &field, &scratch));
  }
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    H5M_RETURN_IF_ERROR(
        CheckText(field, reflection.GetRepeatedStringReference(message, &field, i, &scratch)));
  }
  return absl::OkStatus();
}

absl::Status CheckMessages(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  if (!field.is_repeated()) return CheckTexts(reflection.GetMessage(message, &field));
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    H5M_RETURN_IF_ERROR(CheckTexts(reflection.GetRepeatedMessage(message, &field, i)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTexts(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      H5M_RETURN_IF_ERROR(CheckMessages(message, *field));
    } else if (field->type() == FieldDescriptor::TYPE_STRING) {
      H5M_RETURN_IF_ERROR(CheckStrings(message, *field));
    }
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::rpc
