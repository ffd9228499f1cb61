#include "onion_store/embedded/embedded_store.h"

#include <atomic>
#include <system_error>
#include <utility>

#include "absl/time/clock.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/store/store_impl.h"

namespace h5mirror::store {
namespace {

StoreOptions OptionsOf(const EmbeddedLease& lease, const EmbeddedOptions& options) {
  StoreOptions made;
  made.root = lease.directory();
  made.memory_max_bytes = options.memory_max_bytes;
  made.page_size_bytes = options.page_size_bytes;
  made.durable_every = options.durable_every;
  made.umask_bits = options.umask_bits;
  made.background_threads = options.background_threads;
  return made;
}

absl::StatusOr<std::shared_ptr<StoreContext>> MakeContext(std::unique_ptr<EmbeddedLease> lease,
                                                          const EmbeddedOptions& options) {
  Env& env = lease->env();
  H5M_ASSIGN_OR_RETURN(auto tree, env.OpenTree(lease->directory()));
  auto context = std::make_shared<StoreContext>(env, OptionsOf(*lease, options), std::move(tree),
                                                StoreKind::kOneFile);
  context->lock = std::move(lease);
  context->locks_heads = options.guard == HeadGuard::kApply;
  return context;
}

class EmbeddedStoreImpl final : public EmbeddedStore {
 public:
  EmbeddedStoreImpl(std::string name, bool unclean, std::shared_ptr<StoreContext> context)
      : name_(std::move(name)), context_(context), files_(std::move(context)), unclean_(unclean) {}

  const std::string& name() const override { return name_; }
  VersionNumber outside_change() override { return outside_change_; }

  absl::Status Close(absl::Duration deadline) override { return files_.Close(deadline); }

  absl::StatusOr<std::shared_ptr<File>> OpenFile(std::string_view name) override {
    H5M_RETURN_IF_ERROR(CheckOurs(name));
    return Noted(files_.OpenFile(name));
  }
  absl::StatusOr<std::shared_ptr<File>> OpenOrCreateFile(std::string_view name,
                                                         uint32_t page_size_bytes) override {
    H5M_RETURN_IF_ERROR(CheckOurs(name));
    return Noted(files_.OpenOrCreateFile(name, page_size_bytes));
  }

  absl::StatusOr<std::vector<FileSummary>> List(std::string_view directory,
                                                std::string_view after_name,
                                                size_t limit) override {
    std::vector<FileSummary> found;
    if (limit == 0 || !directory.empty() || after_name >= name_) return found;
    H5M_ASSIGN_OR_RETURN(const bool has, context_->tree->Exists(StrCat(name_, ".h5m/index")));
    if (!has) return found;
    H5M_ASSIGN_OR_RETURN(const FileStat head, context_->tree->Stat(name_));
    found.push_back(
        {name_, static_cast<uint64_t>(head.size_bytes), absl::FromUnixNanos(head.mtime_ns)});
    return found;
  }

  absl::StatusOr<VersionInfo> Fork(File&, VersionNumber, std::string_view,
                                   const ForkRequest&) override {
    return absl::UnimplementedError(StrCat(
        name_, " has no server, and so no forks: h5mirror export makes a file of a version"));
  }
  absl::Status Move(std::string_view, std::string_view) override { return NotHere("moved", "mv"); }
  absl::StatusOr<RemovedFile> Remove(std::string_view, const Provenance&, absl::Duration) override {
    return NotHere("removed", "rm -r");
  }
  absl::StatusOr<std::vector<RemovedFile>> ListRemoved() override {
    return std::vector<RemovedFile>();
  }
  absl::StatusOr<std::string> Undelete(std::string_view, std::string_view) override {
    return absl::UnimplementedError(
        StrCat(name_, " has no server, which alone keeps removed files"));
  }
  absl::StatusOr<int> PurgeRemoved(absl::Time) override { return 0; }
  absl::Status PurgeOneRemoved(std::string_view id) override {
    return absl::NotFoundError(StrCat("no removed file has the id ", id));
  }

  const std::array<uint8_t, 16>& incarnation() const override { return files_.incarnation(); }
  void SetCutListener(CutListener listener) override { files_.SetCutListener(std::move(listener)); }
  uint64_t memory_used_bytes() const override { return files_.memory_used_bytes(); }
  absl::StatusOr<uint64_t> FreeDiskBytes() const override { return files_.FreeDiskBytes(); }
  uint64_t disk_bytes() const override { return files_.disk_bytes(); }
  absl::StatusOr<HistorySizes> Measure(std::string_view name, WithHead with_head) override {
    H5M_RETURN_IF_ERROR(CheckOurs(name));
    return files_.Measure(name, with_head);
  }
  absl::StatusOr<std::vector<std::string>> CheckedFiles() override {
    return std::vector<std::string>();
  }
  absl::StatusOr<std::vector<std::string>> UnfinishedPrunes() override {
    return std::vector<std::string>();
  }
  void StopHistory(std::string_view name) override { files_.StopHistory(name); }
  void ResumeHistory(std::string_view name) override { files_.ResumeHistory(name); }

