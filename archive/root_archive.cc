#include "archive/root_archive.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/ascii.h"
#include "archive/directory_store.h"
#include "archive/retry.h"
#include "archive/watched_source.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::archive {
namespace {

constexpr std::string_view kOwnerHead = "h5mirror archive 1\n";
constexpr size_t kIdDigits = 32;
constexpr size_t kOwnerBytes = kOwnerHead.size() + kIdDigits + 1;
// Follows the owner in the text kept with the root, until the archive has its object.
constexpr std::string_view kClaiming = " new";
// The timeout of a call that only asks whether the archive answers again.
constexpr absl::Duration kProbeTimeout = absl::Seconds(10);

int64_t SteadyNs() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string IdOf(const std::string& owner) { return owner.substr(0, kIdDigits); }

// `part` below `place`.
std::string PartOf(const std::string& place, const std::string& part) {
  return StrCat(place, place.empty() || part.empty() ? "" : "/", part);
}

bool IsId(std::string_view id) {
  return id.size() == kIdDigits && std::all_of(id.begin(), id.end(), [](char c) {
           return absl::ascii_isxdigit(static_cast<unsigned char>(c));
         });
}

class OwnerSource final : public store::ObjectSource {
 public:
  explicit OwnerSource(std::string_view id) : text_(StrCat(kOwnerHead, id, "\n")) {}
  uint64_t size_bytes() const override { return text_.size(); }
  absl::Status Read(uint64_t offset, absl::Span<char> out) override {
    std::copy_n(text_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return absl::OkStatus();
  }

 private:
  const std::string text_;
};

}  // namespace

thread_local int RootArchive::BackgroundWork::depth = 0;
thread_local int RootArchive::NoCalls::depth = 0;

absl::Status RootArchive::CheckSettings(const Settings& settings) {
  if (!settings.part.empty()) H5M_RETURN_IF_ERROR(store::CheckObjectName(settings.part));
  if (settings.owner.empty() || IsId(IdOf(settings.owner))) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat(
      settings.owner_place, ": it should have the ", kIdDigits,
      " hex digits of the root's archive, as the object \"", kOwnerObject, "\" of that has"));
}

absl::StatusOr<std::unique_ptr<RootArchive>> RootArchive::Open(Env& env, Settings settings) {
  H5M_ASSIGN_OR_RETURN(ArchiveUrl url, ParseArchiveUrl(settings.url));
  H5M_RETURN_IF_ERROR(CheckSettings(settings));
  url.s3.prefix = PartOf(url.s3.prefix, settings.part);
  auto line = std::make_shared<ArchiveLine>(settings.background_rate, settings.limits);
  std::unique_ptr<RootArchive> archive(
      new RootArchive(env, std::move(settings), std::move(url), std::move(line)));
  if (!archive->url_.directory.empty()) return archive;
  H5M_ASSIGN_OR_RETURN(archive->service_, S3Store::Open(archive->url_.s3, RetryPolicy(),
                                                        RetryClock::Steady(), &archive->stopped_));
  return archive;
}

absl::StatusOr<std::unique_ptr<RootArchive>> RootArchive::OpenPart(Settings settings) const {
  H5M_RETURN_IF_ERROR(CheckSettings(settings));
  settings.url = settings_.url;
  std::unique_ptr<RootArchive> archive(new RootArchive(env_, std::move(settings), url_, line_));
  if (service_ != nullptr) {
    archive->service_ = service_->Below(archive->settings_.part, &archive->stopped_);
    archive->top_ = service_->Below("", &archive->stopped_);
  }
  return archive;
}

absl::StatusOr<std::unique_ptr<RootArchive>> RootArchive::OpenFailingPart(
    Settings settings, absl::Status failure) const {
  settings.owner.clear();  // The owner may be the invalid setting.
  H5M_ASSIGN_OR_RETURN(auto archive, OpenPart(std::move(settings)));
  archive->failure_ = archive->Named(failure);
  line_->SetFault(archive->settings_.part, archive->failure_);
  archive->has_fault_ = true;
  return archive;
}

