#include "h5diff/run_diff.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/path_globs.h"
#include "cli/output/progress.h"
#include "cli/output/text.h"
#include "h5diff/change_text.h"
#include "h5diff/diff_ends.h"
#include "h5diff/page_diff.h"
#include "h5diff/walk.h"

namespace h5mirror::tools {
namespace {

// Changes of more pages are not looked into byte by byte beforehand: 32 MiB of pages of 4 KiB.
constexpr uint64_t kExactPagesMax = 8192;

// Prints findings as they come, in one document with --json.
class Printer {
 public:
  Printer(Context& context, const DiffEnds& ends, const char* list)
      : context_(context), json_(context.json()) {
    if (!json_) return;
    std::string text = Dump(EndsToJson(ends));
    text.resize(text.size() - std::string_view("\n}").size());
    context_.streams().out << text << ",\n  \"" << list << "\": [";
  }

  void Add(const Json& json, const std::string& text) {
    if (json_) {
      context_.streams().out << (any_ ? ",\n    " : "\n    ") << DumpLine(json);
    } else {
      for (const auto& line : absl::StrSplit(text, '\n')) context_.Say(ToStd(line));
    }
    any_ = true;
  }
  // `rest`: the members that are known only now.
  void End(const Json& rest) {
    if (!json_) return;
    std::string text = Dump(rest);
    text.erase(0, std::string_view("{").size());
    context_.streams().out << (any_ ? "\n  ]," : "],") << text << "\n";
  }

 private:
  Context& context_;
  const bool json_;
  bool any_ = false;
};

// The time that a comparison may take.
struct TimeLimit {
  absl::Duration after = absl::InfiniteDuration();
  absl::Time until = absl::InfiniteFuture();

