#include "onion_store/store/store_impl.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "base/machine.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/history_names.h"
#include "onion_store/restore_root.h"
#include "onion_store/store/file_list.h"
#include "onion_store/store/removed_files.h"

namespace h5mirror::store {
namespace {

constexpr char kOwnDirectory[] = ".h5mirror";
constexpr char kFormatName[] = ".h5mirror/format";
constexpr char kFormatPrefix[] = "h5mirror store ";
constexpr int kFormat = 1;

// The least memory of an apply: old pages, new ones, and pre-images of a MiB each.
constexpr uint64_t kApplyBytes = 3 << 20;

// Those that hang together may take an eighth of the store's memory.
int ApplyThreadsMax(const StoreOptions& options) {
  const uint64_t more = options.memory_max_bytes / 8 / kApplyBytes;
  return static_cast<int>(std::min<uint64_t>(
      Background::kThreadsMax, static_cast<uint64_t>(options.background_threads) + more));
}

bool IsPageSize(uint32_t bytes) {
  return bytes >= 512 && bytes <= 65536 && (bytes & (bytes - 1)) == 0;
}

// Under another name first: a disk that is full half-way must not leave a root of no format.
absl::Status WriteFormat(EnvTree& tree) {
  const std::string fresh = StrCat(kFormatName, ".new");
  H5M_ASSIGN_OR_RETURN(auto made, tree.Open(fresh, OpenKind::kCreateFresh, 0600));
  H5M_RETURN_IF_ERROR(WriteAt(*made, 0, StrCat(kFormatPrefix, kFormat, "\n")));
  H5M_RETURN_IF_ERROR(made->Sync());
  H5M_RETURN_IF_ERROR(tree.Rename(fresh, kFormatName));
  return tree.SyncDirectory(kOwnDirectory);
}

// Reads or makes ROOT/.h5mirror/format.
absl::Status CheckFormat(EnvTree& tree) {
  auto file = tree.Open(kFormatName, OpenKind::kRead, 0);
  if (absl::IsNotFound(file.status())) return WriteFormat(tree);
  H5M_RETURN_IF_ERROR(file.status());
  std::string text(64, '\0');
  H5M_ASSIGN_OR_RETURN(size_t got, (*file)->ReadAt(0, absl::MakeSpan(text)));
  text.resize(got);
  // An older program was stopped before its first sync: nothing else can exist.
  if (text.find('\n') == text.npos) return WriteFormat(tree);
  int format = 0;
  std::string_view number =
      std::string_view(text).substr(std::min(text.size(), std::string_view(kFormatPrefix).size()));
  std::from_chars(number.data(), number.data() + number.size(), format);
  if (format >= 1 && format <= kFormat) return absl::OkStatus();
  if (format == 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s holds no store format: it is damaged, or of another program. If this is "
        "a root, write \"%s%d\" and a line end into it",
        kFormatName, kFormatPrefix, kFormat));
  }
  return absl::FailedPreconditionError(
      absl::StrFormat("%s says store format %d, this program knows 1 to %d: use a newer program",
                      kFormatName, format, kFormat));
}

// Whether this process can give its files to the group, before the first head needs it.
absl::Status TryGroup(EnvTree& tree, const std::string& name, int64_t group) {
  H5M_ASSIGN_OR_RETURN(auto file, tree.Open(kFormatName, OpenKind::kRead, 0));
  const absl::Status set = file->SetMode(0600, group);
  if (set.ok()) return set;
  return absl::Status(
      set.code(),
      StrCat("group = \"", name, "\": ", ToStd(set.message()),
             "; the server's user must be in that group. A unit of systemd needs Group=", name,
             ", or SupplementaryGroups=", name, " and SystemCallFilter=@chown"));
}

// Of a root that an older program served nobody noted the time; its tokens tell when it was
// written.
void OpenClock(StoreContext& context) {
  std::optional<absl::Time> at_least;
  if (const auto stat = context.tree->Stat(TokenSource::kFileName); stat.ok()) {
    at_least = absl::FromUnixNanos(stat->mtime_ns);
  }
  context.clock.Open(*context.tree, ".h5mirror/clock", at_least);
}

}  // namespace

StoreImpl::StoreImpl(std::shared_ptr<StoreContext> context)
    : context_(std::move(context)), incarnation_(RandomBytes16()) {}

