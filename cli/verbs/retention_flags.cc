#include "cli/verbs/retention_flags.h"

#include "base/cli_checks.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/file_at_version.h"

namespace h5mirror::tools {

void AddRetentionFlags(CLI::App& verb, RetentionFlags& flags) {
  const auto add = [&verb](const char* name, int64_t& count, const char* help) {
    verb.add_option(name, count, help)->check(WholeNumber(0));
  };
  add("--keep-last", flags.last, "retain the newest N versions");
  add("--keep-hourly", flags.hourly, "retain the newest version of each of N hours that have one");
  add("--keep-daily", flags.daily, "the same for days");
  add("--keep-weekly", flags.weekly, "the same for ISO weeks");
  add("--keep-monthly", flags.monthly, "the same for months");
  add("--keep-yearly", flags.yearly, "the same for years");
  verb.add_option("--keep-within", flags.within,
                  "retain versions at most this much older than the newest one: 30d, 2w, 12h");
  verb.add_option("--keep-tag", flags.tags, "retain the version with this tag; may be repeated")
      ->allow_extra_args(false);
}

bool IsEmpty(const RetentionFlags& flags) {
  return flags.last == 0 && flags.hourly == 0 && flags.daily == 0 && flags.weekly == 0 &&
         flags.monthly == 0 && flags.yearly == 0 && flags.within.empty() && flags.tags.empty();
}

absl::StatusOr<v1::RetentionPolicy> ToPolicy(const RetentionFlags& flags) {
  v1::RetentionPolicy policy;
  policy.set_keep_last(flags.last);
  policy.set_keep_hourly(flags.hourly);
  policy.set_keep_daily(flags.daily);
  policy.set_keep_weekly(flags.weekly);
  policy.set_keep_monthly(flags.monthly);
  policy.set_keep_yearly(flags.yearly);
  if (!flags.within.empty()) {
    const absl::StatusOr<absl::Duration> within = ParseLongDuration(flags.within);
    if (!within.ok()) {
      return absl::InvalidArgumentError(
          StrCat("--keep-within: ", ToStd(within.status().message())));
    }
    policy.mutable_keep_within()->set_seconds(absl::ToInt64Seconds(*within));
    policy.mutable_keep_within()->set_nanos(static_cast<int32_t>(
        absl::ToInt64Nanoseconds(*within - absl::Seconds(absl::ToInt64Seconds(*within)))));
  }
  for (const std::string& tag : flags.tags) policy.add_keep_tags(tag);
  return policy;
}

absl::Status CheckTags(Context& context, const ConnectedFile& file, const RetentionFlags& flags) {
  for (const std::string& tag : flags.tags) {
    rpc::VersionSpec spec;
    spec.tag = tag;
    const absl::Status found = ResolveVersion(context, *file.client, file.name, spec).status();
    if (found.ok()) continue;
    return absl::Status(found.code(),
                        ToAbsl(StrCat("--keep-tag ", tag, ": ", ToStd(found.message()))));
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::tools
