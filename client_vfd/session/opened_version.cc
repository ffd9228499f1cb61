#include "client_vfd/session/opened_version.h"

#include <cstdio>

#include "base/cut_text.h"
#include "base/strings.h"

namespace h5mirror::vfd {
namespace {

// 0: their newest version.
int64_t TimeOfTargets(const H5mReaderOpen& open, const rpc::VersionSpec& spec, absl::Time time) {
  if (open.linked != 0) return open.at_ns;
  if (spec.at.has_value()) return absl::ToUnixNanos(spec.at->time);
  const bool newest = spec.number == 0 && spec.tag.empty() && spec.back == 0;
  return newest ? 0 : absl::ToUnixNanos(time);
}

}  // namespace

absl::StatusOr<rpc::VersionSpec> SpecOf(const H5mReaderOpen& open) {
  rpc::VersionSpec spec;
  if (open.number > 0) {
    spec.number = open.number;
  } else if (open.at_ns != 0) {
    spec.at = rpc::TimeSpec{absl::FromUnixNanos(open.at_ns), ""};
  } else if (*open.version != '\0') {
    return rpc::ParseVersionSpec(open.version, absl::LocalTimeZone());
  }
  return spec;
}

void Describe(const H5mReaderOpen& open, const rpc::VersionSpec& spec, const OpenedVersion& opened,
              H5mReaderInfo* info) {
  info->version = opened.version;
  info->cut = opened.cut;
  info->size_bytes = opened.size_bytes;
  info->targets_at_ns = TimeOfTargets(open, spec, opened.time);
  std::string text = opened.version != 0 ? StrCat("version ", opened.version)
                                         : StrCat("cut ", CutText(opened.cut));
  text += StrCat(" of ", open.name, ", of ", rpc::UtcText(opened.time));
  if (spec.at.has_value() && !spec.at->local_text.empty()) {
    text += StrCat(" (", rpc::MeaningOf(*spec.at), ")");
  }
  std::snprintf(info->text, sizeof info->text, "%s", text.c_str());
  std::snprintf(info->identity, sizeof info->identity, "%s", opened.identity.c_str());
}

}  // namespace h5mirror::vfd
