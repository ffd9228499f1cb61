#include "archive/root_archive.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "archive/directory_store.h"
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
constexpr absl::Duration kOwnerTimeout = absl::Seconds(60);

std::string IdOf(const std::string& owner) { return owner.substr(0, kIdDigits); }

bool IsId(std::string_view id) {
  return id.size() == kIdDigits && std::all_of(id.begin(), id.end(), [](char c) {
           return absl::ascii_isxdigit(static_cast<unsigned char>(c));
         });
}

// A source whose reads wait for their turn, and fail once the server stops.
class WatchedSource final : public store::ObjectSource {
 public:
  // `passes`: how often a store reads each byte.
  WatchedSource(store::ObjectSource& inner, Pace* pace, uint64_t passes,
                const std::atomic<bool>& stopped)
      : inner_(inner), pace_(pace), passes_(passes), stopped_(stopped) {}

  uint64_t size_bytes() const override { return inner_.size_bytes(); }
  absl::Status Read(uint64_t offset, absl::Span<char> out) override {
    if (stopped_) return absl::UnavailableError("the server stops");
    if (pace_ != nullptr) H5M_RETURN_IF_ERROR(pace_->Take(out.size() / passes_, stopped_));
    return inner_.Read(offset, out);
  }

 private:
  store::ObjectSource& inner_;
  Pace* const pace_;
  const uint64_t passes_;
  const std::atomic<bool>& stopped_;
};

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

// Whether a call that ended so says that the archive is well.
bool IsAnswer(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kInvalidArgument:
      return true;
    default:
      return false;
  }
}

}  // namespace

thread_local int RootArchive::BackgroundWork::depth = 0;

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
      owner_(settings_.owner) {}

std::string RootArchive::Describe() const {
  return service_ != nullptr ? service_->Describe() : url_.directory;
}

ArchiveStanding RootArchive::Standing() const {
  const absl::MutexLock lock(&mutex_);
  return standing_;
}

absl::Status RootArchive::Note(absl::Status status) {
  if (stopped_) return status;
  const absl::MutexLock lock(&mutex_);
  if (IsAnswer(status)) {
    standing_.last_success = absl::Now();
    standing_.error.clear();
    standing_.is_silent = false;
    return status;
  }
  standing_.is_silent = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  ++standing_.failed_calls;
  if (standing_.error.empty()) standing_.failing_since = absl::Now();
  standing_.error = ToStd(status.message());
  return status;
}

absl::StatusOr<std::shared_ptr<store::ObjectStore>> RootArchive::OpenNow() {
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
  } else if (is_checked_) {
    return opened;
  }
  H5M_RETURN_IF_ERROR(CheckOwner(*opened));
  is_checked_ = true;
  return opened;
}

absl::StatusOr<std::string> RootArchive::ReadOwner(store::ObjectStore& opened) const {
  std::string text(kOwnerBytes, '\0');
  const absl::Status got = opened.Get(kOwnerObject, 0, absl::MakeSpan(text), kOwnerTimeout);
  if (!got.ok() && !absl::IsDataLoss(got)) return got;
  const std::string_view id = std::string_view(text).substr(kOwnerHead.size(), kIdDigits);
  if (got.ok() && text.starts_with(kOwnerHead) && IsId(id)) return std::string(id);
  return absl::FailedPreconditionError(StrCat("the object \"", kOwnerObject, "\" in ", Describe(),
                                              " is none of this version of h5mirror"));
}

absl::Status RootArchive::OthersArchive() const {
  return absl::FailedPreconditionError(
      StrCat(Describe(),
             " is the archive of another root: give this one a directory or a prefix of its "
             "own. If it is this root's, and ",
             settings_.owner_place, " was lost, write the 32 hex digits of the object \"",
             kOwnerObject, "\" there"));
}

absl::Status RootArchive::CheckOwner(store::ObjectStore& opened) {
  std::string owner;
  {
    const absl::MutexLock lock(&mutex_);
    owner = owner_;
  }
  if (owner.size() == kIdDigits) {
    const auto found = ReadOwner(opened);
    if (found.ok()) return *found == owner ? absl::OkStatus() : OthersArchive();
    if (!absl::IsNotFound(found.status())) return found.status();
    return absl::FailedPreconditionError(
        StrCat(Describe(), " lacks the object \"", kOwnerObject,
               "\" of this root's archive: is its disk mounted, is this its bucket? If all of the "
               "archive is gone, and shall begin anew, remove ",
               settings_.owner_place));
  }
  const absl::MutexLock claiming(&claim_mutex_);
  {
    const absl::MutexLock lock(&mutex_);
    owner = owner_;  // Another call may have claimed it.
  }
  return owner.size() == kIdDigits ? absl::OkStatus() : Claim(opened, owner);
}

