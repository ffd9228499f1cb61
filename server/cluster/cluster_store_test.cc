#include "server/cluster/cluster_store.h"

#include <array>
#include <atomic>
#include <filesystem>
#include <thread>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onion_store/testing/counting_env.h"
#include "onion_store/testing/test_store.h"
#include "rpc/elsewhere.h"
#include "server/cluster/guarded_file.h"
#include "server/testing/fake_ownership.h"
#include "server/testing/test_directory.h"

namespace h5mirror::server {
namespace {

using store::BarrierKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string NameOf(const absl::StatusOr<std::shared_ptr<store::File>>& file) {
  return file.ok() ? (*file)->name() : std::string(file.status().message());
}

class ClusterStoreTest : public ::testing::Test {
 protected:
  ClusterStoreTest() {
    Open("x", 3);
    Open("x-y", 5);
    ownership_.SetRoute("z", {cluster::RouteKind::kRedirect, 9, "b", "node-b:7447"});
    ownership_.SetRoute("w", {cluster::RouteKind::kWait, 2, "", ""});
  }
  void Open(const std::string& cell, uint64_t epoch) {
    std::filesystem::create_directories(directory_.path() / cell);
    store_.Add(cell, epoch, {nullptr, store::OpenStore(Env::Posix(), directory_.path() / cell)});
    ownership_.Serve(cell, epoch);
  }
  // A file with one version.
  std::unique_ptr<store::Writer> Make(const std::string& name, const std::string& bytes) {
    auto file = store_.OpenOrCreateFile(name, 0);
    EXPECT_TRUE(file.ok()) << file.status();
    auto writer = std::make_unique<store::Writer>(*file, store::SessionStart::kNewGeneration);
    EXPECT_TRUE(writer->Write(0, bytes).ok());
    const auto cut = writer->CutDurably(BarrierKind::kCommit);
    EXPECT_TRUE(cut.ok()) << cut.status();
    return writer;
  }
  std::vector<std::string> List(std::string_view directory, std::string_view after, size_t limit) {
    const auto files = store_.List(directory, after, limit);
    EXPECT_TRUE(files.ok()) << files.status();
    std::vector<std::string> names;
    if (files.ok()) {
      for (const auto& file : *files) names.push_back(file.name);
    }
    return names;
  }

