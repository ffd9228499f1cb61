#include "cli/context/time_spec.h"

#include "base/strings.h"

namespace h5mirror::tools {

void NoteLocalTime(Context& context, const TimeSpec& spec) {
  if (spec.local_text.empty()) return;
  context.Note(StrCat(spec.local_text, " is ", rpc::UtcText(spec.time)));
}

}  // namespace h5mirror::tools