  bool PrepareFork(absl::Duration timeout) override {
    return context_->background->PrepareFork(timeout);
  }
  void ParentAfterFork() override { context_->background->ParentAfterFork(); }

 private:
  absl::Status CheckOurs(std::string_view name) const {
    if (name == name_) return absl::OkStatus();
    return absl::NotFoundError(StrCat("no file ", name, ": only ", name_, " is served here"));
  }
  absl::Status NotHere(std::string_view done, std::string_view command) const {
    return absl::UnimplementedError(StrCat(name_, " has no server: it is ", done, " with ", command,
                                           ", together with ", name_, ".h5m"));
  }
  absl::StatusOr<std::shared_ptr<File>> Noted(absl::StatusOr<std::shared_ptr<File>> file) {
    if (!file.ok()) return file;
    // Made by our own StoreImpl.
    const VersionNumber change = static_cast<FileImpl&>(**file).outside_change();
    if (change != 0) outside_change_ = change;
    if (!unclean_.exchange(false)) return file;
    // Makes a version of the lost writer's last cut. A server does so when a writer vanishes; here
    // no process was left to do it.
    H5M_ASSIGN_OR_RETURN(const FileInfo info, (*file)->Info());
    if (info.durable_cut <= info.newest_version.cut) return file;
    Provenance provenance;
    provenance.comment = "writer lost";
    H5M_RETURN_IF_ERROR((*file)->MakeVersion(provenance, RandomBytes16()).status());
    return file;
  }

  const std::string name_;
  const std::shared_ptr<StoreContext> context_;
  StoreImpl files_;
  std::atomic<bool> unclean_;  // there was a crash, and no open of the file since
  std::atomic<VersionNumber> outside_change_{0};
};

}  // namespace

std::string OutsideChangeNotice(const std::filesystem::path& head, VersionNumber version) {
  return StrCat(head.string(),
                " was changed by a program without server=embedded: what it left is "
                "version ",
                version, ", and older versions cannot be read where it wrote over them");
}

absl::StatusOr<std::unique_ptr<EmbeddedStore>> EmbeddedStore::Open(
    std::unique_ptr<EmbeddedLease> lease, const EmbeddedOptions& options) {
  std::string name = lease->name();
  H5M_ASSIGN_OR_RETURN(const bool unclean, lease->IsUnclean());
  H5M_ASSIGN_OR_RETURN(auto context, MakeContext(std::move(lease), options));
  try {
    context->background = std::make_unique<Background>(options.background_threads, context->env);
  } catch (const std::system_error& thrown) {
    return absl::ResourceExhaustedError(
        StrCat(name, ": no thread for its history: ", thrown.what()));
  }
  return std::make_unique<EmbeddedStoreImpl>(std::move(name), unclean, std::move(context));
}

absl::StatusOr<std::shared_ptr<File>> OpenEmbeddedToRead(Env& env,
                                                         const std::filesystem::path& head,
                                                         const std::string& program,
                                                         absl::Duration timeout,
                                                         std::string* notice) {
  const absl::Time deadline = absl::Now() + timeout;
  for (bool tidied = false;; tidied = true) {
    const absl::Duration left = deadline - absl::Now();
    H5M_ASSIGN_OR_RETURN(auto lease,
                         EmbeddedLease::Take(env, head, LockKind::kShared, program, left));
    const std::string name = lease->name();
    {
      H5M_ASSIGN_OR_RETURN(auto context, MakeContext(std::move(lease), {}));
      auto file = FileImpl::LoadToRead(std::move(context), name);
      if (file.ok()) return *std::move(file);
      // Another program may leave it unclean again each time: do not try for ever.
      if (!absl::IsFailedPrecondition(file.status()) || tidied) return file.status();
    }
    const absl::Duration rest = deadline - absl::Now();
    H5M_RETURN_IF_ERROR(HealEmbedded(env, head, program, rest, rest, notice));
  }
}

absl::Status HealEmbedded(Env& env, const std::filesystem::path& head, const std::string& program,
                          absl::Duration patience, absl::Duration timeout, std::string* notice) {
  H5M_ASSIGN_OR_RETURN(auto lease, EmbeddedLease::Take(env, head, LockKind::kExclusive, program,
                                                       patience, Mirrored::kGiven));
  *notice = lease->notice();
  // The lease has finished an edit that was broken off; the history is the server's.
  if (lease->is_mirrored()) return absl::OkStatus();
  EmbeddedOptions options;
  options.guard = HeadGuard::kApply;
  H5M_ASSIGN_OR_RETURN(auto store, EmbeddedStore::Open(std::move(lease), options));
  absl::Status applied;
  {
    H5M_ASSIGN_OR_RETURN(auto file, store->OpenFile(store->name()));
    applied = file->WaitApplied(timeout);
  }
  // The apply failed; no other process is at work.
  if (absl::IsUnavailable(applied)) applied = absl::InternalError(applied.message());
  if (store->outside_change() != 0) *notice = OutsideChangeNotice(head, store->outside_change());
  const absl::Status closed = store->Close(absl::ZeroDuration());
  return applied.ok() ? closed : applied;
}

}  // namespace h5mirror::store