void StoreImpl::RecoverUnclean() {
  auto marks = context_->tree->List(".h5mirror/open");
  if (!marks.ok() || marks->empty()) return;
  struct Recovery final : BackgroundWorker {
    Recovery(StoreImpl* store_in, std::string mark_in)
        : store(store_in), mark(std::move(mark_in)) {}
    BackgroundTimes RunBackground(BackgroundPool) override {
      store->RecoverMarked(mark);
      return {};
    }
    StoreImpl* store;  // Its Close() ends the threads first.
    std::string mark;
  };
  for (const DirectoryEntry& entry : *marks) {
    context_->background->Post(
        std::make_shared<Recovery>(this, StrCat(".h5mirror/open/", entry.name)),
        absl::InfinitePast(), BackgroundPool::kApply);
  }
}

absl::Status StoreImpl::Close(absl::Duration deadline) {
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return absl::OkStatus();
    closed_ = true;
  }
  // Held to the end: with Stop() a file may go that only the background holds, and its cuts with
  // it.
  std::vector<std::shared_ptr<FileImpl>> files = LiveFiles();
  for (const auto& file : files) file->Hurry();
  context_->background->WaitIdle(context_->env.Now(), deadline);
  context_->stops_applying = true;
  context_->background->Stop();
  absl::Status status;
  for (auto& file : LiveFiles()) files.push_back(std::move(file));  // Some were being opened.
  for (const auto& file : files) {
    const bool was_alive = file->dead().ok();  // It dies of what fails here.
    absl::Status durable = file->MakeAllDurable();
    if (status.ok() && was_alive) status = durable;
    file->Retire();
  }
  if (context_->kind == StoreKind::kRoot) context_->clock.Note();
  context_->lock.reset();  // A caller that still holds a file can do nothing with it.
  return status;
}

absl::StatusOr<std::shared_ptr<File>> StoreImpl::OpenFile(std::string_view name) {
  H5M_ASSIGN_OR_RETURN(std::shared_ptr<FileImpl> file, Find(name, FileImpl::IfMissing::kFail, 0));
  return file;
}

absl::StatusOr<std::shared_ptr<File>> StoreImpl::OpenOrCreateFile(std::string_view name,
                                                                  uint32_t page_size_bytes) {
  if (page_size_bytes == 0) page_size_bytes = context_->options.page_size_bytes;
  if (!IsPageSize(page_size_bytes)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "page size %d: a power of two from 512 to 65536 is needed", page_size_bytes));
  }
  H5M_ASSIGN_OR_RETURN(std::shared_ptr<FileImpl> file,
                       Find(name, FileImpl::IfMissing::kCreate, page_size_bytes));
  return file;
}

absl::StatusOr<std::vector<FileSummary>> StoreImpl::List(std::string_view directory,
                                                         std::string_view after_name,
                                                         size_t limit) {
  H5M_ASSIGN_OR_RETURN(FileList list, ListFiles(*context_->tree, directory, after_name, limit));
  for (const std::string& each : list.unreadable) TellOfUnreadable(each);
  return std::move(list.files);
}

// A filesystem makes lost+found for its repair, at its top.
void StoreImpl::TellOfUnreadable(const std::string& directory) {
  if (directory == "lost+found") return;
  {
    absl::MutexLock lock(&mutex_);
    const bool is_new = unreadable_.size() < kUnreadableMax && unreadable_.insert(directory).second;
    if (!is_new) return;
  }
  context_->TellNotice(StoreNotice::Kind::kUnreadable, directory,
                       "may not be read by the server: its files are in no list, no quota and no "
                       "retention (told once)");
}

absl::StatusOr<FileInfo> StoreImpl::Glance(const FileSummary& listed) {
  GlanceCache& glances = context_->glances;
  // Before the file is found closed: an open from now on makes Put() void.
  const GlanceCache::Look look = glances.Begin(listed.name);
  const absl::Cleanup end = [&] { glances.End(listed.name, look); };
  if (const std::shared_ptr<FileImpl> open = FindOpen(listed.name)) return open->Glance();
  if (const auto known = glances.Find(listed)) return *known;
  H5M_ASSIGN_OR_RETURN(const std::shared_ptr<FileImpl> file,
                       FindToLook(listed.name, FileImpl::IfMissing::kFail, 0));
  H5M_ASSIGN_OR_RETURN(FileInfo info, file->Glance());
  // Else the recovery of a crash goes on, and ends without another open.
  const bool is_still = info.applied_cut == info.last_cut && info.durable_cut == info.last_cut;
  if (is_still) glances.Put(listed, info, look);
  return info;
}

