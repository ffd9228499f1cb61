#include "archive/root_archive.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/ascii.h"
#include "archive/directory_store.h"
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
// Behind the owner that is kept with the root, until the archive has its object.
constexpr std::string_view kClaiming = " new";
// Of a call that only asks whether the archive answers again.
constexpr absl::Duration kProbeTimeout = absl::Seconds(10);

int64_t SteadyNs() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string IdOf(const std::string& owner) { return owner.substr(0, kIdDigits); }

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

absl::StatusOr<std::unique_ptr<RootArchive>> RootArchive::Open(Env& env, Settings settings) {
  H5M_ASSIGN_OR_RETURN(ArchiveUrl url, ParseArchiveUrl(settings.url));
  if (!settings.owner.empty() && !IsId(IdOf(settings.owner))) {
    return absl::FailedPreconditionError(StrCat(
        settings.owner_place, ": it should have the ", kIdDigits,
        " hex digits of the root's archive, as the object \"", kOwnerObject, "\" of that has"));
  }
  std::unique_ptr<RootArchive> archive(new RootArchive(env, std::move(settings), std::move(url)));
  if (!archive->url_.directory.empty()) return archive;
  H5M_ASSIGN_OR_RETURN(archive->service_, S3Store::Open(archive->url_.s3, RetryPolicy(),
                                                        RetryClock::Steady(), &archive->stopped_));
  return archive;
}

RootArchive::RootArchive(Env& env, Settings settings, ArchiveUrl url)
    : env_(env),
      settings_(std::move(settings)),
      url_(std::move(url)),
      pace_(settings_.background_rate, RetryClock::Steady()),
      watch_(settings_.limits, stopped_),
      owner_(settings_.owner) {}

std::string RootArchive::Describe() const {
  return service_ != nullptr ? service_->Describe() : url_.directory;
}

std::string RootArchive::owner() const {
  const absl::MutexLock lock(&mutex_);
  return owner_;
}

absl::Status RootArchive::Named(const absl::Status& status) const {
  return absl::Status(status.code(), StrCat(Describe(), ": ", ToStd(status.message())));
}

absl::StatusOr<std::shared_ptr<store::ObjectStore>> RootArchive::OpenNow(absl::Duration timeout) {
  if (stopped_) return absl::UnavailableError("the server stops");
  std::shared_ptr<store::ObjectStore> opened = service_;
  if (opened == nullptr) {
    auto directory = DirectoryStore::Open(env_, url_.directory);
    if (absl::IsNotFound(directory.status())) {
      return absl::UnavailableError(
          StrCat("the archive ", url_.directory, " is not there: is its disk mounted?"));
    }
    H5M_RETURN_IF_ERROR(directory.status());
    opened = *std::move(directory);
  } else if (SteadyNs() < checked_ns_.load() + absl::ToInt64Nanoseconds(kOwnerCheckEvery)) {
    return opened;
  }
  H5M_RETURN_IF_ERROR(CheckOwner(*opened, timeout));
  checked_ns_ = SteadyNs();
  return opened;
}

absl::StatusOr<std::string> ReadArchiveOwner(store::ObjectStore& archive, absl::Duration timeout) {
  constexpr std::string_view kObject = RootArchive::kOwnerObject;
  std::string text(kOwnerBytes, '\0');
  const absl::Status got = archive.Get(kObject, 0, absl::MakeSpan(text), timeout);
  if (!got.ok() && !absl::IsDataLoss(got)) return got;
  const std::string_view id = std::string_view(text).substr(kOwnerHead.size(), kIdDigits);
  if (got.ok() && text.starts_with(kOwnerHead) && IsId(id)) return std::string(id);
  return absl::FailedPreconditionError(StrCat("the object \"", kObject, "\" in ",
                                              archive.Describe(),
                                              " is none of this version of h5mirror"));
}

absl::Status ReplaceArchiveOwner(store::ObjectStore& archive, std::string_view id,
                                 absl::Duration timeout) {
  H5M_RETURN_IF_ERROR(archive.Delete(RootArchive::kOwnerObject, timeout));
  OwnerSource source(id);
  const absl::Status put = archive.Put(RootArchive::kOwnerObject, source, timeout);
  if (!put.ok() && !absl::IsAlreadyExists(put)) return put;
  H5M_ASSIGN_OR_RETURN(const std::string found, ReadArchiveOwner(archive, timeout));
  if (found == id) return absl::OkStatus();
  return absl::AbortedError(StrCat(archive.Describe(), " is taken by somebody else as well"));
}

absl::Status RootArchive::OthersArchive() const {
  return absl::FailedPreconditionError(
      StrCat(Describe(),
             " is the archive of another root: give this one a directory or a prefix of its "
             "own. If it is this root's, and ",
             settings_.owner_place, " was lost, write the 32 hex digits of the object \"",
             kOwnerObject, "\" there"));
}

