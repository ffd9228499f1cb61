#include "onion_store/testing/random_history.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "onion_store/testing/changes_check.h"

namespace h5mirror::store {
namespace {

constexpr char kName[] = "d/x.h5";
constexpr uint32_t kPageBytes = 512;
constexpr size_t kFilePagesMax = 40;

StoreOptions Options(std::mt19937_64& random) {
  StoreOptions options;
  options.page_size_bytes = kPageBytes;
  options.background_threads = 1;
  // One history may save pages in both ways.
  if (random() % 2) options.page_compression = PageCompression::kNone;
  // Sometimes so small that every index of staged bytes moves to disk.
  if (random() % 4 == 0) options.memory_max_bytes = 1;
  return options;
}

}  // namespace

bool RandomHistory::Ok(const absl::Status& status) {
  if (status.ok()) return true;
  broken_ = true;
  EXPECT_TRUE(faults_ == Faults::kExpected) << status;
  return false;
}

std::string RandomHistory::RandomBytes(size_t size) {
  // Often equal pages, often zeros: both have rules of their own.
  char filler = static_cast<char>(random_() % 3);
  std::string bytes(size, filler);
  if (random_() % 2) {
    for (char& byte : bytes) byte = static_cast<char>(random_());
  }
  return bytes;
}

void RandomHistory::Reopen() {
  writer_.reset();
  pinned_.clear();
  file_.reset();
  store_.reset();
  StoreOptions options = Options(random_);
  may_expire_ = random_() % 4 == 0;
  if (may_expire_) options.snapshot_max_bytes = random_() % 2 ? 0 : 4 * kPageBytes;
  options.root = "/";
  options.durable_every = absl::Milliseconds(random_() % 2 ? 0 : 1000);
  auto opened = Store::Open(env_, options);
  if (!Ok(opened.status())) return;
  store_ = *std::move(opened);
  auto file = store_->OpenOrCreateFile(kName, kPageBytes);
  if (!Ok(file.status())) return;
  file_ = *std::move(file);
  if (faults_ == Faults::kNone) return;
  // A fault may have taken cuts that were not acked: go on from the present state.
  auto info = file_->Info();
  if (!Ok(info.status())) return;
  newest_cut_ = info->last_cut;
  newest_ = newest_cut_ == 0 ? "" : golden_[newest_cut_];
}

void RandomHistory::StartSession() {
  auto start = random_() % 5 == 0 ? SessionStart::kNewGeneration : SessionStart::kContinue;
  writer_ =
      std::make_unique<Writer>(file_, newest_cut_ == 0 ? SessionStart::kContinue : start, newest_);
  if (!Ok(writer_->begun())) writer_.reset();
}

void RandomHistory::WriteSomething() {
  size_t size_max = kFilePagesMax * kPageBytes;
  uint64_t offset = random_() % size_max;
  if (random_() % 3 == 0) offset = writer_->content().size();  // append
  if (random_() % 4 == 0) offset = offset / kPageBytes * kPageBytes;
  size_t length = 1 + random_() % (random_() % 4 ? 700 : 6000);
  offset = std::min(offset, size_max);
  Ok(writer_->Write(offset, RandomBytes(length)));
}

void RandomHistory::CutSomehow(BarrierKind kind) {
  newest_ = writer_->content();
  auto on_durable = [this](absl::StatusOr<DurableCut> result) {
    size_t changes = env_.change_count();
    if (!result.ok()) return;
    absl::MutexLock lock(&mutex_);
    acked_.push_back({result->cut, changes});
    if (result->version != 0) acked_versions_.try_emplace(result->version, changes);
  };
  auto cut = writer_->Cut(kind, on_durable);
  if (!Ok(cut.status())) return;
  newest_cut_ = *cut;
  golden_[*cut] = newest_;
}

void RandomHistory::EndSession(SessionEnd end) {
  Ok(writer_->End(end));
  writer_.reset();
}

void RandomHistory::RollBack() {
  auto newest = file_->GetVersion(0);
  if (!newest.ok()) return;
  VersionNumber to = 1 + random_() % newest->version;
  auto target = file_->GetVersion(to);
  if (absl::IsOutOfRange(target.status()) && pruned_.contains(to)) return;
  if (!Ok(target.status())) return;
  std::array<uint8_t, 16> request{};
  for (uint8_t& byte : request) byte = static_cast<uint8_t>(random_());
  // Its cut's number is known only later: after a crash in between the check must know its bytes.
  std::string content = golden_.at(target->cut);
  auto made = file_->Rollback(to, {}, request);
  size_t changes = env_.change_count();
  if (!made.ok()) unsure_ = content;
  if (!Ok(made.status())) return;
  newest_ = golden_[made->cut] = content;
  newest_cut_ = made->cut;
  absl::MutexLock lock(&mutex_);
  acked_.push_back({made->cut, changes});
  acked_versions_.try_emplace(made->version, changes);
}

bool RandomHistory::IsTagged(VersionNumber version) const {
  return std::any_of(tags_.begin(), tags_.end(),
                     [&](const auto& tag) { return tag.second == version; });
}

std::optional<RandomHistory::PrunePlan> RandomHistory::PlanPrune() {
  auto versions = file_->ListVersions({}, 1000);
  if (!Ok(versions.status())) return std::nullopt;
  PrunePlan plan;
  const int mood = random_() % 3;  // a few, every second, most
  for (const VersionInfo& version : *versions) {
    if (random_() % 3 == 0) {
      auto reader = file_->OpenVersion(version.version);
      if (!Ok(reader.status())) return std::nullopt;
      plan.readers.push_back(*std::move(reader));
    }
    if (IsTagged(version.version)) continue;  // The model of tags is simple: no tag is lost.
    if (mood == 0 ? random_() % 4 != 0 : mood == 1 ? random_() % 2 : random_() % 8 == 0) continue;
    plan.doomed.push_back(version.version);
    pruned_.insert(version.version);
  }
  return plan;
}

bool RandomHistory::ReadBesidePrune(VersionReader& reader) {
  const VersionInfo& info = reader.info();
  std::string bytes(info.size_bytes, '\0');
  absl::Status read = reader.Read(0, absl::MakeSpan(bytes));
  if (absl::IsOutOfRange(read) && pruned_.contains(info.version)) return true;
  if (!Ok(read)) return false;
  EXPECT_TRUE(bytes == golden_.at(info.cut)) << "version " << info.version;
  EXPECT_TRUE(ScatteredReadsMatch(reader, bytes, &read)) << "version " << info.version;
  return true;
}

void RandomHistory::Prune() {
  const std::optional<PrunePlan> plan = PlanPrune();
  if (!plan) return;
  auto job = file_->StartPrune(plan->doomed);
  if (absl::IsNotFound(job.status())) return;  // Nothing was ever durable.
  if (!Ok(job.status())) return;
  const int steps = random_() % 2 ? 1000 : random_() % 8;
  for (int i = 0; i < steps; ++i) {
    SCOPED_TRACE(testing::Message() << "step " << i << " of a prune");
    auto progress = (*job)->Step();
    if (!Ok(progress.status()) || progress->done) break;
    for (const auto& reader : plan->readers) {
      if (!ReadBesidePrune(*reader)) return;
    }
  }
}

void RandomHistory::TagSomething() {
  auto newest = file_->GetVersion(0);
  if (!newest.ok()) return;
  const std::string tag(1, static_cast<char>('a' + random_() % 4));
  const VersionNumber had = tags_.contains(tag) ? tags_[tag] : 0;
  if (random_() % 3 == 0) {
    auto previous = file_->Untag(tag);
    if (had == 0 && absl::IsNotFound(previous.status())) return;
    if (!Ok(previous.status())) return;
    EXPECT_EQ(*previous, had) << tag;
    tags_.erase(tag);
    return;
  }
  const VersionNumber version = 1 + static_cast<VersionNumber>(random_() % newest->version);
  if (pruned_.contains(version)) return;
  const TagMode mode = random_() % 2 ? TagMode::kMove : TagMode::kKeep;
  auto previous = file_->Tag(version, tag, mode);
  if (mode == TagMode::kKeep && had != 0 && had != version) {
    EXPECT_TRUE(absl::IsAlreadyExists(previous.status()) || faults_ == Faults::kExpected) << tag;
    return;
  }
  if (!Ok(previous.status())) return;
  EXPECT_EQ(*previous, had) << tag;
  tags_[tag] = version;
}

std::shared_ptr<const bool> RandomHistory::PauseAfterRead(const std::string& part) {
  const auto is_over = std::make_shared<bool>(false);
  const std::thread::id self = std::this_thread::get_id();
  env_.SetAfterRead([this, self, part, is_over](const std::string& name) {
    if (std::this_thread::get_id() != self) return;
    if (paused_ || *is_over || name.find(part) == name.npos) return;
    *is_over = paused_ = true;
    for (uint64_t i = 1 + random_() % 8; i > 0 && !broken_; --i) Step();
    if (random_() % 2) file_->WaitApplied(absl::Seconds(20)).IgnoreError();
    paused_ = false;
  });
  return is_over;
}

void RandomHistory::ReadWithPause() {
  auto newest = file_->GetVersion(0);
  if (paused_ || !newest.ok()) return;
  const VersionNumber version = 1 + static_cast<VersionNumber>(random_() % newest->version);
  auto reader = file_->OpenVersion(version);
  if (absl::IsOutOfRange(reader.status()) && pruned_.contains(version)) return;
  if (!Ok(reader.status())) return;
  const std::string wanted = golden_.at((*reader)->info().cut);
  // After the last read of the first step, or in the middle of that step.
  const std::string part = random_() % 4 ? "/sums-" : kName;
  const auto was_paused = PauseAfterRead(part);
  std::string bytes(wanted.size(), '\0');
  const uint64_t first = random_() % (wanted.size() + 1);
  absl::Status read = (*reader)->Read(first, absl::MakeSpan(bytes).subspan(first));
  env_.SetAfterRead(nullptr);
  if (*was_paused) ++paused_read_count_;
  if (absl::IsOutOfRange(read) && pruned_.contains(version)) return;
  if (!Ok(read)) return;
  EXPECT_TRUE(std::string_view(bytes).substr(first) == std::string_view(wanted).substr(first))
      << "version " << version << " from " << first << ", with a pause after " << part;
}

void RandomHistory::UsePinnedCuts() {
  const uint64_t what = random_() % 8;
  if (what < 3) {
    auto snapshot = file_->PinNewestCut();
    if (absl::IsNotFound(snapshot.status()) && newest_cut_ == 0) return;
    if (!Ok(snapshot.status())) return;
    EXPECT_EQ((*snapshot)->info().cut, newest_cut_);
    EXPECT_EQ((*snapshot)->info().size_bytes, newest_.size());
    pinned_.push_back(*std::move(snapshot));
    return;
  }
  if (pinned_.empty()) return;
  const size_t which = random_() % pinned_.size();
  if (what == 3) {
    pinned_.erase(pinned_.begin() + static_cast<std::ptrdiff_t>(which));
    return;
  }
  const std::shared_ptr<Snapshot> snapshot = pinned_[which];
  ReadPinnedCut(*snapshot);
}

bool RandomHistory::WasRead(const absl::Status& read) {
  if (absl::IsOutOfRange(read) && may_expire_) return false;
  return Ok(read);
}

void RandomHistory::ReadPinnedCut(const Snapshot& snapshot) {
  const std::string& wanted = golden_.at(snapshot.info().cut);
  const bool pauses = !paused_ && faults_ == Faults::kNone && random_() % 2;
  const std::string part = random_() % 3 ? "/sums-" : kName;
  if (pauses) PauseAfterRead(part);
  // Beyond the end: zeros.
  std::string bytes(random_() % 3 ? wanted.size() + 10 : random_() % 3000, 'x');
  const uint64_t first = random_() % 3 ? 0 : random_() % (wanted.size() + 10);
  const absl::Status read = snapshot.Read(first, absl::MakeSpan(bytes));
  if (pauses) env_.SetAfterRead(nullptr);
  if (!WasRead(read)) return;
  SCOPED_TRACE(testing::Message() << "cut " << snapshot.info().cut << ", newest " << newest_cut_);
  std::string expected = first < wanted.size() ? wanted.substr(first, bytes.size()) : "";
  expected.resize(bytes.size());
  EXPECT_TRUE(bytes == expected)
      << bytes.size() << " bytes from " << first << ", wrong at "
      << std::mismatch(bytes.begin(), bytes.end(), expected.begin()).first - bytes.begin();
  absl::Status scattered;
  EXPECT_TRUE(ScatteredReadsMatch(snapshot, wanted, &scattered));
  if (!WasRead(scattered)) return;
  ++pinned_read_count_;
  ExpectHolesAreZeros(snapshot, wanted);
}

void RandomHistory::ExpectHolesAreZeros(const Snapshot& snapshot, const std::string& wanted) {
  for (uint64_t at = 0; at < wanted.size();) {
    const auto data = snapshot.NextData(at);
    if (!data.ok()) return;
    const uint64_t end = data->length == 0 ? wanted.size() : data->offset;
    EXPECT_EQ(wanted.find_first_not_of('\0', at) < end, false)
        << "a hole from " << at << " to " << end;
    at = std::max(end, data->end());
  }
}

void RandomHistory::Step() {
  const uint64_t step = random_() % 18;
  if (step == 0) return TagSomething();
  if (step == 1 && faults_ == Faults::kNone) return ReadWithPause();
  if (step >= 15) return UsePinnedCuts();
  return writer_ == nullptr ? StepWithoutSession() : StepOfSession();
}

void RandomHistory::StepWithoutSession() {
  switch (random_() % 7) {
    case 0:
      if (paused_) return;  // The reader's store would be closed.
      return Reopen();
    case 1:
      return RollBack();
    case 2:
      return Prune();
    case 3:
      file_->WaitApplied(absl::Seconds(20)).IgnoreError();
      return;
    default:
      return StartSession();
  }
}

void RandomHistory::StepOfSession() {
  switch (random_() % 17) {
    case 16:
      return Prune();
    case 0:
      return EndSession(SessionEnd::kClean);
    case 1:
      return EndSession(SessionEnd::kLost);
    case 2:
      Ok(writer_->Truncate(random_() % (writer_->content().size() + 600)));
      return;
    case 3:
    case 4:
      return CutSomehow(BarrierKind::kTick);
    case 5:
      return CutSomehow(BarrierKind::kSync);
    case 6:
    case 7:
      return CutSomehow(BarrierKind::kCommit);
    case 8:
      absl::SleepFor(absl::Milliseconds(random_() % 2));
      return;
    default:
      return WriteSomething();
  }
}

void RandomHistory::ReadOwnWrites() {
  const std::string& wanted = writer_->content();
  const size_t offset = own_random_() % (wanted.size() + 100);
  std::string bytes(own_random_() % 9000, 'x');
  if (!Ok(file_->ReadNewest(writer_->token(), offset, absl::MakeSpan(bytes)))) return;
  std::string expected = offset < wanted.size() ? wanted.substr(offset, bytes.size()) : "";
  expected.resize(bytes.size());
  EXPECT_TRUE(bytes == expected) << "the session's own view of " << bytes.size() << " bytes at "
                                 << offset << " of " << wanted.size();
}

void RandomHistory::Run(int step_count) {
  Reopen();
  for (int i = 0; i < step_count && !broken_; ++i) {
    Step();
    if (!broken_ && writer_ != nullptr) ReadOwnWrites();
  }
  if (writer_ != nullptr) writer_->End(SessionEnd::kClean).IgnoreError();
  writer_.reset();
  for (const auto& snapshot : std::vector(pinned_)) {  // Reads may pause for other steps.
    if (!broken_) ReadPinnedCut(*snapshot);
  }
  if (writer_ != nullptr) writer_->End(SessionEnd::kClean).IgnoreError();
  writer_.reset();
  pinned_.clear();
  file_.reset();
  store_.reset();
}

void RandomHistory::CheckTags() {
  auto store = OpenStore(env_, "/");
  auto opened = store->OpenFile(kName);
  if (absl::IsNotFound(opened.status()) && tags_.empty()) return;
  ASSERT_TRUE(opened.ok()) << opened.status();
  auto versions = (*opened)->ListVersions({}, 1000);
  ASSERT_TRUE(versions.ok()) << versions.status();
  std::map<std::string, VersionNumber> found;
  for (const VersionInfo& version : *versions) {
    for (const std::string& tag : version.tags) found[tag] = version.version;
  }
  EXPECT_EQ(found, tags_);
}

std::vector<RandomHistory::Acked> RandomHistory::acked() const {
  absl::MutexLock lock(&mutex_);
  return acked_;
}

std::map<VersionNumber, size_t> RandomHistory::kept() const {
  absl::MutexLock lock(&mutex_);
  std::map<VersionNumber, size_t> kept = acked_versions_;
  for (VersionNumber version : pruned_) kept.erase(version);
  return kept;
}

void RandomHistory::Check(FaultEnv& env, std::map<CutNumber, std::string> golden, CutNumber needed,
                          const std::vector<VersionNumber>& kept,
                          const std::optional<std::string>& unsure) {
  StoreOptions options;
  options.page_size_bytes = kPageBytes;
  auto store = OpenStore(env, "/", options);
  ASSERT_NE(store, nullptr);
  auto opened = store->OpenFile(kName);
  if (absl::IsNotFound(opened.status()) && needed == 0) return;
  ASSERT_TRUE(opened.ok()) << opened.status() << ", acked cut " << needed;
  File& file = **opened;
  auto info = file.Info();
  ASSERT_TRUE(info.ok()) << info.status();
  ASSERT_GE(info->durable_cut, needed);
  if (unsure) golden.try_emplace(info->durable_cut, *unsure);
  ASSERT_TRUE(golden.contains(info->durable_cut)) << info->durable_cut;
  // Before or during the apply, after it, and when a prune has finished the remaining work.
  for (int pass = 0; pass < 3; ++pass) {
    if (pass == 2) {
      auto job = file.StartPrune({});
      ASSERT_TRUE(job.ok()) << job.status();
      for (bool done = false; !done;) {
        auto progress = (*job)->Step();
        ASSERT_TRUE(progress.ok()) << progress.status();
        done = progress->done;
      }
    }
    auto versions = file.ListVersions({}, 1000);
    ASSERT_TRUE(versions.ok()) << versions.status();
    for (VersionNumber version : kept) {
      ASSERT_TRUE(std::any_of(versions->begin(), versions->end(),
                              [&](const VersionInfo& info) { return info.version == version; }))
          << "version " << version << " is gone";
    }
    for (const VersionInfo& version : *versions) {
      ASSERT_TRUE(golden.contains(version.cut)) << version.cut;
      auto reader = file.OpenVersion(version.version);
      ASSERT_TRUE(reader.ok()) << reader.status();
      std::string bytes(version.size_bytes, '\0');
      absl::Status read = (*reader)->Read(0, absl::MakeSpan(bytes));
      ASSERT_TRUE(read.ok()) << read << " pass " << pass;
      ASSERT_TRUE(bytes == golden.at(version.cut))
          << "version " << version.version << " of " << versions->front().version << ", cut "
          << version.cut << ", pass " << pass << ", generation " << version.generation << ", "
          << bytes.size() << " bytes, " << golden.at(version.cut).size() << " wanted, first at "
          << std::mismatch(bytes.begin(), bytes.end(), golden.at(version.cut).begin()).first -
                 bytes.begin();
      ASSERT_TRUE(ScatteredReadsMatch(**reader, bytes, &read)) << "version " << version.version;
      ASSERT_TRUE(read.ok()) << read << " pass " << pass;
    }
    for (size_t i = 0; i + 1 < versions->size(); ++i) {
      const auto& [to, from] = std::pair((*versions)[i], (*versions)[i + 1]);
      CheckChanges(file, from, to, golden.at(from.cut), golden.at(to.cut));
      CheckChanges(file, versions->front(), from, golden.at(versions->front().cut),
                   golden.at(from.cut));
    }
    absl::Status applied = file.WaitApplied(absl::Seconds(30));
    ASSERT_TRUE(applied.ok()) << applied;
  }
  auto tree = env.OpenTree("/");
  auto head = (*tree)->Open(kName, OpenKind::kRead, 0);
  ASSERT_TRUE(head.ok()) << head.status();
  std::string bytes((*head)->Size().value_or(0), '\0');
  ASSERT_TRUE((*head)->ReadAt(0, absl::MakeSpan(bytes)).ok());
  ASSERT_EQ(bytes.size(), golden.at(info->durable_cut).size());
  ASSERT_TRUE(bytes == golden.at(info->durable_cut)) << "head, cut " << info->durable_cut;
}

}  // namespace h5mirror::store
