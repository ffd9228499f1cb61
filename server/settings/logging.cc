#include "server/settings/logging.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "base/printable_message.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "grpc/support/log.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/basic_file_sink.h"
#include "spdlog/sinks/dist_sink.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

// One sink that stays, around the one that a SIGHUP replaces.
std::shared_ptr<spdlog::sinks::dist_sink_mt>& Outlet() {
  static auto* outlet = new std::shared_ptr<spdlog::sinks::dist_sink_mt>(
      std::make_shared<spdlog::sinks::dist_sink_mt>());
  return *outlet;
}

// sd-daemon(3): "<6>" and so on before each line.
class JournalPriority final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& dest) override {
    const char* prefix = "<7>";
    if (message.level >= spdlog::level::err) {
      prefix = "<3>";
    } else if (message.level == spdlog::level::warn) {
      prefix = "<4>";
    } else if (message.level == spdlog::level::info) {
      prefix = "<6>";
    }
    dest.append(prefix, prefix + 3);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JournalPriority>();
  }
};

// systemd.exec(5), JOURNAL_STREAM: device and inode of the journal's socket, for comparing.
bool StderrIsJournal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat info {};
  if (stream == nullptr || fstat(STDERR_FILENO, &info) != 0) return false;
  return StrCat(info.st_dev, ":", info.st_ino) == stream;
}

spdlog::sink_ptr MakeSink(const Config& config) {
  spdlog::sink_ptr sink;
  std::string pattern = "%Y-%m-%dT%H:%M:%S.%e%z %l: %v";
  if (!config.log_file.empty()) {
    sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(config.log_file.string());
  } else if (StderrIsJournal()) {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    pattern = "%*%v";
  } else {
    sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    pattern = "%Y-%m-%dT%H:%M:%S.%e%z %^%l%$: %v";
  }
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<JournalPriority>('*').add_flag<PrintableMessage>('v').set_pattern(pattern);
  sink->set_formatter(std::move(formatter));
  return sink;
}

void LogOfGrpc(gpr_log_func_args* message) {
  if (message->severity == GPR_LOG_SEVERITY_ERROR) {
    spdlog::debug("grpc: {}", message->message);
  }
}

// With GRPC_VERBOSITY set the operator wants to read all of it; GRPC_TRACE says of what.
void WholeLogOfGrpc(gpr_log_func_args* message) { spdlog::info("grpc: {}", message->message); }

}  // namespace

absl::Status StartLogging(const Config& config) {
  if (absl::Status status = ReopenLog(config); !status.ok()) return status;
  auto logger = std::make_shared<spdlog::logger>("h5mirrord", Outlet());
  logger->set_level(spdlog::level::from_str(config.log_level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  // Most "errors" of gRPC are connections that a client broke.
  gpr_set_log_function(getenv("GRPC_VERBOSITY") == nullptr ? LogOfGrpc : WholeLogOfGrpc);
  return absl::OkStatus();
}

absl::Status ReopenLog(const Config& config) {
  try {
    Outlet()->set_sinks({MakeSink(config)});
  } catch (const spdlog::spdlog_ex& error) {
    return absl::InvalidArgumentError(
        StrCat("log_file = \"", config.log_file.string(), "\": ", error.what()));
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::server
