#include "client_vfd/plugin/open/plan_open.h"

#include <cerrno>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Facts as a table's row gives them; `asked` has the questions in their order.
struct FakeFacts final : OpenFacts {
  bool taken = true;
  bool in_root = true;
  bool exists = true;
  bool open_here = false;
  int why_not_writable = 0;
  bool locked = false;
  Problem swmr_writer;
  Problem history;
  Problem broken_edit;
  std::vector<std::string> asked;

  template <typename T>
  T Answer(const char* question, T answer) {
    asked.emplace_back(question);
    return answer;
  }
  bool IsTaken() override { return Answer("rules", taken); }
  bool LiesInServersRoot() override { return Answer("root", in_root); }
  bool Exists() override { return Answer("exists", exists); }
  bool IsOpenHere() override { return Answer("open here", open_here); }
  int WhyNotWritable() override { return Answer("access", why_not_writable); }
  bool IsLockedByOther() override { return Answer("lock", locked); }
  Problem SwmrWriterAtWork() override { return Answer("lease", swmr_writer); }
  Problem HistoryBeside() override { return Answer("history", history); }
  Problem EditBrokenOff() override { return Answer("edit", broken_edit); }
};

Config ConfigOf(const std::string& text) {
  Config config;
  EXPECT_EQ(MakeConfig(text, "", &config), std::nullopt) << text;
  return config;
}

// The modes of h5py's File.
OpenRequest Request(const std::string& mode) {
  OpenRequest request;
  request.name = "a.h5";
  request.writes = mode != "r";
  request.truncates = mode == "w";
  request.makes_new = mode == "x";
  request.creates = mode == "w" || mode == "x";
  return request;
}

struct PlaceRow {
  const char* config;
  bool taken;
  Place place;
};

TEST(PlaceOfTest, TheConfigurationAndItsRulesChooseTheMode) {
  const PlaceRow rows[] = {
      {"", true, Place::kLocal},
      {"", false, Place::kLocal},
      {"mode=off", false, Place::kLocal},
      {"mode=reader", true, Place::kReader},
      {"mode=reader", false, Place::kLocal},
      {"mode=reader;server=embedded", true, Place::kReader},
      {"mode=reader;server=embedded", false, Place::kLocal},
      {"mode=remote", true, Place::kRemote},
      {"mode=remote", false, Place::kLocal},
      {"mode=remote;server=embedded", true, Place::kRemote},
      {"server=embedded", true, Place::kEmbedded},
      {"server=embedded", false, Place::kLocal},
      {"server=embedded;mode=off", true, Place::kLocal},
  };
  for (const PlaceRow& row : rows) {
    FakeFacts facts;
    facts.taken = row.taken;
    EXPECT_EQ(PlaceOf(ConfigOf(row.config), facts), row.place) << row.config << row.taken;
  }
}

TEST(PlaceOfTest, NoRuleIsAskedWhereItDoesNotMatter) {
  FakeFacts facts;
  PlaceOf(ConfigOf(""), facts);
  PlaceOf(ConfigOf("mode=off"), facts);
  EXPECT_THAT(facts.asked, IsEmpty());
}

// What differs from a file that exists, is taken by the rules and that nobody has open.
using Change = void (*)(FakeFacts&);

struct PlanRow {
  const char* what;
  Place place;
  const char* config;
  const char* mode;  // h5py's
  Change change;
  int error_number;  // 0: the open goes on at `place`
  const char* text;
};

constexpr Change kAsItIs = [](FakeFacts&) {};

