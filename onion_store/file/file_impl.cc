#include "onion_store/file/file_impl.h"

#include "absl/strings/str_format.h"
#include "base/hex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"

namespace h5mirror::store {

FileImpl::FileImpl(std::shared_ptr<StoreContext> context, std::string name)
    : context_(std::move(context)),
      files_(context_, std::move(name)),
      pinned_pages_(context_->budget, *context_->tree, files_.directory()),
      history_(files_, context_->kind),
      dropped_versions_(files_.name()) {}

FileImpl::~FileImpl() = default;

absl::StatusOr<std::shared_ptr<VersionIndex>> FileImpl::Index() {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(health_.dead());
  return index_;
}

void FileImpl::WaitUntilStill() {
  absl::MutexLock work(&work_lock_);
  absl::MutexLock tag(&tag_mutex_);
  std::shared_ptr<VersionIndex> index;
  {
    absl::MutexLock lock(&mutex_);
    index = index_;
  }
  // A reader of the dead object must not open it again beside the next object.
  if (index != nullptr) index->GiveUp();
}

absl::Status FileImpl::dead() {
  absl::MutexLock lock(&mutex_);
  return health_.dead();
}

bool FileImpl::IsNothing() {
  absl::MutexLock lock(&mutex_);
  return row_.durable_cut == 0 && cuts_.layers.empty() && !open_.is_open() &&
         session_.phase() == WriterPhase::kNone;
}

FileOwner FileImpl::Owner() {
  absl::MutexLock lock(&mutex_);
  if (!HasCut() && !session_.is_writing()) return {};
  return {true, owner_};
}

void FileImpl::Post(absl::Time when) {
  if (context_->background != nullptr) context_->background->Post(shared_from_this(), when);
}

void FileImpl::TellDamage(VersionNumber version, const FoundPages& lost, const FoundPages& bad) {
  const auto pages = [](const FoundPages& found) {
    return found.count == 1 ? StrCat("page ", found.first, " of ")
                            : StrCat(found.count, " pages from page ", found.first, " on of ");
  };
  context_->lost_pages += lost.count;
  if (lost.count > 0) {
    context_->TellNotice(
        StoreNotice::Kind::kPagesLost, files_.name(),
        StrCat(pages(lost), "version ", version,
               " lost: the head did not match its checksums when they were to be saved. It went "
               "bad on the disk, or something else wrote it; h5mirror verify lists what is lost"));
  }
  // Each cut of a writer may meet the same pages again.
  const uint64_t key = bad.count == 0 ? told_bad_.load() : bad.first + 1;
  if (key != told_bad_.exchange(key)) {
    context_->TellNotice(
        StoreNotice::Kind::kPagesLost, files_.name(),
        StrCat(pages(bad),
               "the head damaged, and overwritten in part: reads of them fail until a program "
               "writes them as a whole, or creates the file anew"));
  }
}

absl::StatusOr<FileInfo> FileImpl::InfoInMemory(std::shared_ptr<VersionIndex>& index) {
  FileInfo info;
  {
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(health_.dead());
    index = index_;
    info.file_id = files_.file_id();
    info.size_bytes = cuts_.last.size_bytes;
    info.page_size_bytes = files_.page_size_bytes();
    info.generation = cuts_.base == nullptr ? 0 : cuts_.base->number;
    info.last_cut = cuts_.last.number;
    info.durable_cut = row_.durable_cut;
    info.applied_cut = row_.applied_cut;
    info.newest_version = newest_;
    info.newest_version.source.reset();  // Only GetVersion() returns it.
    // Only GetVersion() returns a long list. Other members have only the name of the first, which
    // is short.
    std::optional<GroupCut>& group = info.newest_version.group;
    if (group && group->members.size() > 1) group->members.clear();
    info.last_is_version = LastIsVersion();
    info.last_barrier = cuts_.last.barrier;
    info.durable_barrier = row_.durable_barrier;
    info.origin = row_.origin;
    info.local = row_.local;
    info.owner = owner_;
    info.forked_from = forked_from_;
    for (const LayerPtr& layer : cuts_.layers) {  // The newest cut brought them.
      info.origin = layer->origin;
      info.local = layer->local;
    }
    info.stage_bytes = stage_->byte_count();
    info.history_bytes = saved_.SealedBytes(row_) + row_.pages_end_bytes;
  }
  return info;
}

absl::StatusOr<FileInfo> FileImpl::Glance() {
  std::shared_ptr<VersionIndex> index;
  H5M_ASSIGN_OR_RETURN(FileInfo info, InfoInMemory(index));
  if (index != nullptr && info.local.inode == 0) info.last_check = last_check_.Get(*index);
  return info;
}

absl::StatusOr<FileInfo> FileImpl::Info() {
  std::shared_ptr<VersionIndex> index;
  H5M_ASSIGN_OR_RETURN(FileInfo info, InfoInMemory(index));
  if (index == nullptr) return info;
  // A newer version may be in the index by now; the answer must be of one moment.
  H5M_ASSIGN_OR_RETURN(info.version_count, index->CountUpTo(info.newest_version.version));
  H5M_ASSIGN_OR_RETURN(info.newest_version.tags, index->TagsOf(info.newest_version.version));
  info.last_check = last_check_.Get(*index);
  return info;
}

absl::Status FileImpl::WaitApplied(absl::Duration timeout) {
  absl::Time deadline = absl::Now() + timeout;
  absl::MutexLock lock(&mutex_);
  auto applied = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!health_.dead().ok()) return true;
    if (due_work_.has_lost_cut()) return false;
    // Cuts that are about to become durable count: a commit without a waiting caller, a lost
    // writer's cut.
    return std::none_of(cuts_.layers.begin(), cuts_.layers.end(), [](const LayerPtr& layer) {
      return layer->durable || layer->due == absl::InfinitePast();
    });
  };
  if (!mutex_.AwaitWithDeadline(absl::Condition(&applied), deadline)) {
    return absl::DeadlineExceededError(
        StrCat(files_.name(), ": the head does not hold the newest durable cut yet",
               health_.apply_error().ok() ? "" : ": ", ToStd(health_.apply_error().message())));
  }
  return health_.dead();
}

