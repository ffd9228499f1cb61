#include "tools/exec_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_split.h"
#include "tools/io.h"

namespace h5mirror::tools {
namespace {

constexpr size_t kReportBytesMax = 64 << 20;

// All JSON objects in the files of the directory that end in `suffix`, by file name.
std::vector<Json> ReadLines(const std::filesystem::path& directory, const std::string& suffix) {
  std::set<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() == suffix) paths.insert(entry.path());
  }
  std::vector<Json> lines;
  for (const std::filesystem::path& path : paths) {
    const absl::StatusOr<std::string> text = ReadSmallFile(path.string(), kReportBytesMax);
    if (!text.ok()) continue;
    for (absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
      Json json = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
      if (json.is_object()) lines.push_back(std::move(json));
    }
  }
  return lines;
}

std::string TextOf(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : "";
}

int64_t NumberOf(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<int64_t>() : 0;
}

using LibraryKey = std::pair<int64_t, std::string>;  // pid, path of libhdf5

std::vector<LibraryUse> JoinLibraries(const std::vector<Json>& plugin,
                                      const std::vector<Json>& audit, LibraryVersion version_of) {
  std::map<LibraryKey, LibraryUse> uses;
  for (const Json& line : audit) {
    const LibraryKey key{NumberOf(line, "pid"), TextOf(line, "path")};
    LibraryUse& use = uses[key];
    use.program = TextOf(line, "program");
  }
  for (const Json& line : plugin) {
    const LibraryKey key{NumberOf(line, "pid"), TextOf(line, "libhdf5_path")};
    if (key.second.empty()) continue;
    LibraryUse& use = uses[key];
    use.version = TextOf(line, "libhdf5");
    use.mirror = LibraryUse::Mirror::kLoaded;
  }
  std::vector<LibraryUse> result;
  for (auto& [key, use] : uses) {
    use.pid = key.first;
    use.path = key.second;
    if (use.mirror == LibraryUse::Mirror::kNever) use.version = version_of(use.path);
    result.push_back(use);
  }
  return result;
}

std::vector<FileUse> LastOfEachFile(const std::vector<Json>& plugin) {
  std::map<std::tuple<std::string, std::string, int64_t>, FileUse> last;  // by file, server, pid
  for (const Json& line : plugin) {
    FileUse use;
    use.file = TextOf(line, "file");
    if (use.file.empty()) continue;
    use.pid = NumberOf(line, "pid");
    use.name = TextOf(line, "name");
    use.server = TextOf(line, "server");
    use.state = TextOf(line, "state");
    use.detail = TextOf(line, "detail");
    use.cut = NumberOf(line, "cut");
    use.version = NumberOf(line, "version");
    FileUse& known = last[{use.file, use.server, use.pid}];
    // A later open that changed nothing says nothing about what was mirrored before.
    if (use.state == "unchanged" && !known.file.empty()) continue;
    known = std::move(use);
  }
  std::vector<FileUse> result;
  for (auto& [key, use] : last) result.push_back(std::move(use));
  return result;
}

}  // namespace

bool ExecReport::complete() const {
  return !libraries.empty() &&
         std::all_of(
             libraries.begin(), libraries.end(),
             [](const LibraryUse& use) { return use.mirror == LibraryUse::Mirror::kLoaded; }) &&
         std::all_of(files.begin(), files.end(), [](const FileUse& use) { return use.mirrored(); });
}

ExecReport ReadExecReport(const std::filesystem::path& directory, LibraryVersion version_of) {
  const std::vector<Json> plugin = ReadLines(directory, ".jsonl");
  ExecReport report;
  report.libraries = JoinLibraries(plugin, ReadLines(directory, ".audit"), version_of);
  report.files = LastOfEachFile(plugin);
  return report;
}

Json ExecReportToJson(const ExecReport& report, int exit_code) {
  Json libraries = Json::array();
  for (const LibraryUse& use : report.libraries) {
    libraries.push_back(Json{{"version", use.version},
                             {"path", use.path},
                             {"program", use.program},
                             {"pid", use.pid},
                             {"mirrored", use.mirror == LibraryUse::Mirror::kLoaded}});
  }
  Json files = Json::array();
  for (const FileUse& use : report.files) {
    files.push_back(Json{{"local", use.file},
                         {"file", use.name},
                         {"server", use.server},
                         {"state", use.state},
                         {"mirrored", use.mirrored()},
                         {"version", use.version},
                         {"cut", use.cut},
                         {"pid", use.pid},
                         {"detail", use.detail}});
  }
  return Json{{"exit_code", exit_code},
              {"complete", report.complete()},
              {"libraries", libraries},
              {"files", files}};
}

}  // namespace h5mirror::tools
