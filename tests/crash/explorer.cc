#include "tests/crash/explorer.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "gtest/gtest.h"
#include "tests/crash/check_store.h"

namespace h5mirror::store {
namespace {

// After so many mixtures without a new state hardly any are left: take another recording.
constexpr int kMixturesMax = 24;
constexpr int kRecordingsMax = 12;
constexpr size_t kSecondLossEvery = 8;
// In one of this many states a writer goes on before anything is applied.
constexpr uint64_t kGoingOnEvery = 3;

const char* NameOf(Unsynced unsynced) {
  switch (unsynced) {
    case Unsynced::kDropped:
      return "dropped";
    case Unsynced::kKept:
      return "kept";
    default:
      return "mixed";
  }
}
const char* NameOf(NameOrder order) {
  switch (order) {
    case NameOrder::kJournal:
      return "journal";
    case NameOrder::kPerDirectory:
      return "per-directory";
    default:
      return "whole-renames";
  }
}

absl::Status SaveBelow(EnvTree& tree, const std::string& name, const std::filesystem::path& to) {
  std::filesystem::create_directories(to);
  H5M_ASSIGN_OR_RETURN(auto entries, tree.List(name));
  for (const DirectoryEntry& entry : entries) {
    const std::string inner = StrCat(name, name.empty() ? "" : "/", entry.name);
    if (entry.kind == EntryKind::kDirectory) {
      H5M_RETURN_IF_ERROR(SaveBelow(tree, inner, to / entry.name));
      continue;
    }
    H5M_ASSIGN_OR_RETURN(auto file, tree.Open(inner, OpenKind::kRead, 0));
    H5M_ASSIGN_OR_RETURN(uint64_t size, file->Size());
    std::string bytes(size, '\0');
    H5M_RETURN_IF_ERROR(ReadOrZeros(*file, 0, absl::MakeSpan(bytes)));
    std::ofstream(to / entry.name, std::ios::binary) << bytes;
  }
  return absl::OkStatus();
}

void ListFiles(EnvTree& tree, const std::string& name, std::vector<std::string>* files) {
  auto entries = tree.List(name);
  if (!entries.ok()) return;
  for (const DirectoryEntry& entry : *entries) {
    const std::string inner = StrCat(name, name.empty() ? "" : "/", entry.name);
    if (entry.kind == EntryKind::kDirectory) {
      ListFiles(tree, inner, files);
    } else {
      files->push_back(inner);
    }
  }
}

bool IsStage(const std::string& name) {
  return absl::StartsWith(name.substr(name.rfind('/') + 1), "stage-");
}
bool HasSums(const std::string& name) {
  const std::string base = name.substr(name.rfind('/') + 1);
  return absl::EndsWith(base, ".h5") || absl::StartsWith(base, "head-") ||
         absl::StartsWith(base, "pages-") || absl::StartsWith(base, "sums-");
}

// Flips a random bit of a file that `may` rot. Returns a description; "": there is no such file.
std::string FlipAnyBit(FaultEnv& env, bool (*may)(const std::string&), std::mt19937_64& random) {
  auto tree = env.OpenTree("/");
  std::vector<std::string> files;
  ListFiles(**tree, "", &files);
  files.erase(std::remove_if(files.begin(), files.end(),
                             [&](const std::string& name) {
                               auto stat = (*tree)->Stat(name);
                               return !may(name) || !stat.ok() || stat->size_bytes == 0;
                             }),
              files.end());
  if (files.empty()) return "";
  const std::string& name = files[random() % files.size()];
  const uint64_t bit = random() % ((*tree)->Stat(name)->size_bytes * 8);
  return env.FlipBit(name, bit).ok() ? StrCat("bit ", bit, " of ", name) : "";
}

// The kinds of states at one moment: the clear ones, then mixtures.
std::vector<CrashPoint> PointsOf(int round, size_t change_count, std::mt19937_64& random) {
  CrashPoint point;
  point.change_count = change_count;
  if (round > 0) {
    point.seed = random();
    // Sometimes only data or only names are mixed: so one does not hide the effect of the other.
    if (random() % 4 == 0) point.data = random() % 2 ? Unsynced::kKept : Unsynced::kDropped;
    if (random() % 4 == 0) point.names = random() % 2 ? Unsynced::kKept : Unsynced::kDropped;
    point.order = random() % 2 ? NameOrder::kJournal : NameOrder::kPerDirectory;
    return {point};
  }
  std::vector<CrashPoint> points;
  for (NameOrder order : {NameOrder::kJournal, NameOrder::kPerDirectory}) {
    for (Unsynced data : {Unsynced::kDropped, Unsynced::kKept}) {
      for (Unsynced names : {Unsynced::kDropped, Unsynced::kKept}) {
        point.order = order;
        point.data = data;
        point.names = names;
        points.push_back(point);
      }
    }
  }
  return points;
}

class Explorer {
 public:
  Explorer(const Scenario& scenario, uint64_t seed, size_t wanted, const DiskFault& fault)
      : scenario_(scenario), seed_(seed), wanted_(wanted), fault_(fault) {}

