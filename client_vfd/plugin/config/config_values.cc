#include "client_vfd/plugin/config/config_values.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "base/server_list.h"
#include "base/utf8.h"

namespace h5mirror::vfd {
namespace {

struct Unit {
  const char* name;
  uint64_t factor;
};

// Parses a non-negative number with an optional unit. False: it is not one, or is too large.
bool ParseWithUnit(const std::string& value, std::initializer_list<Unit> units, uint64_t* out) {
  double number = 0;
  const char* end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return false;
  std::string suffix(rest, end);
  while (!suffix.empty() && suffix.front() == ' ') suffix.erase(0, 1);
  for (const Unit& unit : units) {
    if (suffix != unit.name) continue;
    const double product = number * static_cast<double>(unit.factor);
    if (product > 9e18) return false;
    *out = static_cast<uint64_t>(product);
    return true;
  }
  return false;
}

}  // namespace

Problem SetText(const std::string& value, std::string* out) {
  *out = value;
  return std::nullopt;
}

Problem SetComment(const std::string& value, std::string* out) {
  if (!IsUtf8(value)) return "must be UTF-8";
  return SetText(value, out);
}

Problem SetAgent(const std::string& value, std::string* out) {
  if (value != "auto" && value != "off" && !value.starts_with('/')) {
    return "must be auto, off, or the absolute path of its socket";
  }
  *out = value;
  return std::nullopt;
}

Problem SetServers(const std::string& value, std::string* out) {
  ServerList list = ParseServerList(value);
  if (!list.problem.empty()) return std::move(list.problem);
  *out = value;
  return std::nullopt;
}

Problem SetAbsolutePath(const std::string& value, std::string* out) {
  if (value.empty() || value.front() != '/') return "must be an absolute path";
  *out = value;
  while (out->size() > 1 && out->back() == '/') out->pop_back();
  return std::nullopt;
}

Problem SetList(const std::string& value, std::vector<std::string>* out) {
  out->clear();
  for (size_t start = 0; start <= value.size();) {
    size_t comma = value.find(',', start);
    if (comma == std::string::npos) comma = value.size();
    if (comma > start) out->push_back(value.substr(start, comma - start));
    start = comma + 1;
  }
  return std::nullopt;
}

Problem SetSize(const std::string& value, uint64_t min, uint64_t max, uint64_t* out) {
  uint64_t bytes = 0;
  const bool parsed = ParseWithUnit(value,
                                    {{"", 1},
                                     {"K", 1 << 10},
                                     {"KiB", 1 << 10},
                                     {"M", 1 << 20},
                                     {"MiB", 1 << 20},
                                     {"G", 1 << 30},
                                     {"GiB", 1 << 30}},
                                    &bytes);
  if (!parsed) return "must be bytes, or a number with KiB, MiB or GiB";
  if (bytes < min || bytes > max) {
    return "must be " + std::to_string(min) + " to " + std::to_string(max) + " bytes";
  }
  *out = bytes;
  return std::nullopt;
}

Problem SetDurationMs(const std::string& value, uint32_t min, uint32_t max, uint32_t* out) {
  uint64_t ms = 0;
  if (!ParseWithUnit(
          value,
          {{"", 1000}, {"s", 1000}, {"ms", 1}, {"min", 60'000}, {"m", 60'000}, {"h", 3'600'000}},
          &ms)) {
    return "must be a time such as 5s, 500ms or 2min";
  }
  if (ms < min || ms > max) {
    return "must be " + std::to_string(min) + " ms to " + std::to_string(max / 1000) + " s";
  }
  *out = static_cast<uint32_t>(ms);
  return std::nullopt;
}

Problem SetPageSize(const std::string& value, uint32_t* out) {
  uint64_t bytes = 0;
  if (Problem problem = SetSize(value, 512, 65536, &bytes)) return problem;
  if ((bytes & (bytes - 1)) != 0) return "must be a power of two, 512 to 65536";
  *out = static_cast<uint32_t>(bytes);
  return std::nullopt;
}

Problem SetBandwidth(const std::string& value, uint64_t* out) {
  constexpr uint64_t kMin = 1 << 10, kMax = uint64_t{1} << 40;
  constexpr std::string_view kPerSecond = "/s";
  std::string size = value;
  if (size.ends_with(kPerSecond)) size.resize(size.size() - kPerSecond.size());
  uint64_t bytes = 0;
  const bool parsed = ParseWithUnit(size,
                                    {{"", 1},
                                     {"kB", 1000},
                                     {"KB", 1000},
                                     {"MB", 1'000'000},
                                     {"GB", 1'000'000'000},
                                     {"KiB", 1 << 10},
                                     {"MiB", 1 << 20},
                                     {"GiB", 1 << 30}},
                                    &bytes);
  if (!parsed) return "must be a rate such as 50MB/s or 10MiB/s, or 0 for no limit";
  if (bytes != 0 && (bytes < kMin || bytes > kMax)) return "must be 0, or 1KiB/s to 1024GiB/s";
  *out = bytes;
  return std::nullopt;
}

Problem SetOnOutage(const std::string& value, OnOutage* out, uint32_t* wait_ms) {
  constexpr std::string_view kWait = "wait";
  if (value.size() > kWait.size() && value.starts_with(kWait) &&
      (value[kWait.size()] == '=' || value[kWait.size()] == ':')) {
    Problem problem = SetDurationMs(value.substr(kWait.size() + 1), 10, 86'400'000, wait_ms);
    if (!problem) *out = OnOutage::kWait;
    return problem;
  }
  if (SetChoice<OnOutage>(
          value,
          {{"degrade", OnOutage::kDegrade}, {"wait", OnOutage::kWait}, {"fail", OnOutage::kFail}},
          out)) {
    return "must be degrade, wait, wait=TIME (such as wait=30s) or fail";
  }
  return std::nullopt;
}

Problem SetMode(const std::string& value, Mode* out) {
  return SetChoice<Mode>(value,
                         {{"mirror", Mode::kMirror},
                          {"remote", Mode::kRemote},
                          {"reader", Mode::kReader},
                          {"off", Mode::kOff}},
                         out);
}

Problem SetAck(const std::string& value, Ack* out) {
  return SetChoice<Ack>(
      value, {{"none", Ack::kNone}, {"applied", Ack::kApplied}, {"durable", Ack::kDurable}}, out);
}

}  // namespace h5mirror::vfd
