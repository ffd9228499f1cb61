// A head between two cuts, for the tests of onion_store/embedded/cut_journal.h.
#ifndef H5MIRROR_ONION_STORE_TESTING_TEST_CUT_JOURNAL_H_
#define H5MIRROR_ONION_STORE_TESTING_TEST_CUT_JOURNAL_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "base/testing/fault_env.h"
#include "onion_store/embedded/cut_journal.h"

namespace h5mirror::store {

constexpr size_t kPage = 4096;

inline std::string ContentOf(EnvTree& tree, const std::string& name) {
  auto file = *tree.Open(name, OpenKind::kRead, 0);
  std::string bytes(*file->Size(), '\0');
  ReadOrZeros(*file, 0, absl::MakeSpan(bytes)).IgnoreError();
  return bytes;
}

// A head of two pages and a bit, and a cut that changes the first page, keeps the second, and makes
// it one page longer.
class CutJournalTest : public testing::Test {
 protected:
  CutJournalTest() {
    auto tree = *env_.OpenTree("/");
    auto head = *tree->Open("x.h5", OpenKind::kCreate, 0600);
    WriteAt(*head, 0, before_).IgnoreError();
    head->Sync().IgnoreError();
    tree->MakeDirectory("x.h5.h5m", 0700).IgnoreError();
    tree->SyncDirectory("").IgnoreError();
    after_ = before_;
    after_.replace(100, 9, "ATTRIBUTE");
    after_.resize(3 * kPage + 17, 'n');
  }

  JournalCut Cut(EnvTree& tree) const {
    JournalCut cut;
    cut.inode = tree.Stat("x.h5")->inode;
    cut.size_before = before_.size();
    cut.size_after = after_.size();
    cut.comment = "CREATE /a";
    for (size_t at : {size_t{0}, 2 * kPage, 3 * kPage}) {
      const auto part = [at](const std::string& all) {
        return at < all.size() ? all.substr(at, kPage) : "";
      };
      cut.pages.push_back({at, part(before_), part(after_)});
    }
    return cut;
  }

  absl::Status Commit(FaultEnv& env, JournalSync sync = JournalSync::kDurable) {
    H5M_ASSIGN_OR_RETURN(auto tree, env.OpenTree("/"));
    H5M_ASSIGN_OR_RETURN(auto head, tree->Open("x.h5", OpenKind::kWrite, 0));
    JournalCut cut = Cut(**env_.OpenTree("/"));
    H5M_ASSIGN_OR_RETURN(const FileStat stat, head->Stat());
    cut.inode = stat.inode;
    CutJournal journal(*tree, "x.h5", sync);
    H5M_RETURN_IF_ERROR(journal.Commit(*head, cut));
    return journal.Close();
  }

  // Settles as an open of the file does; if that leaves it to a person, as a person who wants the
  // edit.
  absl::Status Settle(EnvTree& tree) {
    const absl::Status settled = SettleJournal(tree, "x.h5", JournalWay::kForward);
    if (!absl::StrContains(settled.message(), "not in the order of its writes")) return settled;
    ++mixed_count_;
    return SettleJournal(tree, "x.h5", JournalWay::kForwardAsked);
  }

  FaultEnv env_;
  int mixed_count_ = 0;
  const std::string before_ = std::string(kPage, 'a') + std::string(kPage, 'b') + "tail";
  std::string after_;
};

// A kill after so many changes: 3 make the journal, the fourth is the head's first page.
inline void CutJournalTestKill(FaultEnv& env, int survive, const std::function<void()>& commit) {
  int seen = 0;
  env.SetLie([&](const FaultDisk&, const FaultChange&) { return seen++ >= survive; });
  commit();
  env.SetLie(nullptr);
}

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_TESTING_TEST_CUT_JOURNAL_H_
