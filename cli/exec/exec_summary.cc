#include "cli/exec/exec_summary.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/cut_text.h"
#include "base/strings.h"
#include "cli/output/table.h"

namespace h5mirror::tools {
namespace {

constexpr size_t kRowsMax = 100;
constexpr size_t kLinesMax = 20;
constexpr char kAll[] = "--report FILE or --json lists all";

std::string StateText(const FileUse& use) {
  if (use.mirrored()) return use.state;
  if (use.writer_lost()) return "writer lost";
  if (use.state == "open") return "still open";
  return StrCat("NOT mirrored: ", use.state);
}

void PrintTable(Context& context, const std::vector<const FileUse*>& files) {
  if (files.empty()) return;
  Table table(std::vector<Column>{{"STATE", Align::kLeft},
                                  {"VERSION", Align::kRight},
                                  {"CUT", Align::kRight, Narrow::kLeaveOut},
                                  {"FILE", Align::kLeft},
                                  {"NAME", Align::kLeft, Narrow::kLeaveOut},
                                  {"SERVER", Align::kLeft, Narrow::kLeaveOut},
                                  {"DETAIL", Align::kLeft}});
  for (size_t i = 0; i < std::min(files.size(), kRowsMax); ++i) {
    const FileUse& use = *files[i];
    table.AddRow({StateText(use), use.version > 0 ? StrCat(use.version) : "-",
                  use.cut > 0 ? CutText(use.cut) : "-", use.file, use.name,
                  use.server.empty() ? "unknown" : use.server,
                  use.way_out.empty() ? use.detail : "see below"});
  }
  context.Note("mirrored files:");
  Streams& streams = context.streams();
  table.Print(streams.err, streams.err_sink, streams.width_columns);
  if (files.size() > kRowsMax) {
    context.Note(StrCat("and ", files.size() - kRowsMax, " more files; ", kAll));
  }
}

// `line` of each, at most kLinesMax.
template <typename Use, typename Line>
void NoteEach(Context& context, const std::vector<const Use*>& uses, const char* what, Line line) {
  for (size_t i = 0; i < std::min(uses.size(), kLinesMax); ++i) context.Note(line(*uses[i]));
  if (uses.size() > kLinesMax) {
    context.Note(StrCat("and ", uses.size() - kLinesMax, " more ", what, "; ", kAll));
  }
}

std::string UnmirroredLibrary(const LibraryUse& use) {
  const std::string version = use.version.empty() ? "of unknown version" : use.version;
  return StrCat("NOT mirrored: libhdf5 ", version, " (", use.path, ") in ", use.program, " [",
                use.pid,
                "]: the plugin was never loaded into it; HDF5 >= 1.14 loads plugins, "
                "see h5mirror doctor");
}

std::string LibraryWithoutConnector(const LibraryUse& use) {
  return StrCat(
      "libhdf5 ", use.version, " (", use.path, ") in ", use.program, " [", use.pid,
      "]: the VOL connector was not loaded into it, so --tick and --all-drivers did nothing "
      "there; HDF5 >= 1.14 loads it from HDF5_PLUGIN_PATH");
}

void SummarizeFiles(Context& context, const ExecReport& report) {
  std::vector<const FileUse*> bad;
  std::vector<const FileUse*> good;
  std::vector<const FileUse*> left_out;
  std::vector<const FileUse*> lost;
  for (const FileUse& use : report.files) {
    (use.left_out() ? left_out : use.mirrored() ? good : bad).push_back(&use);
    if (!use.way_out.empty()) lost.push_back(&use);
  }
  std::vector<const FileUse*> in_table = std::move(bad);
  in_table.insert(in_table.end(), good.begin(), good.end());
  PrintTable(context, in_table);
  NoteEach(context, lost, "lost writers", [](const FileUse& use) {
    return StrCat("writer lost: ", use.file, ": ", use.detail, ". Next: ", use.way_out);
  });
  std::map<int64_t, std::string> programs;
  for (const LibraryUse& use : report.libraries) programs.emplace(use.pid, use.program);
  NoteEach(context, left_out, "files that were left out", [&](const FileUse& use) {
    const auto program = programs.find(use.pid);
    const std::string where = program == programs.end() ? "" : StrCat(program->second, " ");
    return StrCat("NOT mirrored: ", use.file, " (", where, "[", use.pid, "]): ", use.detail);
  });
}

void SummarizeLibraries(Context& context, const ExecReport& report) {
  std::vector<const LibraryUse*> unmirrored;
  for (const LibraryUse& use : report.libraries) {
    if (use.mirror == LibraryUse::Mirror::kNever) unmirrored.push_back(&use);
  }
  NoteEach(context, unmirrored, "libraries", UnmirroredLibrary);
  std::vector<const LibraryUse*> plain;
  for (const LibraryUse& use : report.libraries) {
    const bool is_mirrored = use.mirror == LibraryUse::Mirror::kLoaded;
    if (report.wants_connector && is_mirrored && !use.has_connector) plain.push_back(&use);
  }
  NoteEach(context, plain, "libraries", LibraryWithoutConnector);
}

}  // namespace

void Summarize(Context& context, const ExecReport& report) {
  SummarizeFiles(context, report);
  SummarizeLibraries(context, report);
  if (report.libraries.empty()) {
    context.Note(
        "nothing was mirrored: no libhdf5 was loaded (one that is linked statically "
        "cannot be seen)");
  } else if (report.files.empty() && report.complete()) {
    context.Note(
        "nothing was mirrored: no file was written through the driver (files that a program opens "
        "with another driver cannot be seen)");
  }
}

}  // namespace h5mirror::tools