RootArchive::RootArchive(Env& env, Settings settings, ArchiveUrl url,
                         std::shared_ptr<ArchiveLine> line)
    : env_(env),
      settings_(std::move(settings)),
      url_(std::move(url)),
      line_(std::move(line)),
      owner_(settings_.owner) {
  line_->Join(&stopped_);
  NoteOwn();
}

void RootArchive::NoteOwn() {
  const std::string id = owner();
  if (!settings_.part.empty() && id.size() == kIdDigits) {
    line_->NoteOwn(&stopped_, {settings_.part, id});
  }
}

RootArchive::~RootArchive() {
  line_->Leave(&stopped_);
  if (has_fault_) line_->ClearFault(settings_.part);
}

void RootArchive::SetGuard(Guard guard) {
  const absl::MutexLock lock(&mutex_);
  guard_ = std::move(guard);
}

absl::Status RootArchive::MayChange() {
  if (!failure_.ok()) return failure_;
  if (settings_.part.empty()) return absl::OkStatus();
  Guard guard;
  {
    const absl::MutexLock lock(&mutex_);
    guard = guard_;
  }
  if (guard != nullptr) return guard();
  return Named(absl::UnavailableError("its cell is not served yet"));
}

std::string RootArchive::Describe() const {
  return service_ != nullptr ? service_->Describe() : PartOf(url_.directory, settings_.part);
}

absl::Status RootArchive::BrokenOff() const {
  if (settings_.part.empty() || line_->is_stopped()) {
    return absl::UnavailableError("the server stops");
  }
  return Named(absl::UnavailableError("its cell is being handed over to another server"));
}

std::string RootArchive::owner() const {
  const absl::MutexLock lock(&mutex_);
  return owner_;
}

absl::Status RootArchive::Named(const absl::Status& status) const {
  return absl::Status(status.code(), StrCat(Describe(), ": ", ToStd(status.message())));
}

absl::StatusOr<std::unique_ptr<EnvTree>> RootArchive::OpenTree() {
  auto tree = env_.OpenTree(url_.directory);
  if (!absl::IsNotFound(tree.status())) return tree;
  return absl::UnavailableError(
      StrCat("the archive ", url_.directory, " is not there: is its disk mounted?"));
}

absl::StatusOr<std::shared_ptr<store::ObjectStore>> RootArchive::OpenDirectory() {
  H5M_ASSIGN_OR_RETURN(auto tree, OpenTree());
  return std::make_shared<DirectoryStore>(std::move(tree), settings_.part, Describe());
}

absl::StatusOr<std::shared_ptr<store::ObjectStore>> RootArchive::OpenNow(absl::Duration timeout,
                                                                         Look* look) {
  if (stopped_) return BrokenOff();
  std::shared_ptr<store::ObjectStore> opened = service_;
  if (opened == nullptr) {
    H5M_ASSIGN_OR_RETURN(opened, OpenDirectory());
  } else if (SteadyNs() < checked_ns_.load() + absl::ToInt64Nanoseconds(kOwnerCheckEvery)) {
    return opened;
  }
  if (settings_.keep_owner == nullptr) return opened;
  H5M_RETURN_IF_ERROR(CheckOwner(*opened, timeout, look));
  checked_ns_ = SteadyNs();
  if (has_fault_.exchange(false)) line_->ClearFault(settings_.part);
  return opened;
}

bool RootArchive::IsFault(bool is_anothers, const absl::Status& status) {
  if (!is_anothers || settings_.part.empty()) return false;
  line_->SetFault(settings_.part, status);
  has_fault_ = true;
  return true;
}

absl::StatusOr<std::string> ReadArchiveOwner(store::ObjectStore& archive, absl::Duration timeout,
                                             const std::string& part) {
  const std::string object = PartOf(part, std::string(RootArchive::kOwnerObject));
  std::string text(kOwnerBytes, '\0');
  const absl::Status got = archive.Get(object, 0, absl::MakeSpan(text), timeout);
  if (!got.ok() && !absl::IsDataLoss(got)) return got;
  const std::string_view id = std::string_view(text).substr(kOwnerHead.size(), kIdDigits);
  if (got.ok() && text.starts_with(kOwnerHead) && IsId(id)) return std::string(id);
  return absl::FailedPreconditionError(
      StrCat("the object \"", object, "\" in ", archive.Describe(),
             " is of a form that this version of h5mirror does not know"));
}