absl::Status RootArchive::CheckOwner(store::ObjectStore& opened, absl::Duration timeout) {
  const std::string owner = this->owner();
  if (owner.size() == kIdDigits) {
    const auto found = ReadArchiveOwner(opened, timeout);
    if (found.ok()) return *found == owner ? absl::OkStatus() : OthersArchive();
    if (!absl::IsNotFound(found.status())) return found.status();
    return absl::FailedPreconditionError(
        StrCat(Describe(), " lacks the object \"", kOwnerObject,
               "\" of this root's archive: is its disk mounted, is this its bucket? If all of the "
               "archive is gone, and shall begin anew, remove ",
               settings_.owner_place));
  }
  return Claim(opened, owner, timeout);
}

// A crash between two steps leaves a claim, which the next call goes on with.
absl::Status RootArchive::Claim(store::ObjectStore& opened, const std::string& owner,
                                absl::Duration timeout) {
  auto found = ReadArchiveOwner(opened, timeout);
  std::string id = owner.empty() ? HexOf(RandomBytes16()) : IdOf(owner);
  if (absl::IsNotFound(found.status())) {
    H5M_RETURN_IF_ERROR(Keep(StrCat(id, kClaiming)));
    OwnerSource source(id);
    absl::Status put = opened.Put(kOwnerObject, source, timeout);
    if (!put.ok() && !absl::IsAlreadyExists(put)) return put;
    found = ReadArchiveOwner(opened, timeout);
  }
  H5M_RETURN_IF_ERROR(found.status());
  if (*found != id) return OthersArchive();
  return Keep(id);
}

absl::Status RootArchive::Keep(const std::string& text) {
  H5M_RETURN_IF_ERROR(settings_.keep_owner(text));
  const absl::MutexLock lock(&mutex_);
  owner_ = text;
  return absl::OkStatus();
}

absl::Status RootArchive::MayCall() {
  if (stopped_) return absl::UnavailableError("the server stops");
  if (NoCalls::is_on()) {
    return Named(absl::UnavailableError("the work that is done now waits for no archive"));
  }
  // One thread claims it, so that none waits for another one.
  if (!BackgroundWork::is_on() && owner().size() != kIdDigits) {
    return Named(absl::UnavailableError("it is not made the root's archive yet"));
  }
  const absl::StatusOr<bool> must_probe = watch_.MustProbe();
  if (!must_probe.ok()) return Named(must_probe.status());
  if (!*must_probe) return absl::OkStatus();
  const auto opened = OpenNow(kProbeTimeout);
  absl::Status status = opened.status();
  if (opened.ok()) status = (*opened)->Head(kOwnerObject, kProbeTimeout).status();
  watch_.Probed(status);
  return status;
}

absl::Status RootArchive::Run(Kind kind, absl::Duration timeout, Work work) {
  H5M_RETURN_IF_ERROR(MayCall());
  const auto call = watch_.Begin(kind, !BackgroundWork::is_on(), timeout);
  if (!call.ok()) return Named(call.status());
  const auto opened = OpenNow(timeout);
  absl::Status status = opened.ok() ? work(**opened, *call) : opened.status();
  if (absl::IsCancelled(status)) status = absl::UnavailableError("the server stops");
  watch_.End(*call, opened.ok(), status);
  return status;
}

absl::Status RootArchive::Put(std::string_view name, store::ObjectSource& source,
                              absl::Duration timeout) {
  H5M_RETURN_IF_ERROR(store::CheckObjectName(name));
  // S3 sums a body up before it sends it.
  const uint64_t free_bytes = service_ == nullptr ? 0 : source.size_bytes();
  H5M_RETURN_IF_ERROR(
      Run(Kind::kChange, timeout, [&](store::ObjectStore& opened, CallWatch::Ticket call) {
        WatchedSource watched(
            source, BackgroundWork::is_on() ? &pace_ : nullptr, free_bytes, stopped_,
            [&](bool is_begin) { is_begin ? watch_.Wait(call) : watch_.GoOn(call); });
        return opened.Put(name, watched, timeout);
      }));
  watch_.CountPut(source.size_bytes());
  return absl::OkStatus();
}

absl::Status RootArchive::Get(std::string_view name, uint64_t offset, absl::Span<char> out,
                              absl::Duration timeout) {
  H5M_RETURN_IF_ERROR(store::CheckObjectName(name));
  if (BackgroundWork::is_on()) H5M_RETURN_IF_ERROR(pace_.Take(out.size(), stopped_));
  H5M_RETURN_IF_ERROR(Run(Kind::kRead, timeout, [&](store::ObjectStore& opened, CallWatch::Ticket) {
    return opened.Get(name, offset, out, timeout);
  }));
  watch_.CountGot(out.size());
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
  return Run(Kind::kChange, timeout, [&](store::ObjectStore& opened, CallWatch::Ticket) {
    return opened.Delete(name, timeout);
  });
}

}  // namespace h5mirror::archive
