#include "tests/crash/player.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "archive/directory_store.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "tests/crash/check_objects.h"

namespace h5mirror::store {
absl::StatusOr<std::unique_ptr<Store>> OpenOn(Env& env, const PlayOptions& options,
                                              int background_threads) {
  StoreOptions store_options;
  store_options.root = "/";
  store_options.page_size_bytes = options.page_size_bytes;
  store_options.memory_max_bytes = options.memory_max_bytes;
  store_options.stage_segment_bytes = options.stage_segment_bytes;
  store_options.page_compression = options.page_compression;
  store_options.background_threads = background_threads;
  store_options.durable_every = absl::Hours(1);
  H5M_ASSIGN_OR_RETURN(auto tree, env.OpenTree("/"));
  store_options.archive =
      std::make_shared<archive::DirectoryStore>(std::move(tree), kArchiveDirectory, "/arc");
  return Store::Open(env, store_options);
}

Player::Player(CountedEnv& env, uint64_t seed, PlayOptions options, Pace pace)
    : env_(env), random_(seed), options_(options), pace_(pace) {}

Player::~Player() {
  exports_.clear();
  writers_.clear();
  files_.clear();
  store_.reset();
}

Promises Player::promises() const {
  absl::MutexLock lock(&mutex_);
  return promises_;
}

bool Player::Begun(const std::string& text) {
  {
    absl::MutexLock lock(&mutex_);
    Ok(cut_error_);
  }
  if (!status_.ok()) return false;
  steps_.push_back({env_.change_count(), text});
  return true;
}

bool Player::Ok(const absl::Status& status) {
  if (status_.ok() && !status.ok()) status_ = status;
  return status.ok();
}

void Player::Open() {
  if (!Begun("open the store")) return;
  auto store = OpenOn(env_, options_);
  if (Ok(store.status())) store_ = *std::move(store);
}

void Player::Close(absl::Duration apply_time) {
  if (!Begun("close the store")) return;
  writers_.clear();
  files_.clear();
  if (store_ != nullptr) Ok(store_->Close(apply_time));
  store_.reset();
}

void Player::PutPlainFile(const std::string& file, uint64_t pages) {
  if (!Begun("put a plain file " + file)) return;
  auto put = [&]() -> absl::Status {
    H5M_ASSIGN_OR_RETURN(const auto tree, env_.OpenTree("/"));
    H5M_ASSIGN_OR_RETURN(const auto opened, tree->Open(file, OpenKind::kCreateFresh, 0640));
    newest_[file] = RandomBytes(pages * options_.page_size_bytes - 7);
    absl::Status written = WriteAt(*opened, 0, newest_[file]);
    if (written.ok()) written = opened->Sync();
    return written.ok() ? tree->SyncDirectory("") : written;
  };
  if (!Ok(put())) return;
  absl::MutexLock lock(&mutex_);
  promises_.files[file].golden[1] = std::make_shared<std::string>(newest_[file]);
  promises_.files[file].owner.clear();
}

std::shared_ptr<File> Player::FileOf(const std::string& file) {
  auto found = files_.find(file);
  if (found != files_.end()) return found->second;
  auto opened = store_->OpenOrCreateFile(NameOf(file), options_.page_size_bytes);
  if (!Ok(opened.status())) return nullptr;
  return files_[file] = *opened;
}

void Player::Touch(const std::string& file) {
  if (!Begun("open " + file)) return;
  std::shared_ptr<File> opened = FileOf(file);
  if (opened == nullptr) return;
  auto info = opened->Info();
  if (!Ok(info.status()) || info->durable_cut == 0) return;
  const size_t changes = env_.change_count();
  absl::MutexLock lock(&mutex_);
  auto& acked = promises_.files[file].acked;
  acked.push_back({info->durable_cut, 0, changes});
  if (info->newest_version.version == 0) return;
  acked.push_back({info->newest_version.cut, info->newest_version.version, changes});
}

std::string Player::RandomBytes(uint64_t size) {
  // Often equal pages: they have rules of their own. Often such as are saved compressed.
  std::string bytes(size, static_cast<char>(1 + random_() % 2));
  const uint64_t kind = random_() % 4;
  if (kind == 0) return bytes;
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = kind == 1 && i >= 16 ? bytes[i - 16] : static_cast<char>(random_());
  }
  return bytes;
}

std::array<uint8_t, 16> Player::RandomId() {
  std::array<uint8_t, 16> id{};
  for (uint8_t& byte : id) byte = static_cast<uint8_t>(random_());
  return id;
}

