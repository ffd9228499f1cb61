// A time on the command line.
#ifndef H5MIRROR_CLI_CONTEXT_TIME_SPEC_H_
#define H5MIRROR_CLI_CONTEXT_TIME_SPEC_H_

#include "cli/context/context.h"
#include "rpc/time_spec.h"

namespace h5mirror::tools {

using rpc::kTimeForm;
using rpc::ParseTimeSpec;
using rpc::TimeSpec;

// Says on standard error which time in UTC was understood, where the text named no zone.
void NoteLocalTime(Context& context, const TimeSpec& spec);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_CONTEXT_TIME_SPEC_H_
