#include "cli/exec/exec_report.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace h5mirror::tools {
namespace {

// All JSON objects in the files of the directory that end in `suffix`, by file name.
void ForEachLine(const std::filesystem::path& directory, const std::string& suffix,
                 absl::FunctionRef<void(const Json& line)> sink) {
  std::set<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() == suffix) paths.insert(entry.path());
  }
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (json.is_object()) sink(json);
    }
  }
}

std::string TextOf(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : "";
}

int64_t NumberOf(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<int64_t>() : 0;
}

// Gathers lines as they come: their number has no bound, that of libraries and files has.
class Gatherer {
 public:
  void TakeAudit(const Json& line) {
    libraries_[{NumberOf(line, "pid"), TextOf(line, "path")}].program = TextOf(line, "program");
  }

  void TakePlugin(const Json& line) {
    const LibraryKey key{NumberOf(line, "pid"), TextOf(line, "libhdf5_path")};
    if (!key.second.empty()) {
      LibraryUse& use = libraries_[key];
      use.version = TextOf(line, "libhdf5");
      if (TextOf(line, "event") == "connector_loaded") {
        use.has_connector = true;
        return;
      }
      use.mirror = LibraryUse::Mirror::kLoaded;
    }
    TakeFile(line);
  }

  std::vector<LibraryUse> Libraries(LibraryVersion version_of) && {
    std::vector<LibraryUse> result;
    for (auto& [key, use] : libraries_) {
      use.pid = key.first;
      use.path = key.second;
      if (use.mirror == LibraryUse::Mirror::kNever) use.version = version_of(use.path);
      result.push_back(std::move(use));
    }
    return result;
  }

  std::vector<FileUse> Files(IsRunning is_running) && {
    std::vector<FileUse> result;
    for (auto& [key, last] : files_) {
      FileUse& use = last.use;
      if (IsUnfinished(last)) use.state = is_running(use.pid) ? "open" : "writer_lost";
      result.push_back(std::move(use));
    }
    return result;
  }

 private:
  using LibraryKey = std::pair<int64_t, std::string>;             // pid, path of libhdf5
  using FileKey = std::tuple<std::string, std::string, int64_t>;  // file, server, pid
  struct Last {
    FileUse use;
    std::string event;
  };

  void TakeFile(const Json& line) {
    FileUse use;
    use.file = TextOf(line, "file");
    if (use.file.empty()) return;
    use.pid = NumberOf(line, "pid");
    use.name = TextOf(line, "name");
    use.server = TextOf(line, "server");
    use.state = TextOf(line, "state");
    use.detail = TextOf(line, "detail");
    use.cut = NumberOf(line, "cut");
    use.version = NumberOf(line, "version");
    Last& known = files_[{use.file, use.server, use.pid}];
    // A later open that changed nothing says nothing about what was mirrored before.
    if (use.state == "unchanged" && !known.use.file.empty()) return;
    known = {std::move(use), TextOf(line, "event")};
  }

  // A mirror that is off or has diverged stays so, whether the file was closed or not.
  static bool IsUnfinished(const Last& last) {
    const FileUse& use = last.use;
    return last.event != "close" && !use.left_out() && use.state != "off" &&
           use.state != "diverged";
  }

  std::map<LibraryKey, LibraryUse> libraries_;
  std::map<FileKey, Last> files_;
};

}  // namespace

bool ExecReport::complete() const {
  return !libraries.empty() &&
         std::all_of(
             libraries.begin(), libraries.end(),
             [](const LibraryUse& use) { return use.mirror == LibraryUse::Mirror::kLoaded; }) &&
         std::all_of(files.begin(), files.end(),
                     [](const FileUse& use) { return use.mirrored() || use.excluded(); });
}

ExecReport ReadExecReport(const std::filesystem::path& directory, LibraryVersion version_of,
                          IsRunning is_running) {
  Gatherer gatherer;
  ForEachLine(directory, ".jsonl", [&](const Json& line) { gatherer.TakePlugin(line); });
  ForEachLine(directory, ".audit", [&](const Json& line) { gatherer.TakeAudit(line); });
  ExecReport report;
  report.files = std::move(gatherer).Files(is_running);
  report.libraries = std::move(gatherer).Libraries(version_of);
  return report;
}

Json ExecReportToJson(const ExecReport& report, int exit_code) {
  Json libraries = Json::array();
  for (const LibraryUse& use : report.libraries) {
    libraries.push_back(Json{{"version", use.version},
                             {"path", use.path},
                             {"program", use.program},
                             {"pid", use.pid},
                             {"mirrored", use.mirror == LibraryUse::Mirror::kLoaded},
                             {"connector", use.has_connector}});
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
                         {"detail", use.detail},
                         {"way_out", use.way_out}});
  }
  return Json{{"exit_code", exit_code},
              {"complete", report.complete()},
              {"libraries", libraries},
              {"files", files}};
}

}  // namespace h5mirror::tools