void Player::Begin(const std::string& file, SessionStart start) {
  if (!Begun(
          StrCat("begin ", file, start == SessionStart::kContinue ? "" : ", a new generation"))) {
    return;
  }
  std::shared_ptr<File> opened = FileOf(file);
  if (opened == nullptr) return;
  auto writer = std::make_unique<Writer>(opened, start, newest_[file], FilePromises().Local());
  if (!Ok(writer->begun())) {
    writer->End(SessionEnd::kLost).IgnoreError();  // It has the lease.
    return;
  }
  const size_t changes = env_.change_count();
  absl::MutexLock lock(&mutex_);
  promises_.files[file];
  promises_.tokens.push_back({writer->token(), changes});
  writers_[file] = std::move(writer);
}

void Player::Write(const std::string& file, double page, double page_count) {
  if (!Begun(absl::StrFormat("write %s, %g pages at %g", file, page_count, page))) return;
  Ok(writers_.at(file)->Write(BytesOf(page), RandomBytes(BytesOf(page_count))));
}

void Player::Zeros(const std::string& file, double page, double page_count) {
  if (!Begun(absl::StrFormat("write %s, %g pages of zeros at %g", file, page_count, page))) return;
  Ok(writers_.at(file)->Write(BytesOf(page), std::string(BytesOf(page_count), '\0')));
}

void Player::Truncate(const std::string& file, double pages) {
  if (!Begun(absl::StrFormat("truncate %s to %g pages", file, pages))) return;
  Ok(writers_.at(file)->Truncate(BytesOf(pages)));
}

void Player::CutAndGoOn(const std::string& file, BarrierKind kind) {
  const char* kinds[] = {"", "tick", "sync", "commit"};
  if (!Begun(StrCat(kinds[static_cast<int>(kind)], " of ", file))) return;
  Writer& writer = *writers_.at(file);
  auto on_durable = [this, file](absl::StatusOr<DurableCut> result) {
    const size_t changes = env_.change_count();
    absl::MutexLock lock(&mutex_);
    if (!result.ok()) {
      // What the file holds now nobody knows: no step can go on from there.
      if (cut_error_.ok()) cut_error_ = result.status();
      return;
    }
    promises_.files[file].acked.push_back({result->cut, result->version, changes});
  };
  auto golden = std::make_shared<std::string>(writer.content());
  auto cut = writer.Cut(kind, on_durable);
  const size_t changes = env_.change_count();
  absl::MutexLock lock(&mutex_);
  FilePromises& promised = promises_.files[file];
  if (!Ok(cut.status())) {
    promised.attempts.push_back(std::move(golden));
    return;
  }
  newest_[file] = *golden;
  promised.golden[*cut] = std::move(golden);
  promised.given.push_back({*cut, changes});
}

void Player::Tick(const std::string& file) { CutAndGoOn(file, BarrierKind::kTick); }

void Player::CutAndWait(const std::string& file, BarrierKind kind) {
  CutAndGoOn(file, kind);
  if (!status_.ok()) return;
  Ok(files_.at(file)->WaitApplied(patience_));
}

void Player::End(const std::string& file, SessionEnd end) {
  if (!Begun(StrCat(end == SessionEnd::kClean ? "end " : "lose the writer of ", file))) return;
  Ok(writers_.at(file)->End(end));
  writers_.erase(file);
  Settle(file);
}

void Player::Settle(const std::string& file) {
  if (pace_ == Pace::kConcurrent || !status_.ok()) return;
  if (!Ok(files_.at(file)->WaitApplied(patience_))) return;
  // The last that it does is to take the mark of a file that is written away.
  auto tree = env_.OpenTree("/");
  if (!Ok(tree.status())) return;
  const absl::Time deadline = absl::Now() + patience_;
  auto marks = (*tree)->List(".h5mirror/open");
  while (marks.ok() && marks->size() > writers_.size() && absl::Now() < deadline) {
    absl::SleepFor(absl::Microseconds(200));
    marks = (*tree)->List(".h5mirror/open");
  }
}

void Player::WaitApplied(const std::string& file) {
  if (!Begun("wait until the head holds the cuts of " + file)) return;
  std::shared_ptr<File> opened = FileOf(file);
  if (opened == nullptr) return;
  Ok(opened->WaitApplied(patience_));
  Settle(file);
}

void Player::Rollback(const std::string& file, VersionNumber version) {
  if (!Begun(StrCat("roll ", file, " back to ", version))) return;
  std::shared_ptr<File> opened = FileOf(file);
  if (opened == nullptr) return;
  auto target = opened->GetVersion(version);
  if (!Ok(target.status())) return;
  const Bytes wanted = GoldenOf(file, target->cut);
  Attempt(file, wanted);
  const auto made = opened->Rollback(version, {}, RandomId());
  const size_t changes = env_.change_count();
  if (!Ok(made.status())) return;
  NoteMade(file, wanted, *made, changes);
  Settle(file);
}

Bytes Player::GoldenOf(const std::string& file, CutNumber cut) {
  absl::MutexLock lock(&mutex_);
  return promises_.files[file].GoldenOf(cut);
}

void Player::Attempt(const std::string& file, const Bytes& wanted) {
  absl::MutexLock lock(&mutex_);
  promises_.files[file].attempts.push_back(wanted);
}

