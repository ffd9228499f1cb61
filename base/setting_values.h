// The settings of our daemons. A program lists its keys in one table of SettingKey over its own
// configuration. Name, help, range and text stand there once; flags, files and output use the
// table.
#ifndef H5MIRROR_BASE_SETTING_VALUES_H_
#define H5MIRROR_BASE_SETTING_VALUES_H_

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/human.h"

namespace h5mirror {

// How a field of a configuration is read and shown.
template <typename Config>
struct SettingValue {
  // Parses and checks `text`. kInvalidArgument says which values are allowed, and the field stays
  // as it was; the caller names key and value.
  std::function<absl::Status(std::string_view text, Config& config)> set;
  // The field's value as text for people.
  std::function<std::string(const Config& config)> show;
};

// One key: `tls_cert` in the file is the flag --tls-cert.
template <typename Config>
struct SettingKey {
  std::string_view name;
  std::string_view value_name;  // the word behind the flag in --help: SIZE, FILE, ...
  std::string_view help;
  SettingValue<Config> value;
};

// "--tls-cert" of "tls_cert".
std::string SettingFlag(std::string_view key);

// Values from `min` to `max`, both included. kInvalidArgument says the range, or the form if the
// text is no such value at all.
absl::StatusOr<uint64_t> ParseBytesIn(std::string_view text, uint64_t min, uint64_t max);
absl::StatusOr<absl::Duration> ParseDurationIn(std::string_view text, absl::Duration min,
                                               absl::Duration max);
absl::StatusOr<int> ParseIntIn(std::string_view text, int min, int max);

// Permissions as chmod(1) has them: one to five octal digits, at most `max`.
// kInvalidArgument says the range and gives an example.
absl::StatusOr<uint32_t> ParseOctal(std::string_view text, uint32_t max);
std::string ShowOctal(uint32_t bits);

// Made absolute, without "." and ".."; empty stays empty. kInvalidArgument: a NUL byte.
absl::StatusOr<std::filesystem::path> ParsePath(std::string_view text);

// kInvalidArgument: `text` is none of `words`, which the message lists.
absl::StatusOr<size_t> FindWord(std::string_view text, const std::vector<std::string_view>& words);

// A field whose value `parse` makes from the text, or says why it cannot; `show` makes it text
// again.
template <typename Config, typename Field, typename Parse, typename Show>
SettingValue<Config> ParsedBy(Field Config::*field, Parse parse, Show show) {
  return {[field, parse](std::string_view text, Config& config) -> absl::Status {
            absl::StatusOr<Field> value = parse(text);
            if (value.ok()) config.*field = *std::move(value);
            return value.status();
          },
          [field, show](const Config& config) -> std::string { return show(config.*field); }};
}

template <typename Config>
SettingValue<Config> BytesIn(uint64_t Config::*field, uint64_t min, uint64_t max) {
  return ParsedBy(
      field, [=](std::string_view text) { return ParseBytesIn(text, min, max); }, HumanBytes);
}

template <typename Config>
SettingValue<Config> DurationIn(absl::Duration Config::*field, absl::Duration min,
                                absl::Duration max) {
  return ParsedBy(
      field, [=](std::string_view text) { return ParseDurationIn(text, min, max); }, HumanDuration);
}

template <typename Config>
SettingValue<Config> IntIn(int Config::*field, int min, int max) {
  return ParsedBy(
      field, [=](std::string_view text) { return ParseIntIn(text, min, max); },
      [](int value) { return std::to_string(value); });
}

template <typename Config>
SettingValue<Config> Permissions(uint32_t Config::*field) {
  return ParsedBy(
      field, [](std::string_view text) { return ParseOctal(text, 0777); }, ShowOctal);
}

template <typename Config>
SettingValue<Config> Path(std::filesystem::path Config::*field) {
  return ParsedBy(field, ParsePath,
                  [](const std::filesystem::path& path) { return path.string(); });
}

template <typename Config>
SettingValue<Config> AnyText(std::string Config::*field) {
  return ParsedBy(
      field, [](std::string_view text) { return absl::StatusOr<std::string>(std::string(text)); },
      [](const std::string& text) { return text; });
}

// Each word stands for one value of the field.
template <typename Config, typename Field>
SettingValue<Config> OneOf(Field Config::*field, std::vector<std::string_view> words,
                           std::vector<Field> values) {
  return ParsedBy(
      field,
      [=](std::string_view text) -> absl::StatusOr<Field> {
        const absl::StatusOr<size_t> found = FindWord(text, words);
        if (!found.ok()) return found.status();
        return values[*found];
      },
      [=](const Field& value) {
        const auto found = std::find(values.begin(), values.end(), value);
        return std::string(words[static_cast<size_t>(found - values.begin())]);
      });
}

template <typename Config>
SettingValue<Config> LogLevel(std::string Config::*field) {
  return OneOf(field, {"debug", "info", "warn", "error"}, {"debug", "info", "warn", "error"});
}

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_SETTING_VALUES_H_
