#include "server/door/access_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_replace.h"
#include "base/glob.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

AccessRule Rule(std::vector<std::string> files, std::vector<std::string> users,
                std::vector<std::string> groups) {
  AccessRule rule;
  rule.files = std::move(files);
  rule.users = std::move(users);
  rule.groups = std::move(groups);
  return rule;
}

AccessRule OwnersRule(std::vector<std::string> files, std::vector<std::string> owners) {
  AccessRule rule = Rule(std::move(files), {}, {});
  rule.owners = std::move(owners);
  return rule;
}

// The number of the rule that decides about a file of `owner`; -1: none.
int Find(const AccessIndex& index, const AccessSubject& subject, std::string_view file,
         const std::string& owner = "", int* asked = nullptr) {
  int count = 0;
  const auto ask = [&]() -> absl::StatusOr<std::string> {
    ++count;
    return owner;
  };
  const auto rule = index.Find(subject, file, ask);
  EXPECT_TRUE(rule.ok()) << rule.status();
  EXPECT_LE(count, 1);
  if (asked != nullptr) *asked = count;
  return *rule == nullptr ? -1 : static_cast<int>(*rule - index.rules().data());
}

const std::vector<std::string> kNone;

TEST(AccessIndexTest, FirstTableThatTakesBothDecides) {
  const AccessIndex index({Rule({"home/${user}/**"}, {}, {}), Rule({"bl/**"}, {}, {"bl7"}),
                           Rule({"bl/**"}, {"token:robot"}, {}), Rule({"bl/x/*"}, {"anna"}, {})});
  const std::vector<std::string> groups{"staff", "bl7"};
  const AccessSubject anna{"anna", "unix", groups};
  EXPECT_EQ(Find(index, anna, "home/anna/a.h5"), 0);
  EXPECT_EQ(Find(index, anna, "home/bob/a.h5"), -1);
  EXPECT_EQ(Find(index, anna, "home/anna"), -1);
  EXPECT_EQ(Find(index, anna, "bl/x/a"), 1);
  EXPECT_EQ(Find(index, {"anna", "unix", kNone}, "bl/x/a"), 3);
  EXPECT_EQ(Find(index, {"anna", "unix", kNone}, "bl/x/y/a"), -1);
  EXPECT_EQ(Find(index, {"robot", "token", kNone}, "bl/a"), 2);
  EXPECT_EQ(Find(index, {"robot", "unix", kNone}, "bl/a"), -1);
  EXPECT_EQ(Find(index, {"", "", kNone}, "home//a.h5"), -1);
}

// A name is no pattern: "*" must not be everybody.
TEST(AccessIndexTest, NamesWithSignsOfGlobsStandForNobody) {
  const AccessIndex index({Rule({"home/${user}/**", "x-${user}"}, {}, {})});
  for (const char* name : {"*", "?", "[a-z]", "a/b", "..", ".", "a\\b"}) {
    EXPECT_EQ(Find(index, {name, "unix", kNone}, "home/a/f.h5"), -1) << name;
    EXPECT_EQ(Find(index, {name, "unix", kNone}, "x-a"), -1) << name;
  }
  EXPECT_EQ(Find(index, {"a", "unix", kNone}, "x-a"), 0);
}

TEST(AccessIndexTest, ATableTakesFilesOfItsOwners) {
  const AccessIndex index({OwnersRule({"shared/**"}, {"${user}"}), OwnersRule({"**"}, {"carol"}),
                           OwnersRule({"**"}, {"token:robot", "jwt:dora"}),
                           Rule({"shared/**"}, {}, {})});
  EXPECT_TRUE(index.has_owners());
  const AccessSubject anna{"anna", "unix", kNone};
  EXPECT_EQ(Find(index, anna, "shared/a", "unix:anna"), 0);
  EXPECT_EQ(Find(index, {"anna", "munge", kNone}, "shared/a", "unix:anna"), 0);
  EXPECT_EQ(Find(index, {"anna", "token", kNone}, "shared/a", "unix:anna"), 3) << "of that name";
  EXPECT_EQ(Find(index, anna, "shared/a", "unix:annabel"), 3);
  EXPECT_EQ(Find(index, anna, "shared/a", ""), 3) << "nobody's";
  EXPECT_EQ(Find(index, anna, "other/a", ""), -1);
  EXPECT_EQ(Find(index, {"", "", kNone}, "shared/a", ""), 3) << "a caller without a name owns none";
  for (const char* owner : {"unix:carol", "cert:carol"}) {
    EXPECT_EQ(Find(index, anna, "x", owner), 1) << owner;
  }
  EXPECT_EQ(Find(index, anna, "x", "token:robot"), 2);
  EXPECT_EQ(Find(index, anna, "x", "unix:robot"), -1);
  EXPECT_EQ(Find(index, anna, "x", "unix:token:robot"), -1) << "a user of a strange name";
}