TEST(PlanOpenTest, WhatIsRefusedAndWhatGoesOn) {
  constexpr Change kMissing = [](FakeFacts& facts) { facts.exists = false; };
  constexpr Change kHistory = [](FakeFacts& facts) { facts.history = "a history"; };
  constexpr Change kEdit = [](FakeFacts& facts) { facts.broken_edit = "an edit"; };
  constexpr Change kLocked = [](FakeFacts& facts) { facts.locked = true; };
  constexpr Change kSwmr = [](FakeFacts& facts) { facts.swmr_writer = "a writer"; };
  constexpr Change kOwnSwmr = [](FakeFacts& facts) { kSwmr(facts), facts.open_here = true; };
  constexpr Change kReadOnly = [](FakeFacts& facts) { facts.why_not_writable = EACCES; };
  constexpr Change kOutside = [](FakeFacts& facts) { facts.in_root = false; };
  const Place reader = Place::kReader;
  const Place remote = Place::kRemote;
  const Place embedded = Place::kEmbedded;
  const Place local = Place::kLocal;
  const PlanRow rows[] = {
      {"a reader", reader, "mode=reader", "r", kAsItIs, 0, ""},
      {"a reader writes", reader, "mode=reader", "r+", kAsItIs, EROFS, "mode \"r\""},
      {"a reader truncates", reader, "mode=reader", "w", kAsItIs, EROFS, "mode \"r\""},
      {"remote", remote, "mode=remote", "w", kAsItIs, 0, ""},
      {"remote, embedded", remote, "mode=remote;server=embedded", "r", kAsItIs, EINVAL, "a server"},
      {"remote, two servers", remote, "mode=remote;server=a,b", "r", kAsItIs, EINVAL, "names 2"},
      {"remote, under", remote, "mode=remote;under=log", "r", kAsItIs, EINVAL, "under="},
      {"remote, outside", remote, "mode=remote", "r", kOutside, EINVAL, "outside"},
      {"embedded", embedded, "server=embedded", "r+", kAsItIs, 0, ""},
      {"embedded, SWMR", embedded, "server=embedded", "r+", kSwmr, EAGAIN, "a writer"},
      {"embedded, own SWMR", embedded, "server=embedded", "r+", kOwnSwmr, 0, ""},
      {"embedded, emptied", embedded, "server=embedded", "w", kSwmr, 0, ""},
      {"embedded, under", embedded, "server=embedded;under=log", "w", kMissing, EINVAL, "under="},
      {"embedded, there", embedded, "server=embedded", "x", kAsItIs, EEXIST, "exists"},
      {"embedded, new", embedded, "server=embedded", "x", kMissing, 0, ""},
      {"embedded, access", embedded, "server=embedded", "r+", kReadOnly, EACCES, "denied"},
      {"local", local, "", "r+", kAsItIs, 0, ""},
      {"beside a history", local, "", "r+", kHistory, EPERM, "a history"},
      {"over one", local, "", "w", kHistory, EPERM, "a history"},
      {"read beside it", local, "", "r", kHistory, 0, ""},
      {"off, beside it", local, "mode=off", "r+", kHistory, 0, ""},
      {"a broken edit", local, "", "r+", kEdit, EPERM, "an edit"},
      {"over one", local, "", "w", kEdit, 0, ""},
      {"off, a broken edit", local, "mode=off", "r+", kEdit, 0, ""},
      {"truncates a locked one", local, "", "w", kLocked, EAGAIN, "unable to lock file"},
      {"off, the same", local, "mode=off", "w", kLocked, EAGAIN, "unable to lock file"},
      {"opens a locked one", local, "", "r+", kLocked, 0, ""},
      {"new", local, "", "w", kMissing, 0, ""},
  };
  for (const PlanRow& row : rows) {
    FakeFacts facts;
    row.change(facts);
    const OpenPlan plan = PlanOpen(row.place, Request(row.mode), ConfigOf(row.config), facts);
    ASSERT_EQ(plan.refusal.has_value(), row.error_number != 0) << row.what;
    if (!plan.refusal) {
      EXPECT_EQ(plan.place, row.place) << row.what;
      continue;
    }
    EXPECT_EQ(plan.refusal->error_number, row.error_number) << row.what;
    EXPECT_THAT(plan.refusal->text, HasSubstr(row.text)) << row.what;
  }
}

TEST(PlanOpenTest, ALockOfAnotherIsToldInSec2sWords) {
  FakeFacts facts;
  facts.locked = true;
  const OpenPlan plan = PlanOpen(Place::kLocal, Request("w"), ConfigOf(""), facts);
  ASSERT_TRUE(plan.refusal.has_value());
  EXPECT_EQ(plan.refusal->form, Refusal::Form::kLock);
  EXPECT_EQ(plan.refusal->text,
            "unable to lock file, errno = 11, error message = 'Resource temporarily unavailable'");
}

// Each question may cost: a lock or a lease for a moment, a look into a directory.
TEST(PlanOpenTest, OnlyWhatDecidesIsAskedInTheOrderOfTheRefusals) {
  const auto asked = [](Place place, const char* mode, const char* config, Change change) {
    FakeFacts facts;
    change(facts);
    PlanOpen(place, Request(mode), ConfigOf(config), facts);
    return facts.asked;
  };
  constexpr Change kMissing = [](FakeFacts& facts) { facts.exists = false; };
  constexpr Change kOpenHere = [](FakeFacts& facts) { facts.open_here = true; };
  EXPECT_THAT(asked(Place::kLocal, "r", "", kAsItIs), ElementsAre("exists", "open here"));
  EXPECT_THAT(asked(Place::kLocal, "r+", "", kAsItIs),
              ElementsAre("exists", "rules", "history", "open here", "edit"));
  EXPECT_THAT(asked(Place::kLocal, "w", "", kAsItIs),
              ElementsAre("exists", "rules", "history", "open here", "lock"));
  EXPECT_THAT(asked(Place::kLocal, "w", "", kOpenHere),
              ElementsAre("exists", "rules", "history", "open here"));
  EXPECT_THAT(asked(Place::kLocal, "w", "", kMissing), ElementsAre("exists"));
  EXPECT_THAT(asked(Place::kLocal, "r+", "server=embedded", kAsItIs),
              ElementsAre("exists", "open here"));
  EXPECT_THAT(asked(Place::kEmbedded, "r+", "server=embedded", kAsItIs),
              ElementsAre("exists", "open here", "lease", "access"));
  EXPECT_THAT(asked(Place::kEmbedded, "w", "server=embedded", kMissing), ElementsAre("exists"));
  EXPECT_THAT(asked(Place::kReader, "r", "mode=reader", kAsItIs), IsEmpty());
}

