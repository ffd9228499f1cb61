// An answer of an S3 service: a list ('l' in front), or an error.
#include <string_view>

#include "archive/s3_answers.h"
#include "tests/fuzz/fuzz_input.h"

namespace h5mirror::archive {
namespace {

void TakeList(std::string_view xml) {
  const auto page = ParseS3List(xml);
  if (!page.ok()) return FuzzCheck(absl::IsDataLoss(page.status()));
  for (const store::ObjectInfo& object : page->objects) FuzzCheck(!object.name.empty());
}

void TakeError(int http, std::string_view xml) {
  const absl::Status status = StatusOfAnswer(http, xml, "get a in s3://b");
  FuzzCheck(!status.ok() && status.message().size() < 2000);
  for (const char c : status.message()) FuzzCheck(c >= ' ' || c < 0);
}

}  // namespace
}  // namespace h5mirror::archive

int h5mirror::LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  h5mirror::FuzzInput input(data, size);
  if (input.Take<char>() == 'l') {
    h5mirror::archive::TakeList(input.rest());
  } else {
    h5mirror::archive::TakeError(300 + input.Take<uint8_t>(), input.rest());
  }
  return 0;
}