absl::Status ReplaceArchiveOwner(store::ObjectStore& archive, std::string_view id,
                                 absl::Duration timeout) {
  H5M_RETURN_IF_ERROR(archive.Delete(RootArchive::kOwnerObject, timeout));
  OwnerSource source(id);
  const absl::Status put = archive.Put(RootArchive::kOwnerObject, source, timeout);
  if (!put.ok() && !absl::IsAlreadyExists(put)) return put;
  H5M_ASSIGN_OR_RETURN(const std::string found, ReadArchiveOwner(archive, timeout));
  if (found == id) return absl::OkStatus();
  return absl::AbortedError(StrCat(archive.Describe(), " got another owner at the same moment"));
}

absl::Status RootArchive::OthersArchive() const {
  return absl::FailedPreconditionError(
      StrCat(Describe(),
             " is the archive of another root: give this one a directory or a prefix of its "
             "own. If it is this root's, and ",
             settings_.owner_place, " was lost, write the 32 hex digits of the object \"",
             kOwnerObject, "\" there"));
}

absl::Status RootArchive::CheckOwner(store::ObjectStore& opened, absl::Duration timeout,
                                     Look* look) {
  const std::string owner = this->owner();
  if (owner.size() == kIdDigits) {
    const auto found = ReadArchiveOwner(opened, timeout);
    look->is_anothers = found.ok() ? *found != owner : absl::IsNotFound(found.status());
    if (found.ok()) return *found == owner ? absl::OkStatus() : OthersArchive();
    if (!absl::IsNotFound(found.status())) return found.status();
    return absl::FailedPreconditionError(
        StrCat(Describe(), " lacks the object \"", kOwnerObject,
               "\" of this root's archive: is its disk mounted, is this its bucket? If all of the "
               "archive is gone, and shall begin anew, remove ",
               settings_.owner_place));
  }
  const absl::Status claimed = Claim(opened, owner, timeout, look);
  look->is_anothers =
      absl::IsFailedPrecondition(claimed) && !look->is_memorys && !look->is_other_clusters;
  return claimed;
}

// A crash between two steps leaves a claim, and the next call continues from it.
absl::Status RootArchive::Claim(store::ObjectStore& opened, const std::string& owner,
                                absl::Duration timeout, Look* look) {
  auto found = ReadArchiveOwner(opened, timeout);
  std::string id = owner.empty() ? HexOf(RandomBytes16()) : IdOf(owner);
  if (absl::IsNotFound(found.status())) {
    if (settings_.part.empty()) H5M_RETURN_IF_ERROR(CheckHasNoParts(opened, timeout));
    H5M_RETURN_IF_ERROR(CheckCluster(ClusterMark::Asker::kNewPart, timeout, look));
    H5M_RETURN_IF_ERROR(Keep(StrCat(id, kClaiming)));
    H5M_RETURN_IF_ERROR(MayChange());
    OwnerSource source(id);
    absl::Status put = opened.Put(kOwnerObject, source, timeout);
    if (!put.ok() && !absl::IsAlreadyExists(put)) return put;
    found = ReadArchiveOwner(opened, timeout);
  }
  H5M_RETURN_IF_ERROR(found.status());
  if (*found != id) return OthersArchive();
  return Keep(id);
}

absl::Status RootArchive::CheckHasNoParts(store::ObjectStore& opened, absl::Duration timeout) {
  H5M_ASSIGN_OR_RETURN(const store::ObjectPage page, opened.List(kParts, "", 1, timeout));
  if (page.objects.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat(Describe(), " is the archive of a cluster, as it has ", page.objects.front().name,
             ": give this root a directory or a prefix of its own"));
}

void RootArchive::NoteTopOwner(bool is_there) {
  if (settings_.keep_owner != nullptr || !settings_.part.empty()) return;
  if (is_there) {
    line_->SetFault("", absl::FailedPreconditionError(StrCat(
                            Describe(), " has the object \"", kOwnerObject,
                            "\" of a root that is no cell: give that root, or this cluster, a "
                            "directory or a prefix of its own")));
    has_fault_ = true;
  } else if (has_fault_.exchange(false)) {
    line_->ClearFault("");
  }
}

