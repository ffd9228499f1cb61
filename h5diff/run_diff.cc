#include "h5diff/run_diff.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_split.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/file_arg.h"
#include "cli/context/file_at_version.h"
#include "cli/output/progress.h"
#include "cli/output/text.h"
#include "h5diff/change_text.h"
#include "h5diff/page_diff.h"
#include "h5diff/walk.h"

namespace h5mirror::tools {
namespace {

// Ranges that are held in memory; beyond that the smallest gaps are closed, which only makes more
// to look at.
constexpr size_t kRangesMax = 1 << 20;
// Changes of more pages are not looked into byte by byte beforehand: 32 MiB of pages of 4 KiB.
constexpr uint64_t kExactPagesMax = 8192;

struct Versions {
  std::string file;
  v1::Version old_version, new_version;
  uint32_t page_size_bytes = 0;
  ExtentSet changed{kRangesMax};
};

absl::StatusOr<int64_t> NumberOf(Context& context, rpc::Client& client, const std::string& name,
                                 const FileAtVersion& wanted) {
  return ResolveVersion(context, client, name, wanted.version);
}

// Prints findings as they come, in one document with --json.
class Printer {
 public:
  Printer(Context& context, const Versions& versions, const char* list)
      : context_(context), json_(context.json()) {
    if (!json_) return;
    std::string text = Dump(Json{{"file", versions.file},
                                 {"old", VersionToJson(versions.old_version)},
                                 {"new", VersionToJson(versions.new_version)}});
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
  // `rest`: what is known only now.
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

absl::StatusOr<Versions> FindChanges(Context& context, rpc::Client& client, const std::string& name,
                                     int64_t from, int64_t to) {
  Versions versions;
  versions.file = name;
  v1::ListChangesRequest request;
  request.set_name(name);
  request.set_from_version(from);
  request.set_to_version(to);
  Progress progress(context.streams(), StrCat("look for changes in ", name), 0);
  H5M_RETURN_IF_ERROR(client.ListChanges(request, [&](const v1::ListChangesResponse& message) {
    if (message.has_from()) {
      versions.old_version = message.from();
      versions.new_version = message.to();
      versions.page_size_bytes = message.page_size_bytes();
    }
    for (const v1::ByteRange& range : message.ranges()) {
      if (range.length_bytes() == 0 || range.offset() > INT64_MAX - range.length_bytes()) {
        return absl::DataLossError(StrCat("changes of ", name, ": the server sent no range"));
      }
      versions.changed.Add({range.offset(), range.length_bytes()});
    }
    progress.Update(versions.changed.byte_count());
    return absl::OkStatus();
  }));
  const uint64_t size = versions.page_size_bytes;
  if (size < 512 || size > 65536 || (size & (size - 1)) != 0) {
    return absl::DataLossError(StrCat("changes of ", name, ": the server sent no page size"));
  }
  return versions;
}

Json StatsToJson(const VersionPages& pages) {
  const uint64_t page = pages.page_size_bytes();
  return Json{{"page_size_bytes", page},
              {"changed_pages", (pages.changed().byte_count() + page - 1) / page},
              {"pages_read", pages.pages_read()}};
}

absl::StatusOr<int> DiffPages(Context& context, const Versions& versions, VersionPages& pages) {
  Printer printer(context, versions, "pages");
  uint64_t bytes = 0;
  H5M_RETURN_IF_ERROR(ComparePages(pages, [&](const PageDifference& run) {
    bytes += run.byte_count;
    printer.Add(Json{{"page", run.page}, {"page_count", run.page_count}, {"bytes", run.byte_count}},
                StrCat("~ page ", run.page,
                       run.page_count > 1 ? StrCat("-", run.page + run.page_count - 1) : "",
                       "  offset ", run.page * pages.page_size_bytes(), ", ", run.byte_count,
                       run.byte_count == 1 ? " byte" : " bytes"));
  }));
  const bool same_size = pages.size_bytes(Side::kOld) == pages.size_bytes(Side::kNew);
  if (!same_size) {
    context.Say(
        StrCat("~ size  ", pages.size_bytes(Side::kOld), " -> ", pages.size_bytes(Side::kNew)));
  }
  const bool equal = bytes == 0 && same_size;
  Json rest{{"equal", equal}, {"bytes", bytes}};
  rest.update(StatsToJson(pages));
  printer.End(rest);
  return equal ? kDiffEqual : kDiffDifferent;
}

struct Tally {
  uint64_t changes = 0;
  uint64_t unknown = 0;
};

absl::StatusOr<uint64_t> WalkBoth(VersionPages& pages, Evidence& evidence, DiffContext& context) {
  H5M_RETURN_IF_ERROR(hdf5::StartLibrary());
  H5M_ASSIGN_OR_RETURN(
      const hdf5::SourceFile one,
      hdf5::SourceFile::Open(pages.source(Side::kOld), &evidence.observer(Side::kOld)));
  H5M_ASSIGN_OR_RETURN(
      const hdf5::SourceFile other,
      hdf5::SourceFile::Open(pages.source(Side::kNew), &evidence.observer(Side::kNew)));
  context.base_offset = other.base_offset();
  evidence.set_base_offset(other.base_offset());
  if (one.base_offset() != other.base_offset()) evidence.Forget();
  Walk walk(context, one, other);
  const absl::Status walked = walk.Run();
  H5M_RETURN_IF_ERROR(pages.error());  // What HDF5 made of it says less.
  H5M_RETURN_IF_ERROR(walked);
  return walk.objects_compared();
}

absl::StatusOr<int> DiffObjects(Context& context, const DiffOptions& options,
                                const Versions& versions, VersionPages& pages) {
  Printer printer(context, versions, "changes");
  Tally tally;
  Evidence evidence(pages);
  if (!options.full) H5M_RETURN_IF_ERROR(evidence.Load(kExactPagesMax));
  DiffContext diff{
      .pages = pages,
      .evidence = evidence,
      .sink =
          [&](const Change& change) {
            ++(change.kind == ChangeKind::kUnknown ? tally.unknown : tally.changes);
            printer.Add(ChangeToJson(change), ChangeText(change));
          },
      .one_generation = versions.old_version.generation() == versions.new_version.generation()};
  uint64_t objects = 0;
  const bool nothing = !options.full && (versions.changed.empty() || evidence.complete());
  if (!nothing) {
    H5M_ASSIGN_OR_RETURN(objects, WalkBoth(pages, evidence, diff));
  }
  Json rest{{"equal", tally.changes == 0 && tally.unknown == 0},
            {"all_compared", tally.unknown == 0},
            {"objects_compared", objects}};
  rest.update(StatsToJson(pages));
  printer.End(rest);
  if (options.stats) {
    context.Say(StrCat("changed pages: ", rest["changed_pages"].dump(),
                       ", pages read: ", pages.pages_read(), ", objects compared: ", objects));
  }
  if (tally.changes > 0) return kDiffDifferent;
  return tally.unknown > 0 ? kDiffTrouble : kDiffEqual;
}

}  // namespace

absl::StatusOr<int> RunDiff(Context& context, const DiffOptions& options) {
  const absl::TimeZone zone = context.streams().zone;
  H5M_ASSIGN_OR_RETURN(const FileAtVersion one, ParseFileAtVersion(options.old_version, zone));
  const std::string second =
      options.new_version.empty() ? one.file + "@latest" : options.new_version;
  H5M_ASSIGN_OR_RETURN(const FileAtVersion other, ParseFileAtVersion(second, zone));
  H5M_ASSIGN_OR_RETURN(const FileArg file, ResolveFileArg(one.file, context.flags().client.server));
  H5M_ASSIGN_OR_RETURN(const FileArg other_file,
                       ResolveFileArg(other.file, context.flags().client.server));
  if (file.name != other_file.name || file.server != other_file.server) {
    return absl::InvalidArgumentError(
        StrCat(one.file, " and ", other.file,
               " are two files: diff compares versions of one. Export them and use h5diff"));
  }
  H5M_ASSIGN_OR_RETURN(rpc::Client * client, context.Connect(file));
  H5M_ASSIGN_OR_RETURN(const int64_t from, NumberOf(context, *client, file.name, one));
  H5M_ASSIGN_OR_RETURN(const int64_t to, NumberOf(context, *client, file.name, other));
  H5M_ASSIGN_OR_RETURN(const Versions versions, FindChanges(context, *client, file.name, from, to));
  VersionPages pages(*client,
                     {.file = file.name,
                      .versions = {versions.old_version, versions.new_version},
                      .page_size_bytes = versions.page_size_bytes},
                     versions.changed);
  Progress progress(context.streams(),
                    StrCat("compare ", pages.name(Side::kOld), " and ", pages.name(Side::kNew)), 0);
  pages.set_on_fetch([&] { progress.Update(pages.pages_read() * pages.page_size_bytes()); });
  return options.pages ? DiffPages(context, versions, pages)
                       : DiffObjects(context, options, versions, pages);
}

}  // namespace h5mirror::tools