  static absl::StatusOr<TimeLimit> FromNow(const std::string& text) {
    if (text.empty()) return TimeLimit();
    H5M_ASSIGN_OR_RETURN(const absl::Duration after, ParseDuration(text));
    return TimeLimit{after, absl::Now() + after};
  }
  // In seconds if the time is up; else null.
  Json ToJson(const VersionPages& pages) const {
    return pages.time_is_up() ? Json(absl::ToDoubleSeconds(after)) : Json(nullptr);
  }
  // The error of a comparison; OK if its time is up, because then it was stopped on purpose.
  static absl::Status ErrorOf(const VersionPages& pages, const absl::Status& compared) {
    return pages.time_is_up() ? absl::OkStatus() : compared;
  }
  void Say(Context& context, const VersionPages& pages) const {
    if (!pages.time_is_up()) return;
    context.Say(StrCat("stopped after ", HumanDuration(after), ": the rest was not compared"));
  }
};

Json StatsToJson(const VersionPages& pages) {
  const uint64_t page = pages.page_size_bytes();
  return Json{{"page_size_bytes", page},
              {"changed_pages", (pages.changed().byte_count() + page - 1) / page},
              {"pages_read", pages.pages_read()}};
}

absl::StatusOr<int> DiffPages(Context& context, const DiffEnds& ends, const TimeLimit& limit,
                              VersionPages& pages) {
  Printer printer(context, ends, "pages");
  uint64_t bytes = 0;
  const absl::Status compared = ComparePages(pages, [&](const PageDifference& run) {
    bytes += run.byte_count;
    printer.Add(Json{{"page", run.page}, {"page_count", run.page_count}, {"bytes", run.byte_count}},
                StrCat("~ page ", run.page,
                       run.page_count > 1 ? StrCat("-", run.page + run.page_count - 1) : "",
                       "  offset ", run.page * pages.page_size_bytes(), ", ", run.byte_count,
                       run.byte_count == 1 ? " byte" : " bytes"));
  });
  H5M_RETURN_IF_ERROR(TimeLimit::ErrorOf(pages, compared));
  H5M_RETURN_IF_ERROR(CheckUnchanged(ends));
  const bool same_size = pages.size_bytes(Side::kOld) == pages.size_bytes(Side::kNew);
  if (!same_size) {
    context.Say(
        StrCat("~ size  ", pages.size_bytes(Side::kOld), " -> ", pages.size_bytes(Side::kNew)));
  }
  const bool differs = bytes > 0 || !same_size;
  Json rest{{"equal", !differs && !pages.time_is_up()},
            {"bytes", bytes},
            {"stopped_after_s", limit.ToJson(pages)}};
  rest.update(StatsToJson(pages));
  printer.End(rest);
  limit.Say(context, pages);
  if (differs) return kDiffDifferent;
  return pages.time_is_up() ? kDiffTrouble : kDiffEqual;
}

struct Tally {
  uint64_t changes = 0;
  uint64_t unknown = 0;
  uint64_t objects = 0;  // that were compared
};

absl::Status WalkBoth(VersionPages& pages, Evidence& evidence, DiffContext& context, Tally& tally) {
  H5M_RETURN_IF_ERROR(hdf5::StartLibrary());
  H5M_ASSIGN_OR_RETURN(
      const hdf5::SourceFile one,
      hdf5::SourceFile::Open(pages.source(Side::kOld), &evidence.observer(Side::kOld)));
  H5M_ASSIGN_OR_RETURN(
      const hdf5::SourceFile other,
      hdf5::SourceFile::Open(pages.source(Side::kNew), &evidence.observer(Side::kNew)));
  context.base_offset = other.base_offset();
  context.same_base_offset = one.base_offset() == other.base_offset();
  evidence.set_base_offset(other.base_offset());
  if (!context.same_base_offset) evidence.Forget();
  Walk walk(context, one, other);
  const absl::Status walked = walk.Run();
  tally.objects = walk.objects_compared();
  return pages.error().ok() ? walked : pages.error();  // What HDF5 made of it says less.
}

// `full`: looks at each object, whether the changed bytes lead to it or not.
absl::Status CompareAll(VersionPages& pages, Evidence& evidence, DiffContext& context, bool full,
                        Tally& tally) {
  if (!full) {
    H5M_RETURN_IF_ERROR(evidence.Load(kExactPagesMax));
    if (pages.changed().empty() || evidence.complete()) return absl::OkStatus();
  }
  return WalkBoth(pages, evidence, context, tally);
}

// The parts left out of the comparison, on one line; empty: none.
std::string LeftOutText(const DiffContext& diff) {
  std::vector<std::string> parts;
  if (!diff.exclude.empty()) {
    parts.push_back(StrCat("objects at or below ", absl::StrJoin(diff.exclude.patterns(), ", ")));
  }
  if (!diff.tolerance.is_exact()) {
    parts.push_back(absl::StrFormat("numbers at most %g + %g * |new| apart",
                                    diff.tolerance.absolute, diff.tolerance.relative));
  }
  return parts.empty() ? "" : StrCat("not told: ", Printable(absl::StrJoin(parts, "; ")));
}

absl::StatusOr<int> DiffObjects(Context& context, const DiffOptions& options, const DiffEnds& ends,
                                const TimeLimit& limit, VersionPages& pages) {
  H5M_ASSIGN_OR_RETURN(PathGlobs exclude, PathGlobs::Parse(options.exclude));
  Printer printer(context, ends, "changes");
  Tally tally;
  Evidence evidence(pages);
  // For two different files, proving that parts are equal would cost more than comparing them.
  const bool full = options.full || !ends.one_file;
  DiffContext diff{
      .pages = pages,
      .evidence = evidence,
      .sink =
          [&](const Change& change) {
            if (pages.time_is_up()) return;  // It tells of the read that failed for that.
            ++(change.kind == ChangeKind::kUnknown ? tally.unknown : tally.changes);
            printer.Add(ChangeToJson(change), ChangeText(change));
          },
      .one_generation =
          ends.one_file && ends.one.version.generation() == ends.other.version.generation(),
      .one_file = ends.one_file,
      .tolerance = {.absolute = options.absolute_tolerance, .relative = options.relative_tolerance},
      .exclude = std::move(exclude)};
  const absl::Status compared = CompareAll(pages, evidence, diff, full, tally);
  H5M_RETURN_IF_ERROR(TimeLimit::ErrorOf(pages, compared));
  H5M_RETURN_IF_ERROR(CheckUnchanged(ends));
  const bool all_compared = tally.unknown == 0 && !pages.time_is_up();
  Json rest{{"equal", tally.changes == 0 && all_compared},
            {"all_compared", all_compared},
            {"stopped_after_s", limit.ToJson(pages)},
            {"objects_compared", tally.objects},
            {"excluded", diff.exclude.patterns()},
            {"atol", diff.tolerance.absolute},
            {"rtol", diff.tolerance.relative}};
  rest.update(StatsToJson(pages));
  printer.End(rest);
  const std::string left_out = LeftOutText(diff);
  if (!left_out.empty()) context.Say(left_out);
  limit.Say(context, pages);
  if (options.stats) {
    context.Say(StrCat("changed pages: ", rest["changed_pages"].dump(), ", pages read: ",
                       pages.pages_read(), ", objects compared: ", tally.objects));
  }
  if (tally.changes > 0) return kDiffDifferent;
  return all_compared ? kDiffEqual : kDiffTrouble;
}

}  // namespace

absl::StatusOr<int> RunDiff(Context& context, const DiffOptions& options) {
  H5M_ASSIGN_OR_RETURN(const TimeLimit limit, TimeLimit::FromNow(options.stop_after));
  H5M_ASSIGN_OR_RETURN(DiffEnds ends, FindDiffEnds(context, options));
  H5M_ASSIGN_OR_RETURN(const std::unique_ptr<VersionPages> pages, OpenPages(context, ends));
  pages->Limit(UINT64_MAX, limit.until);
  Progress progress(context.streams(),
                    StrCat("compare ", pages->name(Side::kOld), " and ", pages->name(Side::kNew)),
                    0);
  pages->set_on_fetch([&] { progress.Update(pages->pages_read() * pages->page_size_bytes()); });
  return options.pages ? DiffPages(context, ends, limit, *pages)
                       : DiffObjects(context, options, ends, limit, *pages);
}

}  // namespace h5mirror::tools