void RootArchive::SetCluster(ClusterMark::Settings settings) {
  line_->SetCluster(std::make_shared<ClusterMark>(std::move(settings)));
}

bool RootArchive::HasOwnPart(store::ObjectStore& top, absl::Duration timeout) {
  for (const ArchiveLine::OwnPart& own : line_->OwnParts()) {
    const auto found = ReadArchiveOwner(top, timeout, own.part);
    if (found.ok() && *found == own.id) return true;
  }
  return false;
}

absl::Status RootArchive::CheckCluster(ClusterMark::Asker asker, absl::Duration timeout,
                                       Look* look) {
  using Asker = ClusterMark::Asker;
  using Verdict = ClusterMark::Verdict;
  const std::shared_ptr<ClusterMark> mark = line_->cluster();
  if (mark == nullptr) return absl::OkStatus();
  std::shared_ptr<store::ObjectStore> top = settings_.part.empty() ? service_ : top_;
  if (top == nullptr) {
    H5M_ASSIGN_OR_RETURN(auto tree, OpenTree());
    top = std::make_shared<DirectoryStore>(std::move(tree), "", url_.directory);
  } else if (asker != Asker::kNewPart && !line_->MustCheckCluster(kOwnerCheckEvery)) {
    return absl::OkStatus();
  }
  Verdict verdict = Verdict::kUnknown;
  absl::Status checked = mark->Check(*top, asker, timeout, look->waits, &verdict);
  // Its own parts may be idle for a long time. Any of them proves that this is the same archive as
  // before.
  if (verdict == Verdict::kLacks && HasOwnPart(*top, timeout)) {
    checked = mark->Check(*top, Asker::kOwnPart, timeout, look->waits, &verdict);
  }
  look->is_memorys = verdict == Verdict::kNoMemory;
  look->is_other_clusters =
      !checked.ok() && (verdict == Verdict::kLacks || verdict == Verdict::kOthers);
  line_->NoteCluster(checked, verdict);
  return checked;
}

void RootArchive::NoteCluster(absl::Duration timeout) {
  if (line_->cluster() == nullptr) return;
  Run(Kind::kReach, timeout, [](store::ObjectStore&, CallWatch::Ticket) {
    return absl::OkStatus();
  }).IgnoreError();
}

absl::Status RootArchive::Keep(const std::string& text) {
  H5M_RETURN_IF_ERROR(settings_.keep_owner(text));
  {
    const absl::MutexLock lock(&mutex_);
    owner_ = text;
  }
  NoteOwn();
  return absl::OkStatus();
}

absl::Status RootArchive::MayCall() {
  if (!failure_.ok()) return failure_;
  if (stopped_) return BrokenOff();
  if (NoCalls::is_on()) {
    return Named(absl::UnavailableError("the work that is done now waits for no archive"));
  }
  // Only one thread claims the archive, so that no thread waits for another.
  const bool is_claimed = settings_.keep_owner == nullptr || owner().size() == kIdDigits;
  if (!BackgroundWork::is_on() && !is_claimed) {
    return Named(absl::UnavailableError("it is not made the root's archive yet"));
  }
  CallWatch& watch = line_->watch();
  const absl::StatusOr<bool> must_probe = watch.MustProbe();
  if (!must_probe.ok()) return Named(must_probe.status());
  if (!*must_probe) return absl::OkStatus();
  Look look;
  const auto opened = OpenNow(kProbeTimeout, &look);
  absl::Status status = opened.status();
  if (opened.ok()) status = (*opened)->Head(kOwnerObject, kProbeTimeout).status();
  const bool is_answer =
      look.is_memorys || look.is_other_clusters || IsFault(look.is_anothers, status);
  watch.Probed(is_answer ? absl::OkStatus() : status);
  // If no root owns the archive, the object may be absent.
  if (settings_.keep_owner == nullptr && absl::IsNotFound(status)) return absl::OkStatus();
  return status;
}

