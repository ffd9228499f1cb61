// bench_access: how long the server takes to find the [[access]] table for a caller and a file.
//
//   bench_access [--rules 10000] [--users 1000] [--rounds 9]
//
// The tables: each user's own directory by name; directories of groups, for their members to write
// and for other groups to read; globs with wildcards in the middle; and at the end tables for all,
// and for the owners of files in `shared`. The owners of these files come from memory. The callers:
// users of a Unix socket in five groups each. One line of JSON on stdout: nanoseconds of one
// Authenticator::RightsTo(), the median of the rounds and their range, by the kind of file.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/strings.h"
#include "nlohmann/json.hpp"
#include "server/door/auth.h"

namespace h5mirror::bench {
namespace {

using server::AccessRule;
using server::Authenticator;
using server::Principal;
using server::Right;
using server::Rights;

constexpr int kGroups = 200;
constexpr int kGroupsOfUser = 5;
constexpr int kChecks = 20'000;

struct Options {
  int rules = 10'000;
  int users = 1'000;
  int rounds = 9;
};

std::string UserName(int i) { return StrCat("user", i); }
std::string GroupName(int i) { return StrCat("bl", i); }

std::vector<AccessRule> MakeRules(const Options& options) {
  const Rights read = *Rights::Parse("read");
  const Rights write = *Rights::Parse("read,write");
  std::vector<AccessRule> rules;
  for (int i = 0; i < options.users; ++i) {
    rules.push_back({.files = {StrCat("home/", UserName(i), "/**")},
                     .users = {UserName(i)},
                     .groups = {},
                     .allow = Rights::All(),
                     .source = ""});
  }
  for (int i = 0; static_cast<int>(rules.size()) < options.rules - 4; ++i) {
    const std::string place = StrCat("beamline/", GroupName(i % kGroups), "/run", i);
    const std::string group = GroupName((i + i % 3) % kGroups);
    const std::string glob = i % 4 == 0 ? StrCat(place, "/*/raw-?[0-9].h5") : StrCat(place, "/**");
    rules.push_back({.files = {glob},
                     .users = {},
                     .groups = {group},
                     .allow = i % 3 == 0 ? write : read,
                     .source = ""});
  }
  rules.push_back(
      {.files = {"home/${user}/**"}, .users = {}, .groups = {}, .allow = write, .source = ""});
  rules.push_back({.files = {"public/**"}, .users = {}, .groups = {}, .allow = read, .source = ""});
  rules.push_back({.files = {"shared/**"},
                   .owners = {"${user}"},
                   .users = {},
                   .groups = {},
                   .allow = write,
                   .source = ""});
  rules.push_back({.files = {"shared/**"}, .users = {}, .groups = {}, .allow = read, .source = ""});
  return rules;
}

std::vector<Principal> MakeCallers(const Options& options) {
  std::vector<Principal> callers;
  for (int i = 0; i < options.users; ++i) {
    auto user = std::make_shared<server::UnixUser>();
    user->name = UserName(i);
    for (int j = 0; j < kGroupsOfUser; ++j) {
      user->groups.push_back(GroupName((i * 7 + j * 13) % kGroups));
    }
    callers.push_back({.name = user->name,
                       .rights = Rights::All(),
                       .issuer = Principal::Issuer::kUnix,
                       .uid = static_cast<uid_t>(1000 + i),
                       .user = std::move(user)});
  }
  return callers;
}

// Files of one kind, one for each check.
std::vector<std::string> MakeFiles(const std::string& kind, const Options& options,
                                   std::mt19937& random) {
  std::vector<std::string> files;
  for (int i = 0; i < kChecks; ++i) {
    const int at = static_cast<int>(random() % 9'000);
    if (kind == "own") {
      files.push_back(StrCat("home/", UserName(i % options.users), "/2026/run.h5"));
    } else if (kind == "group") {
      files.push_back(StrCat("beamline/", GroupName(at % kGroups), "/run", at, "/a/raw-x7.h5"));
    } else if (kind == "public" || kind == "shared") {
      files.push_back(StrCat(kind, "/", at, "/run.h5"));
    } else {
      files.push_back(StrCat("nowhere/", at, "/run.h5"));
    }
  }
  return files;
}

// Nanoseconds of one check, the mean over all files.
double Measure(const Authenticator& authenticator, const std::vector<Principal>& callers,
               const std::vector<std::string>& files, int& allowed) {
  const auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < files.size(); ++i) {
    const Principal& caller = callers[i % callers.size()];
    allowed += authenticator.RightsTo(caller, files[i]).Has(Right::kRead) ? 1 : 0;
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / static_cast<double>(files.size());
}

void Run(const Options& options) {
  Authenticator authenticator;
  authenticator.SetRules(MakeRules(options));
  authenticator.SetOwners([](std::string_view) { return store::FileOwner{true, "unix:user7"}; });
  const std::vector<Principal> callers = MakeCallers(options);
  std::mt19937 random(1);
  nlohmann::ordered_json result{{"rules", options.rules}, {"users", options.users}};
  for (const std::string kind : {"own", "group", "public", "shared", "nowhere"}) {
    const std::vector<std::string> files = MakeFiles(kind, options, random);
    std::vector<double> rounds;
    int allowed = 0;
    for (int i = 0; i < options.rounds; ++i) {
      rounds.push_back(Measure(authenticator, callers, files, allowed));
    }
    std::sort(rounds.begin(), rounds.end());
    result[kind] = {{"ns", rounds[rounds.size() / 2]},
                    {"ns_min", rounds.front()},
                    {"ns_max", rounds.back()},
                    {"allowed", static_cast<double>(allowed) / (kChecks * options.rounds)}};
  }
  std::printf("%s\n", result.dump().c_str());
}

}  // namespace
}  // namespace h5mirror::bench

int main(int argc, char** argv) {
  h5mirror::bench::Options options;
  CLI::App app("How long the server takes to find the [[access]] table for a caller and a file");
  app.add_option("--rules", options.rules)->check(CLI::Range(10, 1'000'000));
  app.add_option("--users", options.users)->check(CLI::Range(1, 1'000'000));
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  h5mirror::bench::Run(options);
  return 0;
}