  Exploration Run() {
    for (int i = 0; i < kRecordingsMax && found_.violation.empty(); ++i) {
      // The next recording is on the other kind of disk (Recording), and gets the second half.
      limit_ = i == 0 ? (wanted_ + 1) / 2 : wanted_;
      if (IsDone()) break;
      Recording recording(scenario_, seed_ + i, fault_);
      absl::Status end = recording.CheckEnd();
      if (!end.ok()) {
        found_.violation =
            StrCat("scenario ", scenario_.name, ", seed ", seed_ + i, ": ", ToStd(end.message()));
        break;
      }
      for (int round = 0; round <= kMixturesMax && !IsDone(); ++round) {
        const size_t before = found_.state_count;
        RunRound(recording, round);
        if (found_.state_count == before) break;
      }
    }
    return found_;
  }

 private:
  bool IsDone() const { return found_.state_count >= limit_ || !found_.violation.empty(); }

  // Goes over the whole record, in random order: if it ends early, it has been everywhere.
  void RunRound(const Recording& recording, int round) {
    std::mt19937_64 random(seed_ * 1'000'003 + round);
    std::vector<size_t> moments(recording.env().change_count() + 1);
    for (size_t i = 0; i < moments.size(); ++i) moments[i] = i;
    std::shuffle(moments.begin(), moments.end(), random);
    for (size_t moment : moments) {
      for (const CrashPoint& point : PointsOf(round, moment, random)) {
        if (IsDone()) return;
        CheckOne(recording, point);
      }
    }
  }

  void CheckOne(const Recording& recording, const CrashPoint& wanted) {
    const CrashPoint point = recording.env().Possible(wanted);
    std::unique_ptr<FaultEnv> crashed = recording.Crash(point);
    const uint64_t tree = crashed->Fingerprint();
    const uint64_t promised = recording.promises().CountAt(point.change_count);
    if (!checked_.insert(tree * 31 + promised).second) return;
    if (trees_.insert(tree).second) ++found_.state_count;
    const bool two = ++found_.check_count % kSecondLossEvery == 0;
    absl::Status kept = recording.CheckCrash(
        *crashed, point, two ? Recording::Losses::kTwo : Recording::Losses::kOne);
    if (kept.ok()) return;
    found_.violation =
        StrCat(ToStd(kept.message()), two ? "\n(a second power loss may be in it)" : "", "\nat ",
               recording.Describe(point));
    const std::string directory = testing::TempDir() + "/h5mirror-crash-" + scenario_.name;
    if (fault_.is_none() && SaveTree(*recording.Crash(point), directory).ok()) {
      StrAppend(&found_.violation, "\nwhat the power loss left is in ", directory);
    }
  }