TEST(PlanOpenTest, AnEmbeddedFileIsMadeWhereThereIsNoneOrItIsEmptied) {
  const auto plan = [](const char* mode, bool exists, bool open_here) {
    FakeFacts facts;
    facts.exists = exists;
    facts.open_here = open_here;
    return PlanOpen(Place::kEmbedded, Request(mode), ConfigOf("server=embedded"), facts);
  };
  EXPECT_TRUE(plan("w", true, false).makes);
  EXPECT_TRUE(plan("w", false, false).makes);
  EXPECT_TRUE(plan("x", false, false).makes);
  EXPECT_FALSE(plan("r+", true, false).makes);
  EXPECT_FALSE(plan("r+", false, false).makes) << "it fails for want of the file";
  EXPECT_FALSE(plan("r+", true, false).has_lock);
  EXPECT_TRUE(plan("r+", true, true).has_lock);
}

// Of a local file "a.h5" of 100 bytes that is open and has a path.
OpenedFacts Opened() {
  OpenedFacts facts;
  facts.path = "/data/a.h5";
  facts.real_path = facts.path;
  facts.size_bytes = 100;
  return facts;
}

struct LayersRow {
  const char* config;
  const char* mirror_name;   // "": not mirrored
  const char* why_left_out;  // a part of it; "": it is not
  bool buffers;
};

TEST(PlanLayersTest, WhatLiesOverALocalFile) {
  const LayersRow rows[] = {
      {"", "host/data/a.h5", "", false},
      {"root=/data", "a.h5", "", false},
      {"name=b.h5", "b.h5", "", false},
      {"metadata=memory", "host/data/a.h5", "", true},
      {"mode=off", "", "mode=off", false},
      {"mode=off;metadata=memory", "", "mode=off", true},
      {"exclude=a.*", "", "exclude=a.*", false},
      {"exclude=a.*;metadata=memory", "", "exclude=a.*", false},
      {"root=/elsewhere", "", "outside of root=/elsewhere", false},
      {"server=embedded;exclude=a.*;metadata=memory", "", "exclude", false},
      {"mode=remote;exclude=a.*", "", "exclude", false},
  };
  for (const LayersRow& row : rows) {
    const Layers layers = PlanLayers(Request("r+"), ConfigOf(row.config), Opened(), "host");
    EXPECT_EQ(layers.mirror_name.value_or(""), row.mirror_name) << row.config;
    EXPECT_EQ(layers.why_left_out.has_value(), !layers.mirror_name) << row.config;
    EXPECT_THAT(layers.why_left_out.value_or(""), HasSubstr(row.why_left_out)) << row.config;
    EXPECT_EQ(layers.buffers_metadata, row.buffers) << row.config;
  }
}

TEST(PlanLayersTest, AFileThatCannotBeLookedAtIsLeftOutAndSaysSo) {
  OpenedFacts facts = Opened();
  facts.real_path.reset();
  const Layers layers = PlanLayers(Request("r+"), ConfigOf(""), facts, "host");
  EXPECT_EQ(layers.mirror_name, std::nullopt);
  EXPECT_EQ(layers.why_left_out, "its path or its descriptor cannot be looked at");
}

TEST(PlanLayersTest, AFileIsNewToItsMirrorWhereItIsEmptiedOrEmpty) {
  OpenedFacts facts = Opened();
  const auto is_made = [&](const char* mode) {
    return PlanLayers(Request(mode), ConfigOf(""), facts, "host").is_made;
  };
  EXPECT_FALSE(is_made("r+"));
  EXPECT_TRUE(is_made("w"));
  facts.size_bytes = 0;
  EXPECT_TRUE(is_made("r+"));
}

TEST(PlanLayersTest, AWriterOfSwmrMarksItsFileAndHoldsNothing) {
  OpenRequest request = Request("r+");
  request.writes_swmr = true;
  const Layers layers = PlanLayers(request, ConfigOf("metadata=memory"), Opened(), "host");
  EXPECT_TRUE(layers.marks_swmr);
  EXPECT_FALSE(layers.buffers_metadata);
  EXPECT_FALSE(PlanLayers(Request("r+"), ConfigOf(""), Opened(), "host").marks_swmr);
}

TEST(PlanLayersTest, AnSwmrWriterIsLookedForWhereAnExistingFileIsOpenedFirst) {
  EXPECT_TRUE(LooksForSwmrWriter(Request("r+"), false));
  EXPECT_TRUE(LooksForSwmrWriter(Request("x"), false));
  EXPECT_FALSE(LooksForSwmrWriter(Request("r+"), true)) << "this process has looked";
  EXPECT_FALSE(LooksForSwmrWriter(Request("w"), false)) << "nothing is left of it";
  EXPECT_FALSE(LooksForSwmrWriter(Request("r"), false));
}

}  // namespace
}  // namespace h5mirror::vfd
