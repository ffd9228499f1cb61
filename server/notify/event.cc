#include "server/notify/event.h"

#include <limits.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"

namespace h5mirror::server {
namespace {

using Json = nlohmann::ordered_json;

std::string Rfc3339(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

}  // namespace

std::string ToJson(const Event& event, std::string_view host) {
  Json json;
  json["id"] = event.id;
  json["event"] = EventName(event.kind);
  json["time"] = Rfc3339(event.time);
  json["host"] = host;
  json["file"] = event.file.empty() ? Json(nullptr) : Json(event.file);
  json["text"] = event.text;
  json["numbers"] = Json::object();
  for (const auto& [name, value] : event.numbers) json["numbers"][name] = value;
  json["repeated"] = event.repeated;
  json["last_time"] = Rfc3339(event.last_time);
  return PrintableJson(json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace));
}

std::string Headline(const Event& event, std::string_view host) {
  std::string line = StrCat("h5mirror on ", Printable(host), ": ", EventName(event.kind));
  if (!event.file.empty()) StrAppend(&line, ": ", Printable(event.file));
  return line;
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = "";
  if (gethostname(name, sizeof name - 1) != 0) return "";
  return name;
}

}  // namespace h5mirror::server