  const Scenario& scenario_;
  const uint64_t seed_;
  const size_t wanted_;
  size_t limit_ = 0;  // of the states that are checked when the present recording is done
  const DiskFault& fault_;
  std::unordered_set<uint64_t> checked_, trees_;
  Exploration found_;
};

}  // namespace

Recording::Recording(const Scenario& scenario, uint64_t seed, DiskFault fault)
    : scenario_(scenario),
      seed_(seed),
      fault_(std::move(fault)),
      env_(std::make_unique<FaultEnv>()) {
  fault_.PlantIn(*env_);
  env_->SetGrowsAhead(seed % 2 == 0);  // as CephFS, or as a local disk
  Player player(*env_, seed, scenario.options, scenario.pace);
  player.Open();
  scenario.play(player);
  player.Close();
  played_ = player.status();
  promises_ = player.promises();
  steps_ = player.steps();
}

absl::Status Recording::CheckEnd() {
  if (!played_.ok()) {
    return absl::FailedPreconditionError(
        StrCat("\"", steps_.back().text, "\" failed: ", played_.ToString()));
  }
  std::unique_ptr<FaultEnv> now = env_->CopyNow();
  fault_.PlantIn(*now);
  Promises promised = promises_.At(env_->change_count());
  return CheckDisk(*now, scenario_.options, seed_, &promised);
}

std::unique_ptr<FaultEnv> Recording::Crash(const CrashPoint& point) const {
  std::unique_ptr<FaultEnv> crashed = env_->Crash(point);
  fault_.PlantIn(*crashed);
  return crashed;
}

absl::Status Recording::CheckCrash(FaultEnv& crashed, const CrashPoint& point,
                                   Losses losses) const {
  Promises promised = promises_.At(point.change_count);
  const uint64_t choice = point.change_count + point.seed;
  if (choice % kGoingOnEvery == 0) {
    std::unique_ptr<FaultEnv> copy = crashed.CopyNow();
    Promises before = promised;
    H5M_RETURN_IF_ERROR(CheckGoingOn(*copy, scenario_.options, choice / kGoingOnEvery, &before));
  }
  H5M_RETURN_IF_ERROR(CheckDisk(crashed, scenario_.options, choice, &promised));
  if (losses == Losses::kOne) return absl::OkStatus();
  std::mt19937_64 random(point.seed + point.change_count);
  CrashPoint again;
  again.change_count = random() % (crashed.change_count() + 1);
  again.order = random() % 2 ? NameOrder::kJournal : NameOrder::kPerDirectory;
  again.seed = random();
  std::unique_ptr<FaultEnv> twice = crashed.Crash(again);
  promised = promised.At(again.change_count);
  absl::Status kept = CheckDisk(*twice, scenario_.options, choice + 1, &promised);
  if (kept.ok()) return kept;
  return absl::FailedPreconditionError(StrCat(ToStd(kept.message()),
                                              "\nafter a second power loss at change ",
                                              again.change_count, " of the recovery"));
}

std::string Recording::Describe(const CrashPoint& point) const {
  std::string step = "(none)";
  for (const Player::Step& one : steps_) {
    if (one.change_count <= point.change_count) step = one.text;
  }
  const std::string last =
      point.change_count == 0 ? "(none)" : env_->DescribeChange(point.change_count - 1);
  std::string text =
      StrCat("scenario ", scenario_.name, ", seed ", seed_, ", in step \"", step,
             "\", after change ", point.change_count, " of ", env_->change_count(),
             ", which was \"", last, "\"; unsynced data ", NameOf(point.data), ", names ",
             NameOf(point.names), " (", NameOf(point.order), "), crash seed ", point.seed,
             "\nreplay: H5M_CRASH_REPLAY=", scenario_.name, ":", seed_, ":", point.change_count,
             ":", static_cast<int>(point.data), ":", static_cast<int>(point.names), ":",
             static_cast<int>(point.order), ":", point.seed,
             " test_bin/crash_test --gtest_filter='*Replay*'");
  if (scenario_.pace == Pace::kConcurrent) {
    text += "\n(threads take part in this scenario: a replay may need several tries)";
  }
  return text;
}

Exploration Explore(const Scenario& scenario, uint64_t seed, size_t state_count,
                    const DiskFault& fault) {
  return Explorer(scenario, seed, state_count, fault).Run();
}

Exploration ExploreRot(const Scenario& scenario, uint64_t seed, size_t flip_count,
                       const DiskFault& fault) {
  Exploration found;
  const Recording recording(scenario, seed, fault);
  std::mt19937_64 random(seed);
  while (found.check_count < flip_count) {
    CrashPoint point;
    point.data = point.names = Unsynced::kKept;
    point.change_count = random() % (recording.env().change_count() + 1);
    const bool in_stage = found.check_count++ % 4 == 0;
    auto rotten = in_stage ? recording.Crash(point) : recording.env().CopyNow();
    const std::string flipped = FlipAnyBit(*rotten, in_stage ? IsStage : HasSums, random);
    if (flipped.empty()) continue;
    ++found.state_count;
    absl::Status kept = CheckNoWrongBytes(*rotten, scenario.options, recording.promises());
    if (kept.ok()) continue;
    found.violation = StrCat(ToStd(kept.message()), "\nwith ", flipped, " flipped");
    if (in_stage) StrAppend(&found.violation, "\nat ", recording.Describe(point));
    break;
  }
  return found;
}

std::optional<Replay> ParseReplay(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ':');) parts.push_back(part);
  if (parts.size() != 7) return std::nullopt;
  auto number = [&](int i) { return std::strtoull(parts[i].c_str(), nullptr, 10); };
  Replay replay;
  replay.scenario = FindScenario(parts[0]);
  if (replay.scenario == nullptr) return std::nullopt;
  replay.seed = number(1);
  replay.point = {number(2), static_cast<Unsynced>(number(3)), static_cast<Unsynced>(number(4)),
                  static_cast<NameOrder>(number(5)), number(6)};
  return replay;
}

// Made under a name of this process: another process that checks the same scenario may save at the
// same time.
absl::Status SaveTree(FaultEnv& env, const std::string& directory) {
  H5M_ASSIGN_OR_RETURN(auto tree, env.OpenTree("/"));
  const std::string fresh = StrCat(directory, ".", getpid());
  std::error_code error;
  std::filesystem::remove_all(fresh, error);
  absl::Status saved = SaveBelow(*tree, "", fresh);
  if (saved.ok()) {
    std::filesystem::remove_all(directory, error);
    std::filesystem::rename(fresh, directory, error);
    if (error) saved = ErrnoToStatus(error.value(), StrCat("rename ", fresh));
  }
  if (!saved.ok()) std::filesystem::remove_all(fresh, error);
  return saved;
}

}  // namespace h5mirror::store