std::shared_ptr<FileImpl> StoreImpl::FindOpen(std::string_view name) {
  std::shared_ptr<FileImpl> file;
  {
    absl::MutexLock lock(&mutex_);
    const auto slot = slots_.find(ToAbsl(name));
    if (slot != slots_.end()) file = slot->second.file.lock();
  }
  return file != nullptr && file->dead().ok() && !file->IsNothing() ? file : nullptr;
}

absl::StatusOr<HistorySizes> StoreImpl::Measure(std::string_view name, WithHead with_head) {
  H5M_RETURN_IF_ERROR(CheckName(name));
  return MeasureHistory(*context_->tree, name, with_head);
}

absl::StatusOr<std::vector<std::string>> StoreImpl::UnfinishedPrunes() {
  return MarkedFiles(kPruneMarks);
}

absl::StatusOr<std::vector<std::string>> StoreImpl::CheckedFiles() {
  return MarkedFiles(kCheckMarks);
}

absl::StatusOr<std::vector<std::string>> StoreImpl::MarkedFiles(std::string_view directory) {
  EnvTree& tree = *context_->tree;
  const auto marks = tree.List(directory);
  if (absl::IsNotFound(marks.status())) return std::vector<std::string>();
  H5M_RETURN_IF_ERROR(marks.status());
  std::vector<std::string> names;
  for (const DirectoryEntry& mark : *marks) {
    const std::string path = StrCat(directory, "/", mark.name);
    auto name = ReadMark(path);
    if (!name.ok()) continue;  // It was taken away just now.
    const bool usable = CheckName(*name).ok();
    const auto there = usable ? tree.Exists(StrCat(*name, ".h5m/index")) : false;
    if (there.ok() && !*there) {
      tree.Remove(path).IgnoreError();  // It was moved or removed, or the mark was cut short.
    } else {
      names.push_back(*std::move(name));
    }
  }
  return names;
}

absl::StatusOr<std::string> StoreImpl::ReadMark(const std::string& mark) {
  H5M_ASSIGN_OR_RETURN(const auto file, context_->tree->Open(mark, OpenKind::kRead, 0));
  std::string name(4097, '\0');
  H5M_ASSIGN_OR_RETURN(const size_t got, file->ReadAt(0, absl::MakeSpan(name)));
  name.resize(got);
  return name;
}

absl::StatusOr<std::shared_ptr<FileImpl>> StoreImpl::Find(std::string_view name,
                                                          FileImpl::IfMissing if_missing,
                                                          uint32_t page_size_bytes) {
  auto found = FindToLook(name, if_missing, page_size_bytes);
  // Behind the open, as a look may have found the file closed just before it.
  context_->glances.Forget(name);
  return found;
}

absl::StatusOr<std::shared_ptr<FileImpl>> StoreImpl::FindToLook(std::string_view name,
                                                                FileImpl::IfMissing if_missing,
                                                                uint32_t page_size_bytes) {
  H5M_RETURN_IF_ERROR(CheckName(name));
  std::string key(name);
  H5M_RETURN_IF_ERROR(FinishPending({&key, 1}));
  std::shared_ptr<FileImpl> doomed;  // Destroyed after the lock is released.
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return absl::UnavailableError("the store is closed");
    auto free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      auto at = slots_.find(key);
      return at == slots_.end() || !at->second.loading;
    };
    mutex_.Await(absl::Condition(&free));
    Slot& slot = slots_[key];
    std::shared_ptr<FileImpl> file = slot.file.lock();
    if (file != nullptr && file->dead().ok()) {
      if (!file->IsNothing() || if_missing == FileImpl::IfMissing::kCreate) return file;
      doomed = std::move(file);
      return absl::NotFoundError(StrCat("no file ", name, "; see h5mirror ls"));
    }
    doomed = std::move(file);
    slot.loading = true;
  }
  // The dead object's last work on the disk must end before the new one looks at it.
  if (doomed != nullptr) doomed->WaitUntilStill();
  auto loaded = FileImpl::Load(context_, name, if_missing, page_size_bytes);
  absl::MutexLock lock(&mutex_);
  if (loaded.ok()) {
    slots_[key] = Slot{false, *loaded};
    Sweep();
  } else {
    slots_.erase(key);
  }
  return loaded;
}

