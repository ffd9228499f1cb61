// The [[notify]] tables of the configuration: the receivers of events.
#ifndef H5MIRROR_SERVER_SETTINGS_NOTIFY_RULES_H_
#define H5MIRROR_SERVER_SETTINGS_NOTIFY_RULES_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/settings/event_kind.h"

namespace h5mirror::server {

struct Setting;

enum class ReceiverKind { kUrl, kCommand, kMail };
inline constexpr size_t kReceiverKinds = 3;

// "url", "command" or "mail", as the key.
std::string_view ReceiverName(ReceiverKind kind);

struct NotifyRule {
  std::vector<EventKind> events;   // empty: all
  std::vector<std::string> files;  // globs of names under the root (base/glob.h); empty: all
  // The receiver: one of url, command and mail is set.
  std::string url;
  std::filesystem::path secret_file;  // of url: the key of its signatures; empty: none
  std::filesystem::path ca_file;      // of url; empty: the authorities of the system
  std::vector<std::string> command;   // an absolute path, and its arguments
  std::vector<std::string> mail;      // addresses
  std::filesystem::path sendmail = "/usr/sbin/sendmail";
  std::string source;  // "/etc/h5mirror/h5mirrord.toml:12"

  ReceiverKind kind() const;
  // True: the receiver is to be told of `event` of `file`. An event without a file is of all.
  bool Takes(EventKind event, std::string_view file) const;
  // Whether both name the same receiver, with any events, files and signature.
  bool HasReceiverOf(const NotifyRule& other) const;
  // For logs: "url https://hooks.example", without the path, which may hold a secret.
  std::string Label() const;
};

// The rule of one [[notify]] table. kInvalidArgument names its source, key and value.
absl::StatusOr<NotifyRule> MakeNotifyRule(const Setting& table);

// The rule as a table of the configuration. Of a URL, the origin alone is shown.
std::string Describe(const NotifyRule& rule);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_NOTIFY_RULES_H_