// A crash between two steps leaves a claim, which the next call goes on with.
absl::Status RootArchive::Claim(store::ObjectStore& opened, const std::string& owner) {
  auto found = ReadOwner(opened);
  std::string id = owner.empty() ? HexOf(RandomBytes16()) : IdOf(owner);
  if (absl::IsNotFound(found.status())) {
    H5M_RETURN_IF_ERROR(Keep(StrCat(id, kClaiming)));
    OwnerSource source(id);
    absl::Status put = opened.Put(kOwnerObject, source, kOwnerTimeout);
    if (!put.ok() && !absl::IsAlreadyExists(put)) return put;
    found = ReadOwner(opened);
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

absl::Status RootArchive::Run(absl::FunctionRef<absl::Status(store::ObjectStore&)> call) {
  bool is_probe = false;
  {
    const absl::MutexLock lock(&mutex_);
    if (standing_.is_silent && is_probed_) {
      return absl::UnavailableError(StrCat(Describe(), " does not answer: ", standing_.error));
    }
    if (standing_.is_silent) is_probe = is_probed_ = true;
  }
  absl::Status status = Note(Call(call));
  if (!is_probe) return status;
  const absl::MutexLock lock(&mutex_);
  is_probed_ = false;
  return status;
}

absl::Status RootArchive::Call(absl::FunctionRef<absl::Status(store::ObjectStore&)> call) {
  const auto opened = OpenNow();
  absl::Status status = opened.ok() ? call(**opened) : opened.status();
  if (absl::IsCancelled(status)) status = absl::UnavailableError("the server stops");
  return status;
}

absl::Status RootArchive::Put(std::string_view name, store::ObjectSource& source,
                              absl::Duration timeout) {
  H5M_RETURN_IF_ERROR(store::CheckObjectName(name));
  // S3 sums a body up before it sends it.
  WatchedSource watched(source, BackgroundWork::is_on() ? &pace_ : nullptr,
                        service_ == nullptr ? 1 : 2, stopped_);
  H5M_RETURN_IF_ERROR(
      Run([&](store::ObjectStore& opened) { return opened.Put(name, watched, timeout); }));
  const absl::MutexLock lock(&mutex_);
  standing_.put_bytes += source.size_bytes();
  return absl::OkStatus();
}

absl::Status RootArchive::Get(std::string_view name, uint64_t offset, absl::Span<char> out,
                              absl::Duration timeout) {
  H5M_RETURN_IF_ERROR(store::CheckObjectName(name));
  if (BackgroundWork::is_on()) H5M_RETURN_IF_ERROR(pace_.Take(out.size(), stopped_));
  H5M_RETURN_IF_ERROR(
      Run([&](store::ObjectStore& opened) { return opened.Get(name, offset, out, timeout); }));
  const absl::MutexLock lock(&mutex_);
  standing_.got_bytes += out.size();
  return absl::OkStatus();
}

absl::StatusOr<store::ObjectInfo> RootArchive::Head(std::string_view name, absl::Duration timeout) {
  store::ObjectInfo info;
  H5M_RETURN_IF_ERROR(Run([&](store::ObjectStore& opened) -> absl::Status {
    H5M_ASSIGN_OR_RETURN(info, opened.Head(name, timeout));
    return absl::OkStatus();
  }));
  return info;
}

absl::StatusOr<store::ObjectPage> RootArchive::List(std::string_view prefix, std::string_view next,
                                                    size_t limit, absl::Duration timeout) {
  store::ObjectPage page;
  H5M_RETURN_IF_ERROR(Run([&](store::ObjectStore& opened) -> absl::Status {
    H5M_ASSIGN_OR_RETURN(page, opened.List(prefix, next, limit, timeout));
    return absl::OkStatus();
  }));
  return page;
}

absl::Status RootArchive::Delete(std::string_view name, absl::Duration timeout) {
  return Run([&](store::ObjectStore& opened) { return opened.Delete(name, timeout); });
}

}  // namespace h5mirror::archive
