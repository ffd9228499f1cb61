#include "server/settings/config.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "archive/archive_url.h"
#include "base/human.h"
#include "base/nearest_name.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/toml_file.h"

namespace h5mirror::server {
namespace {

std::string SuggestionFor(std::string_view key) {
  std::vector<std::string_view> names;
  for (const ConfigKey& candidate : ConfigKeys()) names.push_back(candidate.name);
  return SuggestKey(key, names, "deploy/h5mirrord.toml shows all keys");
}

// The text of a value, as a flag would give it; empty status: not a kind that settings have.
absl::StatusOr<std::string> TextOf(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return absl::StrCat(number->get());
  if (const auto* flag = node.as_boolean()) return std::string(flag->get() ? "true" : "false");
  if (const auto* array = node.as_array()) {
    std::string joined;
    for (const toml::node& element : *array) {
      const auto* text = element.as_string();
      if (text == nullptr) return absl::InvalidArgumentError("an array holds strings only");
      absl::StrAppend(&joined, joined.empty() ? "" : ",", text->get());
    }
    return joined;
  }
  return absl::InvalidArgumentError("must be a string, a whole number or an array of strings");
}

// Each has a thread of its own.
constexpr size_t kNotifyTablesMax = 64;

bool IsTableKey(std::string_view key) {
  return key == "retention" || key == "access" || key == "limits" || key == "quota" ||
         key == "notify" || key == "cluster";
}

// One [[kind]] table: its keys, those of arrays one by one.
absl::StatusOr<Setting> TableSetting(const std::string& kind, const toml::node& node,
                                     const std::string& path) {
  const std::string source = StrCat(path, ":", node.source().begin.line);
  const auto* table = node.as_table();
  if (table == nullptr) {
    return absl::InvalidArgumentError(StrCat(source, ": ", kind, ": write tables, [[", kind, "]]"));
  }
  Setting setting{kind, "", source};
  for (const auto& [key, value] : *table) {
    const std::string name(key.str());
    const std::string at = StrCat(path, ":", value.source().begin.line);
    std::vector<const toml::node*> elements{&value};
    if (const auto* array = value.as_array()) {
      elements.clear();
      for (const toml::node& element : *array) elements.push_back(&element);
      if (elements.empty()) setting.parts.push_back({name, "", at, {}, /*is_empty_array=*/true});
    }
    for (const toml::node* element : elements) {
      auto text = TextOf(*element);
      if (!text.ok() || element->is_array()) {
        return absl::InvalidArgumentError(
            StrCat(at, ": ", name, ": must be a string, a whole number or an array of strings"));
      }
      setting.parts.push_back({name, *std::move(text), at});
    }
  }
  return setting;
}

absl::Status CheckLogins(const Config& config) {
  if (!config.HasLogins()) {
    if (config.jwt_issuer.empty() && config.jwt_audience.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "jwt_issuer and jwt_audience count for tokens that are verified with jwt_keys: set it "
        "to the issuer's JWKS file, or none of the three");
  }
  const std::string keys = StrCat("jwt_keys = \"", config.jwt_keys.string(), "\": ");
  if (config.jwt_issuer.empty() || config.jwt_audience.empty()) {
    return absl::InvalidArgumentError(
        StrCat(keys,
               "set jwt_issuer and jwt_audience too: without them tokens that the issuer "
               "made for other services would count here"));
  }
  if (config.jwt_user_claim.empty() || config.jwt_groups_claim.empty()) {
    return absl::InvalidArgumentError(
        StrCat(keys,
               "jwt_user_claim and jwt_groups_claim must name claims, as \"sub\" and "
               "\"groups\""));
  }
  return absl::OkStatus();
}

std::string OpenAddress(std::string_view key, std::string_view address) {
  return StrCat(
      key, " = \"", address, "\" can be reached from the network and wants TLS and tokens: ",
      "run `h5mirrord init`, then start with the configuration that it writes (tls_cert, ",
      "tls_key, tokens_file); or listen on 127.0.0.1 or unix:PATH and come in through ssh -L");
}

absl::Status CheckTls(const Config& config) {
  if (config.tls_cert.empty() != config.tls_key.empty()) {
    return absl::InvalidArgumentError(StrCat("tls_cert = \"", config.tls_cert.string(),
                                             "\" and tls_key = \"", config.tls_key.string(),
                                             "\": set both or neither"));
  }
  if (config.HasClientCertificates() && !config.HasTls()) {
    return absl::InvalidArgumentError(
        StrCat("tls_client_ca = \"", config.tls_client_ca.string(),
               "\": certificates of clients need TLS: set tls_cert and tls_key too"));
  }
  if (!config.tls_client_crl.empty() && !config.HasClientCertificates()) {
    return absl::InvalidArgumentError(
        StrCat("tls_client_crl = \"", config.tls_client_crl.string(), "\": set tls_client_ca too"));
  }
  return absl::OkStatus();
}

bool KnowsCallers(const Config& config) {
  return config.HasTokens() || config.HasClientCertificates() || config.HasLogins() ||
         config.HasMunge();
}

// An address of the network takes TLS, and callers that the server knows.
absl::Status CheckListeners(const Config& config) {
  const bool may_be_open = config.HasTls() && KnowsCallers(config);
  for (const auto* addresses : {&config.listen, &config.http_listen}) {
    const char* const key = addresses == &config.listen ? "listen" : "http_listen";
    for (const ListenAddress& address : *addresses) {
      if (address.reach != Reach::kNetwork || may_be_open) continue;
      return absl::InvalidArgumentError(OpenAddress(key, address.text));
    }
  }
  return absl::OkStatus();
}

struct Listener {
  const char* key;
  ListenAddress address;