absl::Status RootArchive::Run(Kind kind, absl::Duration timeout, Work work) {
  H5M_RETURN_IF_ERROR(MayCall());
  CallWatch& watch = line_->watch();
  const auto call = watch.Begin(kind, !BackgroundWork::is_on(), timeout);
  if (!call.ok()) return Named(call.status());
  Look look;
  look.waits = [&](bool is_begin) { is_begin ? watch.Wait(*call) : watch.GoOn(*call); };
  const auto opened = OpenNow(timeout, &look);
  absl::Status status = opened.status();
  if (status.ok() && (kind == Kind::kChange || kind == Kind::kReach)) {
    const auto asker =
        settings_.part.empty() ? ClusterMark::Asker::kServer : ClusterMark::Asker::kOwnPart;
    status = CheckCluster(asker, timeout, &look);
  }
  if (status.ok()) status = work(**opened, *call);
  if (absl::IsCancelled(status)) status = BrokenOff();
  // No call was tried that shows how calls of this kind go.
  const bool is_untried = look.is_memorys || (look.is_other_clusters && kind != Kind::kReach);
  if ((stopped_ && !status.ok()) || is_untried) {
    watch.BreakOff(*call);
  } else if (look.is_other_clusters || IsFault(look.is_anothers, status)) {
    watch.End(*call, true, absl::OkStatus());
  } else {
    watch.End(*call, opened.ok(), status);
  }
  return status;
}

absl::Status RootArchive::Put(std::string_view name, store::ObjectSource& source,
                              absl::Duration timeout) {
  H5M_RETURN_IF_ERROR(store::CheckObjectName(name));
  H5M_RETURN_IF_ERROR(MayChange());
  CallWatch& watch = line_->watch();
  // The S3 store computes a body's checksum before it sends the body.
  const uint64_t free_bytes = service_ == nullptr ? 0 : source.size_bytes();
  H5M_RETURN_IF_ERROR(
      Run(Kind::kChange, timeout, [&](store::ObjectStore& opened, CallWatch::Ticket call) {
        WatchedSource watched(
            source, BackgroundWork::is_on() ? &line_->pace() : nullptr, free_bytes, stopped_,
            [&](bool is_begin) { is_begin ? watch.Wait(call) : watch.GoOn(call); });
        return opened.Put(name, watched, timeout);
      }));
  watch.CountPut(source.size_bytes());
  return absl::OkStatus();
}

absl::Status RootArchive::Get(std::string_view name, uint64_t offset, absl::Span<char> out,
                              absl::Duration timeout) {
  H5M_RETURN_IF_ERROR(store::CheckObjectName(name));
  if (BackgroundWork::is_on() && !line_->pace().Take(out.size(), stopped_).ok()) return BrokenOff();
  H5M_RETURN_IF_ERROR(Run(Kind::kRead, timeout, [&](store::ObjectStore& opened, CallWatch::Ticket) {
    return opened.Get(name, offset, out, timeout);
  }));
  line_->watch().CountGot(out.size());
  return absl::OkStatus();
}

absl::StatusOr<store::ObjectInfo> RootArchive::Head(std::string_view name, absl::Duration timeout) {
  store::ObjectInfo info;
  H5M_RETURN_IF_ERROR(
      Run(Kind::kRead, timeout, [&](store::ObjectStore& opened, CallWatch::Ticket) -> absl::Status {
        H5M_ASSIGN_OR_RETURN(info, opened.Head(name, timeout));
        return absl::OkStatus();
      }));
  return info;
}

absl::StatusOr<store::ObjectPage> RootArchive::List(std::string_view prefix, std::string_view next,
                                                    size_t limit, absl::Duration timeout) {
  store::ObjectPage page;
  H5M_RETURN_IF_ERROR(
      Run(Kind::kList, timeout, [&](store::ObjectStore& opened, CallWatch::Ticket) -> absl::Status {
        H5M_ASSIGN_OR_RETURN(page, opened.List(prefix, next, limit, timeout));
        return absl::OkStatus();
      }));
  return page;
}

absl::Status RootArchive::Delete(std::string_view name, absl::Duration timeout) {
  H5M_RETURN_IF_ERROR(MayChange());
  return Run(Kind::kChange, timeout, [&](store::ObjectStore& opened, CallWatch::Ticket) {
    return opened.Delete(name, timeout);
  });
}

}  // namespace h5mirror::archive
