#include "server/open_archive.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cluster/records.h"
#include "server/state/root_hint.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr char kOwnerFile[] = ".h5mirror/archive";
constexpr size_t kOwnerBytesMax = 64;
// The part of a cell that is all of the root. No other name becomes this: two digits follow a '_'.
constexpr std::string_view kWholeRoot = "_";
// A component of a path may have 255 bytes, and the rest of an object's name has some 130 of 512.
constexpr size_t kPartBytesMax = 200;

}  // namespace

// Unlike a hint it must not be lost: without it the archive would count as another root's.
absl::Status KeepArchive(Env& env, const std::filesystem::path& root, const std::string& owner) {
  return KeepRootFile(env, root, kOwnerFile, StrCat(owner, "\n"));
}

absl::StatusOr<std::string> KeptArchive(Env& env, const std::filesystem::path& root) {
  auto kept = ReadRootHint(env, root, kOwnerFile, kOwnerBytesMax);
  if (absl::IsNotFound(kept.status())) return std::string();
  H5M_RETURN_IF_ERROR(kept.status());
  return std::string(absl::StripAsciiWhitespace(*kept));
}

namespace {

absl::StatusOr<std::shared_ptr<archive::RootArchive>> Named(
    const Config& config, absl::StatusOr<std::unique_ptr<archive::RootArchive>> opened) {
  if (opened.ok()) return std::shared_ptr<archive::RootArchive>(*std::move(opened));
  return absl::Status(opened.status().code(), StrCat("archive = \"", config.archive,
                                                     "\": ", ToStd(opened.status().message())));
}

// How a root knows its archive again.
absl::Status SetOwner(Env& root_env, const std::filesystem::path& root,
                      archive::RootArchive::Settings* settings) {
  H5M_ASSIGN_OR_RETURN(settings->owner, KeptArchive(root_env, root));
  settings->keep_owner = [&root_env, root](const std::string& owner) {
    return KeepArchive(root_env, root, owner);
  };
  settings->owner_place = (root / kOwnerFile).string();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<archive::RootArchive>> OpenArchive(const Config& config,
                                                                  Env& root_env) {
  if (!config.HasArchive()) return nullptr;
  archive::RootArchive::Settings settings;
  settings.url = config.archive;
  settings.background_rate = config.archive_rate;
  H5M_RETURN_IF_ERROR(SetOwner(root_env, config.root, &settings));
  return Named(config, archive::RootArchive::Open(Env::Posix(), std::move(settings)));
}

absl::StatusOr<std::shared_ptr<archive::RootArchive>> OpenClusterArchive(const Config& config) {
  if (!config.HasArchive()) return nullptr;
  archive::RootArchive::Settings settings;
  settings.url = config.archive;
  settings.background_rate = config.archive_rate;
  return Named(config, archive::RootArchive::Open(Env::Posix(), std::move(settings)));
}

absl::StatusOr<std::shared_ptr<archive::RootArchive>> OpenCellArchive(
    const archive::RootArchive& of_server, const std::string& cell, Env& root_env,
    const std::filesystem::path& root) {
  archive::RootArchive::Settings settings;
  settings.part = PartOfCell(cell);
  absl::Status failed = SetOwner(root_env, root, &settings);
  if (failed.ok()) {
    auto opened = of_server.OpenPart(settings);
    if (opened.ok()) return std::shared_ptr<archive::RootArchive>(*std::move(opened));
    failed = opened.status();
  }
  spdlog::error("archive: the cell \"{}\" is served without its part: {}", cell,
                ToStd(failed.message()));
  H5M_ASSIGN_OR_RETURN(auto without,
                       of_server.OpenFailingPart(std::move(settings),
                                                 absl::FailedPreconditionError(failed.message())));
  return std::shared_ptr<archive::RootArchive>(std::move(without));
}

// One component, so that no cell's objects lie among those of another one.
std::string PartOfCell(std::string_view cell) {
  std::string part(kCellParts);
  if (cell.empty()) return StrCat(part, kWholeRoot);
  for (const char c : cell) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '-') {
      part += c;
    } else {
      absl::StrAppendFormat(&part, "_%02x", byte);
    }
  }
  return part;
}

std::optional<std::string> CellOfObject(std::string_view object) {
  if (!object.starts_with(kCellParts)) return std::nullopt;
  object.remove_prefix(kCellParts.size());
  const std::string_view part = object.substr(0, object.find('/'));
  if (part.size() == object.size()) return std::nullopt;
  std::string cell;
  for (size_t i = 0; i < part.size() && part != kWholeRoot; ++i) {
    if (part[i] != '_') {
      cell += part[i];
      continue;
    }
    uint32_t byte = 0;
    const std::string_view digits = part.substr(i + 1, 2);
    if (digits.size() < 2 || !absl::SimpleHexAtoi(ToAbsl(digits), &byte)) return std::nullopt;
    cell += static_cast<char>(byte);
    i += 2;
  }
  // An object with another name belongs to no cell.
  if (!cluster::CheckCellDirectory(cell).ok()) return std::nullopt;
  if (StrCat(kCellParts, part) != PartOfCell(cell)) return std::nullopt;
  return cell;
}

absl::Status CheckCellNames(absl::Span<const std::string> cells) {
  for (const std::string& cell : cells) {
    if (PartOfCell(cell).size() <= kPartBytesMax) continue;
    return absl::InvalidArgumentError(
        StrCat("the cell \"", cell, "\" has too long a name for an archive: it may take ",
               kPartBytesMax, " bytes there, and other bytes than letters, digits and '-' take 3"));
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::server