std::unique_ptr<StageLog> FileImpl::EmptyStage() const {
  return std::make_unique<StageLog>(*context_->tree, files_.directory(), files_.file_id(),
                                    context_->options.stage_segment_bytes);
}

FileImpl::GenerationPtr FileImpl::EmptyGeneration() const {
  auto generation = std::make_shared<Generation>();
  generation->direct_sums = std::make_unique<DirectSums>(
      context_->budget, *context_->tree, files_.directory(), files_.page_size_bytes());
  return generation;
}

absl::StatusOr<FileImpl::GenerationPtr> FileImpl::OpenGeneration(int64_t number,
                                                                 const std::string& head_name,
                                                                 OpenKind kind) {
  auto generation = EmptyGeneration();
  generation->number = number;
  generation->has_cut = true;
  auto head = context_->tree->Open(head_name, kind, 0);
  if (absl::IsNotFound(head.status())) {
    return absl::DataLossError(StrCat(head_name, ", the head of generation ", number, " of ",
                                      files_.name(), ", is missing: put it back, or remove ",
                                      files_.directory(), " to forget the file's history"));
  }
  H5M_RETURN_IF_ERROR(head.status());
  generation->head = *std::move(head);
  std::string sums_name = files_.HistoryName(StrCat("sums-", number));
  if (context_->background == nullptr) {  // Only read, perhaps by others too.
    H5M_ASSIGN_OR_RETURN(auto sums, context_->tree->Open(sums_name, OpenKind::kRead, 0));
    generation->sums = std::make_unique<SumsFile>(std::move(sums), files_.page_size_bytes());
    return generation;
  }
  H5M_ASSIGN_OR_RETURN(const bool had_sums, context_->tree->Exists(sums_name));
  H5M_ASSIGN_OR_RETURN(auto sums, context_->tree->Open(sums_name, OpenKind::kCreate, 0600));
  if (!had_sums) H5M_RETURN_IF_ERROR(context_->tree->SyncDirectory(files_.directory()));
  generation->sums = std::make_unique<SumsFile>(std::move(sums), files_.page_size_bytes());
  return generation;
}

}  // namespace h5mirror::store