void Player::NoteMade(const std::string& file, const Bytes& wanted, const VersionInfo& made,
                      size_t changes) {
  newest_[file] = *wanted;
  absl::MutexLock lock(&mutex_);
  FilePromises& promised = promises_.files[file];
  promised.attempts.pop_back();
  promised.golden[made.cut] = wanted;
  promised.given.push_back({made.cut, changes});
  promised.acked.push_back({made.cut, made.version, changes});
}

void Player::Abandon() {
  exports_.clear();
  for (auto& [file, writer] : writers_) writer->End(SessionEnd::kLost).IgnoreError();
  writers_.clear();
  files_.clear();
}

void Player::BeginExport(const std::string& file, VersionNumber version) {
  if (!Begun(StrCat("open ", file, "@", version))) return;
  std::shared_ptr<File> opened = FileOf(file);
  if (opened == nullptr) return;
  auto reader = opened->OpenVersion(version);
  if (!Ok(reader.status())) return;
  absl::MutexLock lock(&mutex_);
  Bytes wanted = promises_.files[file].GoldenOf((*reader)->info().cut);
  exports_.push_back({file, *std::move(reader), std::move(wanted)});
}

absl::Status Player::ReadUpTo(Export& one, uint64_t end_bytes) {
  end_bytes = std::min(end_bytes, one.reader->info().size_bytes);
  if (end_bytes <= one.read_bytes) return absl::OkStatus();
  std::string bytes(end_bytes - one.read_bytes, '\0');
  const VersionNumber version = one.reader->info().version;
  absl::Status read = one.reader->Read(one.read_bytes, absl::MakeSpan(bytes));
  if (absl::IsOutOfRange(read)) {
    absl::MutexLock lock(&mutex_);
    if (promises_.files[one.file].IsDroppable(version)) return absl::OkStatus();
  }
  H5M_RETURN_IF_ERROR(read);
  if (one.wanted == nullptr || one.wanted->compare(one.read_bytes, bytes.size(), bytes) != 0) {
    return absl::DataLossError(StrCat(one.file, "@", version, " reads wrong bytes"));
  }
  one.read_bytes = end_bytes;
  return absl::OkStatus();
}

void Player::ReadOn() {
  if (!Begun("read a page of each version that is open")) return;
  for (Export& one : exports_) Ok(ReadUpTo(one, one.read_bytes + options_.page_size_bytes));
}

void Player::FinishExport() {
  if (!Begun("read the versions that are open")) return;
  for (Export& one : exports_) Ok(ReadUpTo(one, UINT64_MAX));
  exports_.clear();
}

void Player::TakeOver(const std::string& file) {
  if (!Begun(StrCat("take over ", file))) return;
  std::unique_ptr<Writer>& current = writers_.at(file);
  auto writer = std::make_unique<Writer>(files_.at(file), SessionStart::kContinue, newest_[file],
                                         FilePromises().Local());
  if (!Ok(writer->begun())) {  // The other one's session may go on.
    writer->End(SessionEnd::kLost).IgnoreError();
    return;
  }
  {
    const size_t changes = env_.change_count();
    absl::MutexLock lock(&mutex_);
    promises_.tokens.push_back({writer->token(), changes});
  }
  current.swap(writer);
  // Where a call has failed meanwhile the file is dead, to both of them.
  if (writer->Write(0, "fenced").ok()) {
    Ok(absl::InternalError("a session wrote that another had taken the file from"));
  }
}

void Player::ChangeTag(const std::string& file, VersionNumber version, const std::string& tag,
                       absl::FunctionRef<absl::Status(File&)> call) {
  std::shared_ptr<File> opened = FileOf(file);
  if (opened == nullptr) return;
  {
    absl::MutexLock lock(&mutex_);
    promises_.files[file].tag_changes.push_back({tag, version, false, SIZE_MAX});
  }
  if (!Ok(call(*opened))) return;
  const size_t changes = env_.change_count();
  absl::MutexLock lock(&mutex_);
  FilePromises::TagChange& change = promises_.files[file].tag_changes.back();
  change.acked = true;
  change.change_count = changes;
}

void Player::Tag(const std::string& file, VersionNumber version, const std::string& tag) {
  if (!Begun(StrCat("tag ", file, "@", version, " ", tag))) return;
  std::shared_ptr<File> opened = FileOf(file);
  if (opened == nullptr) return;
  auto target = opened->GetVersion(version);
  if (!Ok(target.status())) return;
  ChangeTag(file, target->version, tag,
            [&](File& to) { return to.Tag(target->version, tag, TagMode::kMove).status(); });
}

void Player::Untag(const std::string& file, const std::string& tag) {
  if (!Begun(StrCat("untag ", tag, " of ", file))) return;
  ChangeTag(file, 0, tag, [&](File& of) { return of.Untag(tag).status(); });
}

}  // namespace h5mirror::store