  TestDirectory directory_;
  FakeOwnership ownership_;
  ClusterStore store_{ownership_};
};

TEST_F(ClusterStoreTest, FilesHaveTheNamesOfClients) {
  Make("x/a.h5", "one");
  Make("x-y/b.h5", "two");
  EXPECT_EQ(NameOf(store_.OpenFile("x/a.h5")), "x/a.h5");
  EXPECT_TRUE(std::filesystem::exists(directory_.path() / "x/a.h5"));
  const auto file = *store_.OpenFile("x-y/b.h5");
  EXPECT_EQ(store::ReadVersion(*file, 1), "two");
  EXPECT_EQ(file, *store_.OpenFile("x-y/b.h5")) << "all callers share one object";
  const absl::Status none = store_.OpenFile("x/none.h5").status();
  EXPECT_TRUE(rpc::IsOwnerLacksIt(none));
  EXPECT_EQ(std::string(none.message()), "no file x/none.h5; see h5mirror ls");
  const auto removed = store_.Remove("x/none.h5", {}, absl::Hours(1));
  EXPECT_TRUE(absl::IsNotFound(removed.status()));
  EXPECT_EQ(std::string(removed.status().message()), "no file x/none.h5; see h5mirror ls");
}

TEST_F(ClusterStoreTest, ACellHasAnArchiveThatTheGuardKeeps) {
  std::filesystem::create_directories(directory_.path() / "v");
  std::filesystem::create_directories(directory_.path() / "archive");
  const auto all = archive::RootArchive::Open(
      Env::Posix(), {.url = "dir:" + (directory_.path() / "archive").string()});
  ASSERT_TRUE(all.ok()) << all.status();
  auto part = (*all)->OpenPart({.url = "", .part = "cells/v", .keep_owner = [](const std::string&) {
                                  return absl::OkStatus();
                                }});
  ASSERT_TRUE(part.ok()) << part.status();
  const std::shared_ptr<archive::RootArchive> archive = *std::move(part);
  store::StoreOptions options;
  options.archive = archive;
  store_.Add("v", 7,
             {nullptr, store::OpenStore(Env::Posix(), directory_.path() / "v", options), nullptr,
              archive});
  ownership_.Serve("v", 7);
  auto writer = Make("v/a.h5", "one");
  EXPECT_TRUE(writer->Write(0, "two").ok());
  EXPECT_TRUE(writer->CutDurably(BarrierKind::kCommit).ok());
  EXPECT_TRUE(writer->End().ok());
  const auto file = *store_.OpenFile("v/a.h5");
  EXPECT_TRUE(file->WaitApplied(absl::Seconds(30)).ok());
  EXPECT_EQ(store_.ArchiveOf("v/a.h5")->get(), archive.get());
  const archive::RootArchive::BackgroundWork claims;
  const auto archive_all = [&] {
    auto job = file->StartArchive({store::SealSegment::kYes, 0, store::ArchiveCopy::kNone});
    absl::Status status = job.status();
    for (bool is_done = false; status.ok() && !is_done;) {
      const auto progress = (*job)->Step();
      status = progress.status();
      is_done = progress.ok() && progress->done;
    }
    return status;
  };
  ownership_.SetGuard(absl::OkStatus(), absl::FailedPreconditionError("another server has it"));
  EXPECT_TRUE(absl::IsUnavailable(archive_all())) << archive_all();
  EXPECT_FALSE(std::filesystem::exists(directory_.path() / "archive/cells/v/files"));
  ownership_.SetGuard(absl::OkStatus(), absl::OkStatus());
  EXPECT_TRUE(archive_all().ok()) << archive_all();
  EXPECT_EQ(store::ReadVersion(*file, 1), "one");
  EXPECT_TRUE(store_.RetireCell("v", absl::Seconds(30)).ok());
  const absl::Status retired = archive_all();
  EXPECT_TRUE(absl::IsUnavailable(retired)) << retired;
  EXPECT_TRUE(absl::IsUnavailable(archive->Head("root", absl::Seconds(1)).status()));
  EXPECT_TRUE(store_.CloseCell("v", absl::Seconds(30)).ok());
}

TEST_F(ClusterStoreTest, AFileOfAnotherServerNamesIt) {
  const auto elsewhere = rpc::ElsewhereOf(store_.OpenFile("z/a.h5").status());
  ASSERT_TRUE(elsewhere.has_value());
  EXPECT_EQ(*elsewhere, (rpc::Elsewhere{"node-b:7447", "z", 9}));
  EXPECT_TRUE(rpc::ElsewhereOf(store_.OpenOrCreateFile("z/a.h5", 0).status()).has_value());
  EXPECT_TRUE(rpc::ElsewhereOf(store_.List("z", "", 9).status()).has_value());
}

TEST_F(ClusterStoreTest, NobodysFilesAreWaitedFor) {
  EXPECT_TRUE(absl::IsUnavailable(store_.OpenFile("w/a.h5").status()));
  ownership_.Serve("x", 4);  // The registry knows more than this store.
  EXPECT_TRUE(absl::IsUnavailable(store_.OpenFile("x/a.h5").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_.OpenFile("v/a.h5").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_.OpenFile("x").status()));
}

TEST_F(ClusterStoreTest, ListsGoOverAllCellsInOrder) {
  for (const char* name : {"x/a.h5", "x/d/b.h5", "x-y/c.h5"}) Make(name, "bytes");
  EXPECT_THAT(List("", "", 9), ElementsAre("x-y/c.h5", "x/a.h5", "x/d/b.h5"));
  EXPECT_THAT(List("", "", 2), ElementsAre("x-y/c.h5", "x/a.h5"));
  EXPECT_THAT(List("", "x/a.h5", 9), ElementsAre("x/d/b.h5"));
  EXPECT_THAT(List("", "x-y/c.h5", 9), ElementsAre("x/a.h5", "x/d/b.h5"));
  EXPECT_THAT(List("x", "", 9), ElementsAre("x/a.h5", "x/d/b.h5"));
  EXPECT_THAT(List("x/d", "", 9), ElementsAre("x/d/b.h5"));
}

TEST_F(ClusterStoreTest, AGlanceTellsWhatAFileTells) {
  Make("x/a.h5", "one")->End().IgnoreError();
  store::ForkRequest request;
  request.request_id = {1};
  const auto made = store_.Fork(**store_.OpenFile("x/a.h5"), 1, "x/f.h5", request);
  ASSERT_TRUE(made.ok()) << made.status();
  const auto looked = store_.Glance(store_.List("", "x/a.h5", 1)->at(0));
  ASSERT_TRUE(looked.ok()) << looked.status();
  const auto info = (*store_.OpenFile("x/f.h5"))->Info();
  EXPECT_EQ(looked->file_id, info->file_id);
  EXPECT_EQ(looked->last_cut, info->last_cut);
  ASSERT_TRUE(looked->forked_from.has_value());
  EXPECT_EQ(looked->forked_from->name, "x/a.h5");
  EXPECT_EQ(looked->newest_version.version, info->newest_version.version);
  const auto glance = [&](const char* name) {
    return store_.Glance({name, 0, absl::InfinitePast()}).status();
  };
  EXPECT_TRUE(absl::IsNotFound(glance("x/none.h5")));
  EXPECT_TRUE(rpc::ElsewhereOf(glance("z/a.h5")).has_value());
  ownership_.SetGuard(absl::UnavailableError("away"), absl::OkStatus());
  EXPECT_TRUE(absl::IsUnavailable(glance("x/f.h5")));
}

// The disk is asked once, as long as nobody opens the file.
TEST_F(ClusterStoreTest, AGlanceOpensNoClosedFile) {
  store::CountingEnv env;
  std::filesystem::create_directories(directory_.path() / "c");
  const auto open = [&] {
    store_.Add("c", 7, {nullptr, store::OpenStore(env, directory_.path() / "c")});
    ownership_.Serve("c", 7);
  };
  open();
  Make("c/a.h5", "one")->End().IgnoreError();
  ASSERT_TRUE((*store_.OpenFile("c/a.h5"))->WaitApplied(absl::Seconds(20)).ok());
  ASSERT_TRUE(store_.CloseCell("c", absl::Seconds(10)).ok());
  open();
  const auto cost = [&] {
    store::IoCounts::OfThisThread().Clear();
    const auto looked = store_.Glance(store_.List("c", "", 1)->at(0));
    EXPECT_TRUE(looked.ok()) << looked.status();
    return store::IoCounts::OfThisThread().bytes.load();
  };
  EXPECT_GT(cost(), 0u);
  // Until the store's threads hold the file no more.
  for (int i = 0; i < 400 && cost() > 0; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(cost(), 0u);
  EXPECT_TRUE(store_.CloseCell("c", absl::Seconds(10)).ok()) << "before the test's Env";
}

TEST_F(ClusterStoreTest, FilesStayInTheirCell) {
  Make("x/a.h5", "one")->End().IgnoreError();
  EXPECT_TRUE(absl::IsInvalidArgument(store_.Move("x/a.h5", "x-y/a.h5")));
  EXPECT_TRUE(absl::IsInvalidArgument(store_.Move("x/a.h5", "v/a.h5")));
  const auto file = *store_.OpenFile("x/a.h5");
  EXPECT_TRUE(absl::IsInvalidArgument(store_.Fork(*file, 1, "x-y/f.h5", {}).status()));
  store::ForkRequest request;
  request.request_id = {1};
  const auto fork = store_.Fork(*file, 1, "x/f.h5", request);
  ASSERT_TRUE(fork.ok()) << fork.status();
  ASSERT_TRUE(fork->source.has_value());
  EXPECT_EQ(fork->source->name, "x/a.h5");
  EXPECT_TRUE(store_.Move("x/f.h5", "x/g.h5").ok());
}

TEST_F(ClusterStoreTest, ARemovedFileComesBack) {
  Make("x-y/b.h5", "two")->End().IgnoreError();
  const auto removed = store_.Remove("x-y/b.h5", {}, absl::Hours(1));
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_EQ(removed->name, "x-y/b.h5");
  EXPECT_EQ(store_.ListRemoved()->at(0).name, "x-y/b.h5");
  EXPECT_TRUE(absl::IsNotFound(store_.Undelete("none", "").status()));
  const auto name = store_.Undelete(removed->id, "x-y/c.h5");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(*name, "x-y/c.h5");
}

TEST_F(ClusterStoreTest, ListenersHearTheNamesOfClients) {
  absl::Mutex mutex;
  std::vector<std::string> heard;
  store_.SetCutListener([&](const std::string& name, store::CutNumber) {
    absl::MutexLock lock(&mutex);
    heard.push_back(name);
  });
  Make("x/a.h5", "one");
  store_.SetCutListener(nullptr);
  absl::MutexLock lock(&mutex);
  EXPECT_THAT(heard, ElementsAre("x/a.h5"));
}

// ---- The guard ----

TEST_F(ClusterStoreTest, NoCutIsAckedBeforeTheRegistryWasRead) {
  auto writer = Make("x/a.h5", "one");
  const int asked = ownership_.asked();
  ownership_.SetGuard(absl::OkStatus(), absl::UnavailableError("the registry is away"));
  ASSERT_TRUE(writer->Write(0, "two").ok());
  absl::Notification answered;
  ASSERT_TRUE(writer
                  ->Cut(BarrierKind::kCommit,
                        [&](const absl::StatusOr<store::DurableCut>& cut) {
                          EXPECT_TRUE(cut.ok()) << cut.status();
                          answered.Notify();
                        })
                  .ok());
  ownership_.AwaitAsked(asked + 3);
  EXPECT_FALSE(answered.HasBeenNotified());
  ownership_.SetGuard(absl::OkStatus(), absl::OkStatus());
  answered.WaitForNotification();
}

TEST_F(ClusterStoreTest, AServerThatWasGivenUpAcksAndAnswersNothing) {
  auto writer = Make("x/a.h5", "one");
  const auto file = *store_.OpenFile("x/a.h5");
  const auto snapshot = *file->PinNewestCut();
  const absl::Status given_up = absl::InternalError("given up");
  ownership_.SetGuard(given_up, given_up);
  ASSERT_TRUE(writer->Write(0, "two").ok());
  EXPECT_TRUE(absl::IsUnavailable(writer->CutDurably(BarrierKind::kCommit).status()));
  std::string bytes(3, ' ');
  EXPECT_TRUE(absl::IsUnavailable(snapshot->Read(0, absl::MakeSpan(bytes))));
  EXPECT_TRUE(absl::IsUnavailable(file->Info().status()));
  EXPECT_TRUE(absl::IsUnavailable(file->PinNewestCut().status()));
  EXPECT_TRUE(absl::IsUnavailable(file->Tag(1, "t", store::TagMode::kKeep).status()));
  EXPECT_TRUE(absl::IsUnavailable(store_.OpenFile("x/a.h5").status()));
  EXPECT_TRUE(absl::IsUnavailable(store_.Move("x/a.h5", "x/b.h5")));
  EXPECT_TRUE(absl::IsUnavailable(store_.List("", "", 9).status()));
}

// Else a list would be short, or empty, while the registry is away.
TEST_F(ClusterStoreTest, ListsFailWhileTheGuardIsShut) {
  Make("x/a.h5", "one")->End().IgnoreError();
  Make("x-y/b.h5", "two")->End().IgnoreError();
  const auto removed = store_.Remove("x-y/b.h5", {}, absl::Hours(1));
  ASSERT_TRUE(removed.ok()) << removed.status();
  const absl::Status away = absl::UnavailableError("the registry is away");
  ownership_.SetGuard(away, away);
  EXPECT_TRUE(absl::IsUnavailable(store_.List("", "", 9).status()));
  EXPECT_TRUE(absl::IsUnavailable(store_.List("x", "", 9).status()));
  EXPECT_TRUE(absl::IsUnavailable(store_.ListRemoved().status()));
  EXPECT_TRUE(absl::IsUnavailable(store_.Undelete(removed->id, "").status()));
  ownership_.SetGuard(absl::OkStatus(), absl::OkStatus());
  EXPECT_THAT(List("", "", 9), ElementsAre("x/a.h5"));
  EXPECT_EQ(store_.ListRemoved()->size(), 1u) << "nothing came back meanwhile";
}

// One that is being closed hides no file of the others.
TEST_F(ClusterStoreTest, ListsHaveNothingOfACellThatWasGivenAway) {
  Make("x/a.h5", "one");
  const absl::Status other = absl::FailedPreconditionError("not this server's at epoch 3");
  ownership_.SetGuard(other, other);
  EXPECT_THAT(List("", "", 9), ElementsAre());
  EXPECT_TRUE(store_.ListRemoved()->empty());
  EXPECT_TRUE(absl::IsUnavailable(store_.List("x", "", 9).status()));
}

// It has happened, and may be repeated.
TEST_F(ClusterStoreTest, AChangeIsAckedAfterTheRegistryWasRead) {
  Make("x/a.h5", "one")->End().IgnoreError();
  const auto file = *store_.OpenFile("x/a.h5");
  ownership_.SetGuard(absl::OkStatus(), absl::UnavailableError("away"));
  EXPECT_TRUE(absl::IsUnavailable(file->Tag(1, "t", store::TagMode::kKeep).status()));
  ownership_.SetGuard(absl::OkStatus(), absl::OkStatus());
  EXPECT_TRUE(file->FindVersionTagged("t").ok());
}

TEST_F(ClusterStoreTest, ARepeatedRequestIsAckedAfterTheRegistryWasRead) {
  auto writer = Make("x/a.h5", "one");
  ASSERT_TRUE(writer->Write(0, "two").ok());  // A version is made of what none has.
  ASSERT_TRUE(writer->CutDurably(BarrierKind::kTick).ok());
  ASSERT_TRUE(writer->End().ok());
  const auto file = *store_.OpenFile("x/a.h5");
  const std::array<uint8_t, 16> request = {7};
  ownership_.SetGuard(absl::OkStatus(), absl::UnavailableError("away"));
  EXPECT_TRUE(absl::IsUnavailable(file->MakeVersion({}, request).status()));
  EXPECT_TRUE(absl::IsUnavailable(file->FindRequest(request).status()));
  ownership_.SetGuard(absl::OkStatus(), absl::OkStatus());
  EXPECT_TRUE(file->FindRequest(request).ok());
}

TEST_F(ClusterStoreTest, WhatAFileSaysIsAckedAfterTheRegistryWasRead) {
  Make("x/a.h5", "one")->End().IgnoreError();
  const auto file = *store_.OpenFile("x/a.h5");
  const int asked = ownership_.asked();
  ownership_.SetGuard(absl::OkStatus(), absl::UnavailableError("away"));
  EXPECT_TRUE(file->Info().ok());
  EXPECT_TRUE(absl::IsUnavailable(AwaitAck(*file)));
  absl::Notification answered;
  AwaitAck(*file, [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    answered.Notify();
  });
  ownership_.AwaitAsked(asked + 3);
  EXPECT_FALSE(answered.HasBeenNotified());
  ownership_.SetGuard(absl::OkStatus(), absl::OkStatus());
  answered.WaitForNotification();
}

TEST_F(ClusterStoreTest, ARemovalsIdNamesItsCell) {
  Make("x/a.h5", "one")->End().IgnoreError();
  const auto removed = store_.Remove("x/a.h5", {}, absl::Hours(1));
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_EQ(removed->id.substr(0, 2), "x:");
  EXPECT_EQ(store_.ListRemoved()->at(0).id, removed->id);
  const std::string other = "x-y:" + removed->id.substr(2);
  EXPECT_TRUE(absl::IsNotFound(store_.Undelete(other, "").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_.Undelete(removed->id, "x-y/a.h5").status()));
  EXPECT_EQ(store_.Undelete(removed->id, "").value(), "x/a.h5");
}

TEST_F(ClusterStoreTest, WhoCountsFilesIsToldOfCellsThatComeAndGo) {
  int told = 0;
  store_.SetCellsListener([&](const std::string& cell) {
    EXPECT_EQ(cell, "x");
    ++told;
    EXPECT_EQ(store_.OpenFile("x/a.h5").ok(), told == 0);
  });
  ASSERT_TRUE(store_.CloseCell("x", absl::Seconds(60)).ok());
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(store_.CloseCell("x", absl::Seconds(60)).ok());
  EXPECT_EQ(told, 1) << "it was not open";
  store_.TellCell("x");
  EXPECT_EQ(told, 2) << "when it is answered for, a list has more";
  store_.SetCellsListener(nullptr);
  store_.TellCell("x");
  EXPECT_EQ(told, 2);
}

// An end of sessions may wait for a disk. Meanwhile other cells come.
TEST_F(ClusterStoreTest, ACellOpensWhileAnotherOneRetires) {
  std::vector<std::string> told;
  store_.SetCellsListener([&](const std::string& cell) { told.push_back(cell); });
  store_.SetRetireListener([&](const std::string&) {
    Open("v", 1);
    return size_t{0};
  });
  EXPECT_TRUE(store_.RetireCell("x", absl::Seconds(60)).ok());
  EXPECT_THAT(told, ElementsAre("v"));
  store_.SetRetireListener(nullptr);
  store_.SetCellsListener(nullptr);
}

TEST_F(ClusterStoreTest, ACellRetiresWhenItsSessionsAndCallsHaveEnded) {
  std::atomic<int> sessions = 2;
  std::string told;
  store_.SetRetireListener([&](const std::string& prefix) {
    told = prefix;
    EXPECT_THAT(NameOf(store_.OpenFile("x/a.h5")), HasSubstr("it is being handed over"));
    return static_cast<size_t>(sessions > 0 ? sessions-- : 0);
  });
  const auto file = store_.OpenOrCreateFile("x/a.h5", 0);
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::Status retired = store_.RetireCell("x", absl::Seconds(60));
  EXPECT_TRUE(retired.ok()) << retired;
  EXPECT_EQ(told, "x/");
  EXPECT_EQ(sessions, 0);
  EXPECT_TRUE(absl::IsUnavailable((*file)->Info().status())) << "followers end by it";
  EXPECT_TRUE(store_.OpenOrCreateFile("x-y/b.h5", 0).ok()) << "of another cell";
  store_.SetRetireListener(nullptr);
}

TEST_F(ClusterStoreTest, ACellRetiresWhenChangesOfItsFilesHaveEnded) {
  Make("x/a.h5", "one")->End().IgnoreError();
  const auto file = *store_.OpenFile("x/a.h5");
  ownership_.Hold(true);
  const int asked = ownership_.asked();
  std::thread change([&] {
    const auto tagged = file->Tag(1, "t", store::TagMode::kKeep);
    EXPECT_TRUE(tagged.ok()) << tagged.status();
  });
  ownership_.AwaitAsked(asked + 1);
  const absl::Status retired = store_.RetireCell("x", absl::Milliseconds(1));
  EXPECT_THAT(std::string(retired.message()), HasSubstr("1 calls"));
  absl::Notification retires;
  store_.SetRetireListener([&](const std::string&) {
    if (!retires.HasBeenNotified()) retires.Notify();
    return size_t{0};
  });
  std::thread retire([&] { EXPECT_TRUE(store_.RetireCell("x", absl::Seconds(60)).ok()); });
  retires.WaitForNotification();
  EXPECT_TRUE(absl::IsUnavailable(file->Untag("t").status())) << "no new one begins";
  EXPECT_TRUE(absl::IsUnavailable(file->StartPrune({1}).status()));
  ownership_.Hold(false);
  change.join();
  retire.join();
  store_.SetRetireListener(nullptr);
}

TEST_F(ClusterStoreTest, AClosedCellTellsWhenNobodyHoldsItAnyMore) {
  std::filesystem::create_directories(directory_.path() / "u");
  int told = 0;
  store_.Add("u", 1,
             {nullptr, store::OpenStore(Env::Posix(), directory_.path() / "u"), [&] { ++told; }});
  ownership_.Serve("u", 1);
  auto file = store_.OpenOrCreateFile("u/a.h5", 0);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(store_.CloseCell("u", absl::Seconds(10)).ok());
  store_.Tend();
  EXPECT_EQ(told, 0) << "a file is held";
  file = absl::UnknownError("");
  store_.Tend();
  EXPECT_EQ(told, 1);
  store_.Tend();
  EXPECT_EQ(told, 1);
}

TEST_F(ClusterStoreTest, ACellWhoseSessionsGoOnIsServedOn) {
  store_.SetRetireListener([](const std::string&) { return size_t{1}; });
  const absl::Status retired = store_.RetireCell("x", absl::Milliseconds(1));
  EXPECT_TRUE(absl::IsUnavailable(retired)) << retired;
  EXPECT_THAT(std::string(retired.message()), HasSubstr("1 sessions and 0 calls"));
  EXPECT_TRUE(store_.OpenOrCreateFile("x/a.h5", 0).ok());
  EXPECT_TRUE(store_.RetireCell("nowhere", absl::ZeroDuration()).ok());
  store_.SetRetireListener(nullptr);
}

TEST_F(ClusterStoreTest, AClosedCellIsWholeAndFree) {
  auto writer = Make("x/a.h5", "one");
  ASSERT_TRUE(writer->Write(0, "two").ok());
  ASSERT_TRUE(writer->Cut(BarrierKind::kTick).ok());
  ASSERT_TRUE(writer->End().ok());
  ASSERT_TRUE(store_.CloseCell("x", absl::Seconds(10)).ok());
  EXPECT_TRUE(absl::IsUnavailable(store_.OpenFile("x/a.h5").status()));
  // Its lock too, though a file of it is still held.
  auto next = store::OpenStore(Env::Posix(), directory_.path() / "x");
  ASSERT_NE(next, nullptr);
  const auto pinned = (*next->OpenFile("a.h5"))->PinNewestCut();
  ASSERT_TRUE(pinned.ok()) << pinned.status();
  std::string bytes(3, ' ');
  ASSERT_TRUE((*pinned)->Read(0, absl::MakeSpan(bytes)).ok());
  EXPECT_EQ(bytes, "two");
  EXPECT_TRUE(store_.CloseCell("x", absl::Seconds(10)).ok());
}

}  // namespace
}  // namespace h5mirror::server