void StoreImpl::Sweep() {
  if (slots_.size() < sweep_at_) return;
  absl::erase_if(slots_, [](const auto& entry) {
    return !entry.second.loading && entry.second.file.expired();
  });
  sweep_at_ = 2 * slots_.size() + 64;
}

void StoreImpl::RecoverMarked(const std::string& mark) {
  const auto name = ReadMark(mark);
  if (!name.ok()) return;
  auto found = Find(*name, FileImpl::IfMissing::kFail, 0);
  if (absl::IsNotFound(found.status())) ClearAway(*name);
  // Nothing to recover, or a mark that was cut short: the next open of the file sees to it.
  if (!found.ok() &&
      (absl::IsNotFound(found.status()) || absl::IsInvalidArgument(found.status()))) {
    context_->tree->Remove(mark).IgnoreError();
  }
}

void StoreImpl::ClearAway(const std::string& name) {
  const auto has_head = context_->tree->Exists(name);
  const auto entries = context_->tree->List(StrCat(name, ".h5m"));
  if (!has_head.ok() || *has_head || !entries.ok()) return;
  // All that there is before a first cut becomes durable. Of anything else the index may come back.
  const bool was_never_durable =
      std::all_of(entries->begin(), entries->end(), [](const DirectoryEntry& entry) {
        return entry.name == "gen-1" || entry.name.starts_with("stage-") ||
               entry.name.starts_with("owner-");
      });
  if (!was_never_durable) return;
  const auto file = Find(name, FileImpl::IfMissing::kCreate, context_->options.page_size_bytes);
  if (file.ok()) (*file)->LeaveNothing();
}

std::vector<std::shared_ptr<FileImpl>> StoreImpl::LiveFiles() {
  absl::MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<FileImpl>> files;
  for (auto& [name, slot] : slots_) {
    if (auto file = slot.file.lock()) files.push_back(std::move(file));
  }
  return files;
}

absl::StatusOr<std::unique_ptr<Store>> Store::Open(Env& env, StoreOptions options) {
  if (!IsPageSize(options.page_size_bytes)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "page size %d: a power of two from 512 to 65536 is needed", options.page_size_bytes));
  }
  H5M_ASSIGN_OR_RETURN(auto tree, env.OpenTree(options.root));
  for (const char* name : {kOwnDirectory, ".h5mirror/open"}) {
    absl::Status made = tree->MakeDirectory(name, 0700);
    if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
    if (made.ok() && name == kOwnDirectory) H5M_RETURN_IF_ERROR(tree->SyncDirectory(""));
  }
  auto lock = tree->Lock(".h5mirror/lock", LockKind::kExclusive);
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::FailedPreconditionError(
        StrCat("another process serves ", options.root.string(), ": stop it, or set another root"));
  }
  H5M_RETURN_IF_ERROR(lock.status());
  H5M_RETURN_IF_ERROR(CheckNotBeingRestored(*tree));
  H5M_RETURN_IF_ERROR(CheckFormat(*tree));
  H5M_ASSIGN_OR_RETURN(const std::vector<Relocation> unfinished, UnfinishedRelocations(*tree));
  for (const Relocation& relocation : unfinished) {
    H5M_RETURN_IF_ERROR(FinishRelocation(*tree, relocation));
  }
  H5M_RETURN_IF_ERROR(SweepRemoved(*tree));
  int threads = options.background_threads;
  auto context = std::make_shared<StoreContext>(env, std::move(options), std::move(tree));
  context->lock = *std::move(lock);
  if (!context->options.group.empty()) {
    H5M_ASSIGN_OR_RETURN(context->group, env.GroupNumber(context->options.group));
    H5M_RETURN_IF_ERROR(TryGroup(*context->tree, context->options.group, context->group));
  }
  OpenClock(*context);
  H5M_RETURN_IF_ERROR(context->tokens.Load());
  const bool is_remote = dynamic_cast<IsRemote*>(context->tree.get()) != nullptr;
  context->background = std::make_unique<Background>(
      threads, context->env, Background::kThreadsMax, ApplyThreadsMax(context->options),
      is_remote ? absl::ZeroDuration() : Background::kHangs);
  auto store = std::make_unique<StoreImpl>(std::move(context));
  H5M_RETURN_IF_ERROR(store->EraseAllGone(StoreImpl::ArchiveCalls::kNone));
  store->RecoverUnclean();
  return store;
}

}  // namespace h5mirror::store
