#include "client_vfd/plugin/host/reporter.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>

#include "base/utf8.h"
#include "base/write_signals.h"
#include "client_vfd/plugin/host/standard_error.h"
#include "client_vfd/plugin/host/told_once.h"

namespace h5mirror::vfd {
namespace {

// One write(2), which ends the program neither where nobody reads any more nor at `ulimit -f`.
void WriteLine(int fd, const std::string& line) {
  const WriteSignalBlock block;
  [[maybe_unused]] const ssize_t written = write(fd, line.data(), line.size());
}

// With O_APPEND, so that lines of several threads and processes stay whole.
void AppendLine(const std::string& path, const std::string& line) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return;
  WriteLine(fd, line);
  close(fd);
}

std::string DatedUtc() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  tm utc;
  gmtime_r(&now.tv_sec, &utc);
  std::array<char, 40> text;
  const size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::array<char, 8> millis;
  std::snprintf(millis.data(), millis.size(), ".%03ldZ", (now.tv_nsec / 1'000'000) % 1000);
  return std::string(text.data(), length) + millis.data();
}

}  // namespace

std::string JsonString(const std::string& text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const size_t length = CharacterBytes(std::string_view(text).substr(i));
    const char c = text[i];
    if (length == 0) {
      std::array<char, 8> escaped;
      std::snprintf(escaped.data(), escaped.size(), "\\\\x%02x",
                    static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += escaped.data();
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escaped;
      std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(c));
      out += escaped.data();
    } else {
      out.append(text, i, length);
    }
    i += length == 0 ? 1 : length;
  }
  return PrintableJson(out + "\"");
}

void Say(const std::string& log_path, Audience audience, const std::string& foreign_text) {
  const std::string text = Printable(foreign_text);
  if (audience == Audience::kUserToo && FirstStandardError().IsThere()) {
    WriteLine(STDERR_FILENO, "h5mirror: " + text + "\n");
  }
  if (!log_path.empty()) {
    AppendLine(log_path, DatedUtc() + " [" + std::to_string(getpid()) + "] " + text + "\n");
  }
}

void Report(const HostLibrary& host, const ReportLine& line) {
  const char* directory = std::getenv("H5MIRROR_REPORT");
  if (directory == nullptr || *directory == '\0') return;
  const std::string pid = std::to_string(getpid());
  std::string json = "{\"event\":" + JsonString(line.event) + ",\"pid\":" + pid +
                     ",\"libhdf5\":" + JsonString(host.version) +
                     ",\"libhdf5_path\":" + JsonString(host.path);
  if (!line.file.empty()) {
    json += ",\"file\":" + JsonString(line.file) + ",\"name\":" + JsonString(line.name) +
            ",\"server\":" + JsonString(line.server) + ",\"state\":" + JsonString(line.state) +
            ",\"cut\":" + std::to_string(line.cut) +
            ",\"version\":" + std::to_string(line.version) +
            ",\"detail\":" + JsonString(line.detail);
  }
  AppendLine(std::string(directory) + "/" + pid + ".jsonl", json + "}\n");
}

void ReportLeftOut(const HostLibrary& host, const std::string& log_path,
                   const std::string& real_path, const std::string& why) {
  static auto* const told = new ToldOnce;
  if (!told->IsNews(real_path, std::to_string(getpid()) + why)) return;
  Say(log_path, Audience::kLogOnly, real_path + " is NOT mirrored: " + why);
  ReportLine line;
  line.event = line.state = "left_out";
  line.file = real_path;
  line.detail = why;
  Report(host, line);
}

void ReportLoaded(const HostLibrary& host, const char* event) {
  static auto* mutex = new std::mutex;
  static auto* reported = new std::map<const HostLibrary*, pid_t>;
  if (std::getenv("H5MIRROR_REPORT") == nullptr) return;
  {
    std::lock_guard lock(*mutex);
    pid_t& pid = (*reported)[&host];
    if (pid == getpid()) return;
    pid = getpid();
  }
  ReportLine line;
  line.event = event;
  Report(host, line);
}

}  // namespace h5mirror::vfd