TEST(AccessIndexTest, TheOwnerIsAskedForOnlyWhereItMayDecide) {
  const AccessIndex index({Rule({"pub/**"}, {}, {}), OwnersRule({"**"}, {"${user}"}),
                           OwnersRule({"**/*.h5"}, {"anna"}), Rule({"**"}, {}, {})});
  const AccessSubject anna{"anna", "unix", kNone};
  int asked = -1;
  EXPECT_EQ(Find(index, anna, "pub/a.h5", "unix:anna", &asked), 0);
  EXPECT_EQ(asked, 0) << "an earlier table decides";
  EXPECT_EQ(Find(index, anna, "x/a.h5", "unix:anna", &asked), 1);
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(AccessIndex({Rule({"**"}, {}, {})}).has_owners());
  const auto unknown = index.Find(anna, "x/a.h5", []() -> absl::StatusOr<std::string> {
    return absl::UnavailableError("the disk");
  });
  EXPECT_TRUE(absl::IsUnavailable(unknown.status())) << "a later table must not decide";
}

TEST(AccessIndexTest, OnlyNamesThatCanBeStoredOwnFiles) {
  EXPECT_EQ(OwnerName("unix", "anna"), "unix:anna");
  EXPECT_EQ(OwnerName("munge", "anna"), "unix:anna");
  EXPECT_EQ(OwnerName("cert", "Anna Smith"), "cert:Anna Smith");
  EXPECT_EQ(OwnerName("", ""), "");
  EXPECT_EQ(OwnerName("cert", "a/b"), "");
  EXPECT_EQ(OwnerName("cert", std::string(250, 'a')), "");
}

// The same by a look at each rule.
int FindSlowly(const std::vector<AccessRule>& rules, const AccessSubject& subject,
               std::string_view file, const std::string& owner) {
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (size_t i = 0; i < rules.size(); ++i) {
    bool is_for = rules[i].is_for_all() || has(rules[i].users, std::string(subject.name)) ||
                  has(rules[i].users, StrCat(subject.issuer, ":", subject.name));
    for (const std::string& group : subject.groups) is_for = is_for || has(rules[i].groups, group);
    const auto& owners = rules[i].owners;
    is_for = is_for && (owners.empty() || (owner == "unix:anna" && has(owners, "anna")) ||
                        (!owner.empty() && has(owners, "${user}") &&
                         owner == StrCat(subject.issuer, ":", subject.name)));
    if (!is_for) continue;
    for (const std::string& glob : rules[i].files) {
      const std::string plain = absl::StrReplaceAll(glob, {{"${user}", ToAbsl(subject.name)}});
      if (GlobMatches(plain, file)) return static_cast<int>(i);
    }
  }
  return -1;
}

TEST(AccessIndexTest, RandomTablesAreFoundAsByALookAtEach) {
  std::mt19937 random(7);
  const auto pick = [&](const std::vector<std::string>& words) {
    return words[random() % words.size()];
  };
  const std::vector<std::string> parts{"a",       "b",    "anna", "*",        "**",
                                       "${user}", "[ab]", "a?",   "x-${user}"};
  const std::vector<std::string> names{"a", "b", "anna", "bob", "ab", "x-bob"};
  const auto path = [&](const std::vector<std::string>& words) {
    std::string text = pick(words);
    for (uint32_t more = random() % 4; more > 0; --more) StrAppend(&text, "/", pick(words));
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<AccessRule> rules;
    for (uint32_t i = random() % 12; i > 0; --i) {
      AccessRule rule = Rule({path(parts)}, {}, {});
      if (random() % 3 == 0) rule.files.push_back(path(parts));
      if (random() % 3 == 0) rule.users.push_back(pick({"anna", "bob", "unix:anna", "token:bob"}));
      if (random() % 3 == 0) rule.groups.push_back(pick({"g", "h"}));
      if (random() % 3 == 0) rule.owners.push_back(pick({"anna", "${user}"}));
      rules.push_back(std::move(rule));
    }
    const AccessIndex index(rules);
    for (int look = 0; look < 40; ++look) {
      const std::string name = pick({"anna", "bob", "a"});
      const std::vector<std::string> groups =
          random() % 2 == 0 ? kNone : std::vector{pick({"g", "h"})};
      const AccessSubject subject{name, random() % 2 == 0 ? "unix" : "token", groups};
      const std::string file = path(names);
      const std::string owner = pick({"", "unix:anna", "token:bob", "unix:bob"});
      ASSERT_EQ(Find(index, subject, file, owner), FindSlowly(rules, subject, file, owner))
          << name << " " << file << " of " << owner << " round " << round;
    }
  }
}

}  // namespace
}  // namespace h5mirror::server
