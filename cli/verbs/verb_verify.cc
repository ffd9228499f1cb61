// h5mirror verify: a file's history against its checksums.
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "base/cli_checks.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/connected_file.h"
#include "cli/output/progress.h"
#include "cli/output/text.h"
#include "cli/verbs/open_versions.h"
#include "cli/verbs/verb_verify.h"
#include "cli/verbs/verbs.h"

namespace h5mirror::tools {
namespace {

struct Options {
  std::string file;
  std::string subset;
  bool open_versions = false;
  AgainstOptions against;
};

std::string_view PlaceName(v1::DamagePlace place) {
  switch (place) {
    case v1::DAMAGE_PLACE_INDEX:
      return "index";
    case v1::DAMAGE_PLACE_HEAD:
      return "head";
    case v1::DAMAGE_PLACE_STAGE:
      return "stage";
    case v1::DAMAGE_PLACE_PAGES:
      return "pages";
    case v1::DAMAGE_PLACE_UNSPECIFIED:
      return "version";
    default:
      return "unknown";
  }
}

// "n/t", or "x%", which is a part of the data that changes from hour to hour.
absl::Status SetSubset(const std::string& text, absl::Time now, v1::VerifyHistoryRequest& request) {
  if (text.empty()) return absl::OkStatus();
  int64_t part = 0, count = 0;
  double percent = 0;
  const size_t slash = text.find('/');
  if (slash != std::string::npos && absl::SimpleAtoi(text.substr(0, slash), &part) &&
      absl::SimpleAtoi(text.substr(slash + 1), &count) && part >= 1 && part <= count &&
      count <= 1'000'000) {
    request.set_subset(part);
    request.set_subset_count(count);
    return absl::OkStatus();
  }
  if (absl::EndsWith(text, "%") && absl::SimpleAtod(text.substr(0, text.size() - 1), &percent) &&
      percent >= 0.001 && percent <= 100) {
    count = static_cast<int64_t>(100 / percent);
    request.set_subset_count(count);
    request.set_subset(absl::ToUnixSeconds(now) / 3600 % count + 1);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat("--read-data-subset ", text,
             ": write n/t, the n-th of t parts (1/7 ... 7/7 are all), or x%, from 0.001% to 100%"));
}

Json DamageToJson(const v1::Damage& damage) {
  return Json{{"place", PlaceName(damage.place())},
              {"file", damage.file()},
              {"offset", damage.offset()},
              {"oldest_version", damage.oldest_version()},
              {"newest_version", damage.newest_version()},
              {"message", damage.message()}};
}

std::string VersionsOf(const v1::Damage& damage) {
  if (damage.newest_version() == 0) return "-";
  if (damage.oldest_version() == damage.newest_version()) return StrCat(damage.newest_version());
  return StrCat(damage.oldest_version(), "-", damage.newest_version());
}

// A version that HDF5 does not open, as damage.
v1::Damage BadVersion(const std::string& file, int64_t version, const std::string& message) {
  v1::Damage damage;
  damage.set_file(file);
  damage.set_oldest_version(version);
  damage.set_newest_version(version);
  damage.set_message(message);
  return damage;
}

absl::StatusOr<int> RunVerify(Context& context, const Options& options,
                              const VersionOpener& opener) {
  v1::VerifyHistoryRequest request;
  if (options.file.empty()) {
    return absl::InvalidArgumentError("verify wants a FILE, or --against LOCAL");
  }
  H5M_RETURN_IF_ERROR(SetSubset(options.subset, absl::Now(), request));
  H5M_ASSIGN_OR_RETURN(const ConnectedFile file, ConnectFile(context, options.file));
  request.set_name(file.name);
  Json found = Json::array();
  Table table({{"PLACE", Align::kLeft},
               {"OFFSET", Align::kRight},
               {"VERSIONS", Align::kLeft},
               {"FILE", Align::kLeft},
               {"DAMAGE", Align::kLeft}});
  int64_t damaged = 0, checked_bytes = 0, opened = 0;
  bool complete = false;
  const auto note = [&](const v1::Damage& damage) {
    ++damaged;
    if (context.json()) return found.push_back(DamageToJson(damage));
    table.AddRow({std::string(PlaceName(damage.place())), StrCat(damage.offset()),
                  VersionsOf(damage), damage.file(), damage.message()});
  };
  {
    Progress progress(context.streams(), StrCat("verify ", file.name), 0);
    H5M_RETURN_IF_ERROR(
        file.client->VerifyHistory(request, [&](const v1::VerifyHistoryResponse& message) {
          for (const v1::Damage& damage : message.damage()) note(damage);
          checked_bytes = message.checked_bytes();
          complete = message.complete();
          progress.set_total_bytes(static_cast<uint64_t>(message.total_bytes()));
          progress.Update(static_cast<uint64_t>(message.checked_bytes()));
          return absl::OkStatus();
        }));
  }
  if (options.open_versions) {
    const auto bad = [&](int64_t version, const std::string& message) {
      note(BadVersion(file.name, version, message));
    };
    H5M_ASSIGN_OR_RETURN(opened, OpenEveryVersion(context, *file.client, file.name, opener, bad));
  }
  if (context.json()) {
    context.Print(Json{{"file", file.name},
                       {"damage", found},
                       {"checked_bytes", checked_bytes},
                       {"opened_versions", options.open_versions ? Json(opened) : Json()},
                       {"complete", complete}});
  } else {
    if (damaged > 0) context.Print(table);
    context.Say(StrCat(file.name, ": ", HumanBytes(static_cast<uint64_t>(checked_bytes)),
                       " checked, ",
                       options.open_versions ? StrCat(opened, " versions opened with HDF5, ") : "",
                       damaged == 0 ? "no damage" : StrCat(damaged, " damaged")));
  }
  if (damaged > 0) return kExitDataLoss;
  return complete ? kExitOk : kExitFailure;
}

}  // namespace

void AddVerify(CLI::App& app, Context& context, const std::vector<std::string>& arguments,
               const VersionOpener& opener, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "verify", "Check a file's history against its checksums, or a local file against its mirror");
  verb->add_option("FILE", options->file, kFileHelp);
  CLI::Option* subset =
      verb->add_option("--read-data-subset", options->subset,
                       "read only the n-th of t parts (n/t), or some x% of the data");
  CLI::Option* open =
      verb->add_flag("--open-versions", options->open_versions,
                     "open every version with HDF5 too, and look at all objects in it");
  CLI::Option* against = verb->add_option(
      "--against", options->against.local,
      "compare this local file, closed or being written, with its mirror, by digests");
  against->excludes(subset)->excludes(open);
  verb->add_option("--every", options->against.every, "go on, and check this often (24h, 7d)")
      ->needs(against);
  verb->add_option("--wait", options->against.wait_seconds,
                   "seconds to wait for the next flush or close of a program that writes it")
      ->needs(against)
      ->capture_default_str()
      ->check(AnyNumber(1, 3600));
  verb->callback([&context, &action, &arguments, &opener, options] {
    action = [&context, &arguments, &opener, options]() -> absl::StatusOr<int> {
      if (!options->against.local.empty()) {
        options->against.file = options->file;
        return RunVerifyAgainst(context, options->against);
      }
      if (options->open_versions && opener == nullptr) {
        return RunHdf5Helper("verify --open-versions", arguments);
      }
      return RunVerify(context, *options, opener);
    };
  });
}

}  // namespace h5mirror::tools