  std::string Describe() const { return StrCat(key, " = \"", address.text, "\""); }
};

absl::StatusOr<std::vector<Listener>> ListenersOf(const Config& config) {
  std::vector<Listener> listeners;
  for (const ListenAddress& address : config.listen) listeners.push_back({"listen", address});
  for (const ListenAddress& address : config.http_listen) {
    listeners.push_back({"http_listen", address});
  }
  if (!config.metrics_listen.empty()) {
    H5M_ASSIGN_OR_RETURN(ListenAddress address, ParseListenAddress(config.metrics_listen));
    listeners.push_back({"metrics_listen", std::move(address)});
  }
  return listeners;
}

// Else the second one would fail at the start, with a hint at another program.
absl::Status CheckCollisions(const Config& config) {
  H5M_ASSIGN_OR_RETURN(const std::vector<Listener> listeners, ListenersOf(config));
  for (size_t i = 0; i < listeners.size(); ++i) {
    for (size_t earlier = 0; earlier < i; ++earlier) {
      if (!Collide(listeners[earlier].address, listeners[i].address)) continue;
      const bool is_unix = listeners[i].address.reach == Reach::kUnixSocket;
      return absl::InvalidArgumentError(
          StrCat(listeners[earlier].Describe(), " and ", listeners[i].Describe(), " collide: both ",
                 is_unix ? "are the same socket; give one of them another path"
                         : "take the same port; give one of them another port"));
    }
  }
  return absl::OkStatus();
}

// True: `inner` is `outer`, or lies below it. Both are absolute.
bool IsWithin(const std::filesystem::path& inner, const std::filesystem::path& outer) {
  const std::string below = StrCat(outer.lexically_normal().string(), "/");
  return StrCat(inner.lexically_normal().string(), "/").starts_with(below);
}

absl::Status CheckArchive(const Config& config) {
  if (!config.HasArchive()) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const archive::ArchiveUrl url, archive::ParseArchiveUrl(config.archive));
  if (url.directory.empty() || !IsWithin(url.directory, config.root)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("archive = \"", config.archive, "\" lies in the root ", config.root.string(),
             ": it would fill the same disk, and be served; name a directory of another disk"));
}

absl::Status CheckTogether(const Config& config) {
  if (const absl::Duration lag = config.max_lag * config.tick_len; lag > absl::Hours(24)) {
    return absl::InvalidArgumentError(
        StrCat("max_lag = ", config.max_lag, " with tick_len = ", HumanDuration(config.tick_len),
               " is ", HumanDuration(lag), ": must be 24 h at most, as snapshot_keep"));
  }
  if (config.root.empty()) {
    return absl::InvalidArgumentError(
        "root is not set: give --root DIR, as the service does (/var/lib/h5mirror), or root = "
        "\"DIR\" in the configuration file");
  }
  H5M_RETURN_IF_ERROR(CheckTls(config));
  H5M_RETURN_IF_ERROR(CheckLogins(config));
  H5M_RETURN_IF_ERROR(CheckListeners(config));
  H5M_RETURN_IF_ERROR(CheckCluster(config));
  H5M_RETURN_IF_ERROR(CheckArchive(config));
  return CheckCollisions(config);
}

// The rules of all [[kind]] tables.
template <typename Rule>
absl::StatusOr<std::vector<Rule>> MakeRules(absl::Span<const Setting> settings,
                                            std::string_view kind,
                                            absl::StatusOr<Rule> (*make)(const Setting& table)) {
  std::vector<Rule> rules;
  for (const Setting& setting : settings) {
    if (setting.key != kind) continue;
    H5M_ASSIGN_OR_RETURN(Rule rule, make(setting));
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace

std::string SuggestKey(std::string_view key, absl::Span<const std::string_view> names,
                       std::string_view otherwise) {
  // A short word is near to too many.
  const std::string_view best = NearestName(key, names, std::min<size_t>(3, key.size() / 3));
  return best.empty() ? std::string(otherwise) : StrCat("did you mean \"", best, "\"?");
}

namespace {

// An address that every process of this host may connect to without a name; nullopt: there is none.
// Addresses of the network are never open: CheckListeners().
std::optional<std::string> OpenToThisHost(const Config& config) {
  if (KnowsCallers(config) || !config.access.empty()) return std::nullopt;
  for (const auto* addresses : {&config.listen, &config.http_listen}) {
    const bool is_http = addresses == &config.http_listen;
    const char* const key = is_http ? "http_listen" : "listen";
    for (const ListenAddress& address : *addresses) {
      if (address.reach == Reach::kUnixSocket) continue;
      return StrCat(key, " = \"", address.text,
                    "\", and there are no tokens, certificates of clients or [[access]] tables: "
                    "every user of this machine can ",
                    is_http ? "read" : "read, change and remove",
                    " every file on this server; a Unix socket in its place (", key,
                    " = \"unix:PATH\") or tokens_file keeps others out");
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> WarningsOf(const Config& config) {
  std::vector<std::string> warnings;
  if (std::optional<std::string> open = OpenToThisHost(config)) {
    warnings.push_back(*std::move(open));
  }
  if (config.HasLogins() && config.access.empty()) {
    warnings.push_back(StrCat("jwt_keys = \"", config.jwt_keys.string(),
                              "\" and no [[access]] table: every user of ", config.jwt_issuer,
                              " with a token for ", config.jwt_audience, " may do everything"));
  }
  if (config.HasMunge() && config.access.empty()) {
    warnings.push_back(StrCat("munge_socket = \"", config.munge_socket.string(),
                              "\" and no [[access]] table: every user of this host, and of all "
                              "hosts with its munge key, may do everything"));
  }
  const bool has_users =
      !config.access.empty() &&
      std::any_of(config.listen.begin(), config.listen.end(),
                  [](const ListenAddress& address) { return address.reach == Reach::kUnixSocket; });
  if (config.owner_of_heads == store::HeadOwner::kAcl && !has_users) {
    warnings.push_back(
        "owner_of_heads = \"acl\", and no Unix socket in `listen` or no [[access]] table: no "
        "writer is known as a user of this host, so no head gets an access list");
  }
  return warnings;
}

bool Config::ProbesWindows() const {
  // With less, what a few dozen connections may share is hardly more than each has unprobed.
  constexpr uint64_t kProbeMemoryMin = uint64_t{512} << 20;
  if (window_probe != WindowProbe::kAuto) return window_probe == WindowProbe::kOn;
  if (memory_max_bytes < kProbeMemoryMin) return false;
  return std::any_of(listen.begin(), listen.end(),
                     [](const ListenAddress& address) { return address.reach == Reach::kNetwork; });
}

absl::StatusOr<std::vector<Setting>> ReadConfigFile(const std::filesystem::path& path) {
  H5M_ASSIGN_OR_RETURN(const toml::table table, ReadTomlFile(path));
  std::vector<Setting> settings;
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    const std::string source = StrCat(path.string(), ":", node.source().begin.line);
    if (name == "cluster") {
      if (!node.is_table()) {
        return absl::InvalidArgumentError(
            StrCat(source, ": cluster: write it in one pair of brackets, [cluster]"));
      }
      H5M_ASSIGN_OR_RETURN(Setting setting, TableSetting(name, node, path.string()));
      settings.push_back(std::move(setting));
      continue;
    }
    if (IsTableKey(name)) {
      const auto* tables = node.as_array();
      if (tables == nullptr) {
        return absl::InvalidArgumentError(
            StrCat(source, ": ", name, ": write it in two brackets, [[", name, "]]"));
      }
      for (const toml::node& table : *tables) {
        H5M_ASSIGN_OR_RETURN(Setting setting, TableSetting(name, table, path.string()));
        settings.push_back(std::move(setting));
      }
      continue;
    }
    if (FindConfigKey(name) == nullptr) {
      return absl::InvalidArgumentError(
          StrCat(source, ": unknown key \"", name, "\"; ", SuggestionFor(name)));
    }
    const ConfigKey& config_key = *FindConfigKey(name);
    if (config_key.value_name == "OCTAL" && node.is_integer()) {
      return absl::InvalidArgumentError(
          StrCat(source, ": ", name, ": write octal numbers in quotes, as in \"0027\""));
    }
    auto value = TextOf(node);
    if (!value.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": ", name, ": ", value.status().message()));
    }
    settings.push_back({name, *std::move(value), source});
  }
  return settings;
}

absl::StatusOr<std::vector<AccessRule>> MakeAccessRules(absl::Span<const Setting> settings) {
  return MakeRules<AccessRule>(settings, "access", MakeAccessRule);
}

absl::StatusOr<std::vector<QuotaRule>> MakeQuotaRules(absl::Span<const Setting> settings) {
  return MakeRules<QuotaRule>(settings, "quota", MakeQuotaRule);
}

absl::StatusOr<std::vector<NotifyRule>> MakeNotifyRules(absl::Span<const Setting> settings) {
  std::vector<NotifyRule> rules;
  for (const Setting& setting : settings) {
    if (setting.key != "notify") continue;
    H5M_ASSIGN_OR_RETURN(NotifyRule rule, MakeNotifyRule(setting));
    if (rules.size() >= kNotifyTablesMax) {
      return absl::InvalidArgumentError(StrCat(rule.source, ": [[notify]]: there may be ",
                                               kNotifyTablesMax, " such tables at most"));
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

absl::Status UnknownTableKey(std::string_view table, const Setting& part,
                             absl::Span<const std::string_view> names, std::string_view otherwise) {
  const std::string of_server =
      StrCat("it is one of the server itself, which stand before the first [[", table, "]]");
  if (FindConfigKey(part.key) != nullptr) otherwise = of_server;
  return absl::InvalidArgumentError(StrCat(part.source, ": unknown key \"", part.key, "\" in [[",
                                           table, "]]; ", SuggestKey(part.key, names, otherwise)));
}

absl::StatusOr<Config> MakeConfig(absl::Span<const Setting> settings) {
  Config config;
  H5M_ASSIGN_OR_RETURN(config.listen, ParseListenList("127.0.0.1:7447"));
  H5M_ASSIGN_OR_RETURN(config.access, MakeAccessRules(settings));
  H5M_ASSIGN_OR_RETURN(config.notify, MakeNotifyRules(settings));
  H5M_ASSIGN_OR_RETURN(config.limits, MakeLimitRules(settings));
  H5M_ASSIGN_OR_RETURN(config.quotas, MakeQuotaRules(settings));
  H5M_ASSIGN_OR_RETURN(config.cluster, MakeClusterSettings(settings));
  H5M_ASSIGN_OR_RETURN(config.retention,
                       MakeRules<RetentionRule>(settings, "retention", MakeRetentionRule));
  for (const Setting& setting : settings) {
    if (IsTableKey(setting.key)) continue;
    const ConfigKey* key = FindConfigKey(setting.key);
    if (key == nullptr) {
      return absl::InvalidArgumentError(StrCat(setting.source, ": unknown key \"", setting.key,
                                               "\"; ", SuggestionFor(setting.key)));
    }
    if (const absl::Status status = key->value.set(setting.text, config); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(setting.source, ": ", setting.key, " = \"",
                                                     setting.text, "\": ", status.message()));
    }
  }
  H5M_RETURN_IF_ERROR(CheckTogether(config));
  config.snapshot_keep = std::max(config.snapshot_keep, config.max_lag * config.tick_len);
  return config;
}

}  // namespace h5mirror::server
