#include "tests/sim/golden.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/strings.h"

namespace h5mirror::sim {
namespace {

constexpr size_t kVersionsMax = 1000;

// The first difference of two images.
std::string Difference(const std::string& is, const std::string& wanted) {
  const size_t both = std::min(is.size(), wanted.size());
  size_t at = 0;
  while (at < both && is[at] == wanted[at]) ++at;
  return absl::StrFormat("it has %s, wanted are %s; they differ from byte %d on", Summary(is),
                         Summary(wanted), at);
}

absl::StatusOr<std::string> ReadVersion(store::File& file, const store::VersionInfo& version) {
  auto reader = file.OpenVersion(version.version);
  if (!reader.ok()) return reader.status();
  std::string bytes(version.size_bytes, '\0');
  absl::Status read = (*reader)->Read(0, absl::MakeSpan(bytes));
  if (!read.ok()) return read;
  return bytes;
}

}  // namespace

std::string Summary(const std::string& bytes) {
  return absl::StrFormat("%d bytes, crc %08x", bytes.size(), Crc32c(bytes));
}

LocalFile* Golden::FileOf(const std::string& name) const {
  for (const auto& file : files_) {
    if (file->name() == name) return file.get();
  }
  return nullptr;
}

void Golden::NoteTime(int64_t time_ns) {
  auto& images = images_[time_ns];
  for (const auto& file : files_) {
    if (ImagePtr image = file->Snapshot()) images[file->name()] = std::move(image);
  }
}

void Golden::OnVisible(const std::string& name, const Bytes16& file_id, int64_t cut,
                       int64_t client_ns) {
  const auto closed = images_.find(client_ns);
  const bool known = closed != images_.end() && closed->second.count(name) != 0;
  if (!known) {
    return world_.Fail(StrCat(name, ": cut ", cut, " is of a state that no program closed"));
  }
  History& history = histories_[name][file_id];
  if (!history.cuts.emplace(cut, closed->second.at(name)).second) {
    world_.Fail(StrCat(name, ": cut number ", cut, " was given twice"));
  }
}

void Golden::OnDurable(const std::string& name, const Bytes16& file_id, int64_t cut,
                       int64_t version, bool unchanged) {
  History& history = histories_[name][file_id];
  const auto found = history.cuts.find(cut);
  if (found == history.cuts.end()) {
    return world_.Fail(StrCat(name, ": cut ", cut, " is said to be durable and never was visible"));
  }
  history.durable_cut = std::max(history.durable_cut, cut);
  if (version == 0 || unchanged || expected_ == Versions::kSome) return;
  const auto [known, is_new] = history.versions.emplace(version, found->second);
  if (!is_new && known->second->bytes != found->second->bytes) {
    world_.Fail(StrCat(name, ": version ", version, " was given to two states"));
  }
}

void Golden::Check(store::Store& server) {
  for (const auto& file : files_) CheckFile(server, *file);
}

void Golden::CheckFile(store::Store& server, const LocalFile& file) {
  const auto of_name = histories_.find(file.name());
  if (of_name == histories_.end()) return;
  const History* promised = nullptr;
  Bytes16 promised_id{};
  for (const auto& [file_id, history] : of_name->second) {
    if (history.durable_cut == 0) continue;
    if (promised != nullptr) {
      return world_.Fail(StrCat(file.name(), ": it has become another file"));
    }
    promised = &history;
    promised_id = file_id;
  }
  const auto opened = server.OpenFile(file.name());
  if (!opened.ok()) {
    if (promised == nullptr && absl::IsNotFound(opened.status())) return;
    return world_.Fail(StrCat(file.name(), ": ", opened.status().ToString()));
  }
  const auto info = (*opened)->Info();
  if (!info.ok()) return world_.Fail(StrCat(file.name(), ": ", info.status().ToString()));
  if (promised == nullptr) return;
  if (info->file_id != promised_id) {
    return world_.Fail(StrCat(file.name(), ": the server lost the file that had durable cuts"));
  }
  if (info->durable_cut < promised->durable_cut) {
    return world_.Fail(StrCat(file.name(), ": cut ", promised->durable_cut,
                              " was acked durable, the server is back at ", info->durable_cut));
  }
  const auto newest = promised->cuts.find(info->durable_cut);
  if (newest == promised->cuts.end()) {
    return world_.Fail(
        StrCat(file.name(), ": the server is at cut ", info->durable_cut, ", which nobody made"));
  }
  if (newest->second->number < file.acked_number) {
    return world_.Fail(StrCat(file.name(), ": the program was told that state ", file.acked_number,
                              " is durable, the server is at state ", newest->second->number));
  }
  CheckVersions(**opened, *promised);
}

void Golden::CheckVersions(store::File& file, const History& history) {
  const auto versions = file.ListVersions({}, kVersionsMax);
  if (!versions.ok()) return world_.Fail(StrCat(file.name(), ": ", versions.status().ToString()));
  std::map<int64_t, ImagePtr> missing = history.versions;
  for (const store::VersionInfo& version : *versions) {
    const std::string what =
        StrCat(file.name(), " version ", version.version, " (cut ", version.cut, ")");
    const auto told = missing.find(version.version);
    const auto cut = history.cuts.find(version.cut);
    if (cut == history.cuts.end()) return world_.Fail(StrCat(what, ": no such cut was made"));
    const ImagePtr wanted = told != missing.end() ? told->second : cut->second;
    const auto bytes = ReadVersion(file, version);
    if (!bytes.ok()) return world_.Fail(StrCat(what, ": ", bytes.status().ToString()));
    if (*bytes != wanted->bytes) {
      return world_.Fail(StrCat(what, ": ", Difference(*bytes, wanted->bytes)));
    }
    missing.erase(version.version);
  }
  if (!missing.empty()) {
    world_.Fail(
        StrCat(file.name(), ": version ", missing.begin()->first, " was acked and is gone"));
  }
}

ImagePtr Golden::NewestOf(const store::FileInfo& info) const {
  for (const auto& [name, histories] : histories_) {
    const auto history = histories.find(info.file_id);
    if (history == histories.end()) continue;
    const auto cut = history->second.cuts.find(info.durable_cut);
    return cut == history->second.cuts.end() ? nullptr : cut->second;
  }
  return nullptr;
}

void Golden::CheckHead(const LocalFile& file, const store::FileInfo& info,
                       const std::string& head) {
  const ImagePtr wanted = NewestOf(info);
  if (wanted == nullptr) {
    return world_.Fail(
        StrCat(file.name(), ": the head is at cut ", info.durable_cut, ", which nobody made"));
  }
  if (head != wanted->bytes) {
    world_.Fail(StrCat(file.name(), ": the head is not cut ", info.durable_cut, ": ",
                       Difference(head, wanted->bytes)));
  }
}

}  // namespace h5mirror::sim
