#include "onion_store/shared/time_keeper.h"

#include <algorithm>
#include <utility>

#include "base/human.h"
#include "base/strings.h"
#include "nlohmann/json.hpp"

namespace h5mirror::store {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;
// The two clocks may differ by this much although no clock was set: drift, and corrections of NTP.
constexpr absl::Duration kSlack = absl::Hours(1);
// How far ahead the clock may be set while the machine runs, and after it was off.
constexpr absl::Duration kAheadMax = absl::Hours(7 * 24);
constexpr absl::Duration kOffMax = absl::Hours(366 * 24);
// How long a newly set clock is watched before it makes anything expire.
constexpr absl::Duration kSettle = absl::Hours(1);
constexpr absl::Duration kSettleLong = absl::Hours(24);
constexpr absl::Duration kNotePeriod = absl::Minutes(10);
// Two clocks that were read within this time show one moment.
constexpr absl::Duration kOneMoment = absl::Milliseconds(100);
constexpr int kReadingsMax = 5;
constexpr size_t kNoteBytesMax = 4096;

// This program is younger: a clock that shows an earlier time was never set.
absl::Time Oldest() { return absl::FromUnixSeconds(1'704'067'200); }  // 2024-01-01 UTC

struct Noted {
  absl::Time time, floor;
  absl::Duration since, unsettled;
  std::string boot_id;
};

std::optional<Noted> ReadNote(EnvTree& tree, const std::string& name) {
  const auto file = tree.Open(name, OpenKind::kRead, 0);
  if (!file.ok()) return std::nullopt;
  std::string text(kNoteBytesMax, '\0');
  const auto got = (*file)->ReadAt(0, absl::MakeSpan(text));
  if (!got.ok()) return std::nullopt;
  text.resize(*got);
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto number = [&](const char* key) -> int64_t {
    const auto found = json.find(key);
    return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : -1;
  };
  if (!json.is_object() || number("format") != kFormat || !json.contains("boot_id") ||
      !json["boot_id"].is_string()) {
    return std::nullopt;
  }
  for (const char* key : {"time_ns", "floor_ns", "since_boot_ns", "unsettled_ns"}) {
    if (number(key) < 0) return std::nullopt;
  }
  return Noted{absl::FromUnixNanos(number("time_ns")), absl::FromUnixNanos(number("floor_ns")),
               absl::Nanoseconds(number("since_boot_ns")),
               absl::Nanoseconds(number("unsettled_ns")), json["boot_id"].get<std::string>()};
}

}  // namespace

TimeKeeper::TimeKeeper(Env& env, std::function<void(std::string)> tell)
    : env_(env),
      boot_(dynamic_cast<KnowsBootTime*>(&env)),
      tell_(std::move(tell)),
      floor_(Oldest()) {}

void TimeKeeper::Open(EnvTree& tree, std::string name, std::optional<absl::Time> at_least) {
  const std::optional<BootTime> boot = SinceBoot();
  if (!boot) return;
  Told told;
  {
    absl::MutexLock lock(&mutex_);
    tree_ = &tree;
    name_ = std::move(name);
    right_since_ = boot->since;
    const std::optional<Noted> noted = ReadNote(tree, name_);
    if (noted) {
      time_ = noted->time;
      floor_ = std::max(floor_, noted->floor);
      was_off_ = noted->boot_id != boot->boot_id || noted->since > boot->since;
      since_ = was_off_ ? boot->since : noted->since;
      settled_ = boot->since + std::min(noted->unsettled, kSettleLong);
      why_unsettled_ = "the clock was set before the restart";
      started_ = true;
    } else if (at_least) {
      time_ = *at_least;
      since_ = boot->since;
      was_off_ = started_ = true;
    }
    Look(&told);
  }
  Tell(told);
  Note();
}

void TimeKeeper::Take(absl::Time machine, absl::Duration since) {
  time_ = machine;
  since_ = since;
  goes_alone_ = was_off_ = false;
}

// A process that is stopped between the two readings, or with its machine, would seem to see a
// clock that went back: so both are read again. On a machine that is never fast enough, the last
// readings count.
TimeKeeper::Clocks TimeKeeper::ReadClocks() const {
  std::optional<BootTime> before = SinceBoot();
  for (int reading = 1;; ++reading) {
    const absl::Time machine = env_.Now();
    std::optional<BootTime> after = SinceBoot();
    const bool at_once = !before || !after || after->since - before->since <= kOneMoment;
    if (at_once || reading == kReadingsMax) return {machine, std::move(after)};
    before = std::move(after);
  }
}

TimeKeeper::Reading TimeKeeper::Look(Told* told) {
  const auto [machine, boot] = ReadClocks();
  if (!boot) return {machine, machine};
  const absl::Duration since = boot->since;
  if (!std::exchange(started_, true)) {
    Take(machine, since);
    right_since_ = since;
  }
  const absl::Time here = time_ + (since - since_);
  if (absl::AbsDuration(machine - here) <= kSlack) {
    Agree(machine, since, told);
    return {machine, machine};
  }
  if (IsBelieved(machine, here)) {
    Believe(machine, here, since, told);
    return {machine, machine};
  }
  if (!std::exchange(goes_alone_, true)) *told = DisbeliefText(machine, here);
  return {here, machine};
}

void TimeKeeper::Agree(absl::Time machine, absl::Duration since, Told* told) {
  if (goes_alone_) {
    *told = StrCat("the machine's clock is right again: ", HumanTime(machine));
    right_since_ = since;
  }
  Take(machine, since);
  if (since - right_since_ >= kSettleLong && since >= settled_) floor_ = machine;
}

bool TimeKeeper::IsBelieved(absl::Time machine, absl::Time here) const {
  if (machine <= here) return machine >= floor_;
  return here < Oldest() || machine - here <= (was_off_ ? kOffMax : kAheadMax);
}

void TimeKeeper::Believe(absl::Time machine, absl::Time here, absl::Duration since, Told* told) {
  const absl::Duration off_by = absl::AbsDuration(machine - here);
  const char* how = was_off_ ? "while the server was off" : "while the server was running";
  why_unsettled_ = StrCat("the machine's clock went ", machine > here ? "on" : "back", " by ",
                          HumanDuration(off_by), ", to ", HumanTime(machine), ", ", how);
  settled_ = since + (off_by > kAheadMax ? kSettleLong : kSettle);
  right_since_ = since;
  *told = StrCat(why_unsettled_, ": what expires by age waits for ",
                 HumanDuration(settled_ - since), " more");
  Take(machine, since);
}

std::string TimeKeeper::DisbeliefText(absl::Time machine, absl::Time here) const {
  return StrCat("the machine's clock shows ", HumanTime(machine), ", which is ",
                HumanDuration(absl::AbsDuration(machine - here)),
                machine > here ? " more" : " less", " than can be: versions are ", "stamped with ",
                HumanTime(here), " and on, and nothing expires by age, until it ",
                "is set right. Where it is right: stop the server, remove ", name_,
                " below the root, start it");
}

absl::Time TimeKeeper::Now() {
  Told told;
  absl::Time now;
  {
    absl::MutexLock lock(&mutex_);
    now = Look(&told).time;
  }
  Tell(told);
  return now;
}

absl::Duration TimeKeeper::Ahead() {
  Told told;
  absl::Duration ahead;
  {
    absl::MutexLock lock(&mutex_);
    const Reading reading = Look(&told);
    ahead = reading.machine - reading.time;
  }
  Tell(told);
  return ahead;
}

std::string TimeKeeper::Doubt() {
  Told told;
  std::string doubt;
  {
    absl::MutexLock lock(&mutex_);
    const Reading reading = Look(&told);
    const std::optional<BootTime> boot = SinceBoot();
    if (goes_alone_) {
      doubt = StrCat("the machine's clock shows ", HumanTime(reading.machine),
                     ", by what is known it is ", HumanTime(reading.time));
    } else if (boot && reading.time < Oldest()) {
      doubt =
          StrCat("the machine's clock shows ", HumanTime(reading.machine), ": nobody has set it");
    } else if (boot && boot->since < settled_) {
      doubt = why_unsettled_;
    }
  }
  Tell(told);
  return doubt;
}

void TimeKeeper::Tend() {
  const std::optional<BootTime> boot = SinceBoot();
  {
    absl::MutexLock lock(&mutex_);
    if (!boot || tree_ == nullptr || boot->since - noted_ < kNotePeriod) return;
  }
  Note();
}

void TimeKeeper::Note() {
  const std::optional<BootTime> boot = SinceBoot();
  Told told;
  EnvTree* tree = nullptr;
  std::string name, text;
  {
    absl::MutexLock lock(&mutex_);
    if (!boot || tree_ == nullptr) return;
    const Reading reading = Look(&told);
    noted_ = boot->since;
    const absl::Duration unsettled = std::max(settled_ - boot->since, absl::ZeroDuration());
    const auto ns = [](absl::Time time) { return std::max<int64_t>(absl::ToUnixNanos(time), 0); };
    text = Json{{"format", kFormat},
                {"time_ns", ns(reading.time)},
                {"floor_ns", ns(floor_)},
                {"since_boot_ns", absl::ToInt64Nanoseconds(boot->since)},
                {"unsettled_ns", absl::ToInt64Nanoseconds(unsettled)},
                {"boot_id", boot->boot_id}}
               .dump(-1, ' ', false, Json::error_handler_t::replace) +
           "\n";
    name = name_;
    tree = tree_;
  }
  Tell(told);
  // Not under the clock's own lock: every caller would wait for it.
  absl::MutexLock noting(&note_mutex_);
  const std::string fresh = StrCat(name, ".new");
  auto file = tree->Open(fresh, OpenKind::kCreateFresh, 0600);
  if (file.ok() && WriteAt(**file, 0, text).ok() && (*file)->Sync().ok()) {
    tree->Rename(fresh, name).IgnoreError();
  }
}

}  // namespace h5mirror::store
