#include "onion_store/embedded/cut_journal.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"
#include "onion_store/embedded/journal_head.h"

namespace h5mirror::store {
namespace {

constexpr std::string_view kMagic = "H5MJRNL1";
constexpr size_t kHeaderBytes = 12;  // magic and checksum of all that follows
// A journal is read as a whole, even by programs that only open the file.
constexpr uint64_t kJournalBytesMax = uint64_t{1} << 30;

std::string FileName(const std::string& name, std::string_view file) {
  return StrCat(name, ".h5m/", file);
}

std::string Encode(const JournalCut& cut, const FileStat& before) {
  std::string body;
  PutInt<uint64_t>(&body, cut.inode);
  PutInt<uint64_t>(&body, cut.size_before);
  PutInt<int64_t>(&body, before.mtime_ns);
  PutInt<int64_t>(&body, before.ctime_ns);
  PutInt<uint64_t>(&body, cut.size_after);
  PutInt<uint32_t>(&body, static_cast<uint32_t>(cut.comment.size()));
  PutInt<uint32_t>(&body, static_cast<uint32_t>(cut.pages.size()));
  body += cut.comment;
  for (const JournalPage& page : cut.pages) {
    PutInt<uint64_t>(&body, page.offset);
    PutInt<uint32_t>(&body, static_cast<uint32_t>(page.before.size()));
    PutInt<uint32_t>(&body, static_cast<uint32_t>(page.after.size()));
    body += page.before;
    body += page.after;
  }
  return body;
}

// Takes pieces off the front. Once a piece is missing, it has failed for good.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : left_(bytes) {}
  template <typename T>
  T Int() {
    const std::string_view bytes = Take(sizeof(T));
    return bytes.empty() ? T{} : GetInt<T>(bytes.data());
  }
  std::string_view Take(size_t length) {
    if (length > left_.size()) ok_ = false;
    if (!ok_) return {};
    const std::string_view taken = left_.substr(0, length);
    left_.remove_prefix(length);
    return taken;
  }
  bool ok() const { return ok_; }
  // Whether all was there, and nothing else.
  bool is_whole() const { return ok_ && left_.empty(); }

 private:
  std::string_view left_;
  bool ok_ = true;
};

bool Decode(std::string_view bytes, JournalCut* cut, FileStat* before) {
  Decoder in(bytes);
  cut->inode = before->inode = in.Int<uint64_t>();
  cut->size_before = in.Int<uint64_t>();
  before->size_bytes = static_cast<int64_t>(cut->size_before);
  before->mtime_ns = in.Int<int64_t>();
  before->ctime_ns = in.Int<int64_t>();
  cut->size_after = in.Int<uint64_t>();
  const auto comment_bytes = in.Int<uint32_t>();
  const auto page_count = in.Int<uint32_t>();
  cut->comment = in.Take(comment_bytes);
  for (uint32_t i = 0; i < page_count && in.ok(); ++i) {
    JournalPage page;
    page.offset = in.Int<uint64_t>();
    const auto before_bytes = in.Int<uint32_t>();
    const auto after_bytes = in.Int<uint32_t>();
    page.before = in.Take(before_bytes);
    page.after = in.Take(after_bytes);
    cut->pages.push_back(std::move(page));
  }
  return in.is_whole();
}

// Whether the pages rise, and are within the old and the new file.
bool IsPossible(const JournalCut& cut) {
  constexpr uint64_t kSizeMax = INT64_MAX;
  if (cut.size_before > kSizeMax || cut.size_after > kSizeMax) return false;
  uint64_t end = 0;
  for (const JournalPage& page : cut.pages) {
    const auto fits = [&page](std::string_view image, uint64_t size) {
      return image.size() <= size - std::min(size, page.offset);
    };
    if (page.offset < end || page.offset > kSizeMax) return false;
    if (!fits(page.before, cut.size_before) || !fits(page.after, cut.size_after)) return false;
    end = page.offset + std::max(page.before.size(), page.after.size());
  }
  return true;
}

absl::Status Refused(const std::string& name, std::string_view why) {
  return absl::FailedPreconditionError(
      StrCat(FileName(name, "journal"), " ", why, ": nothing is done by it. h5edit --recover ",
             "--discard ", name, " sets it aside and keeps the file as it is"));
}

// Only a user with the right to write the head may decide its content. The right to make a
// directory beside it is not enough.
absl::Status CheckOwner(EnvTree& tree, const std::string& name, EnvFile& journal) {
  const absl::StatusOr<uint32_t> owner = journal.Owner();
  if (absl::IsUnimplemented(owner.status())) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(owner.status());
  if (*owner == 0 || *owner == geteuid()) return absl::OkStatus();
  const auto head = tree.Open(name, OpenKind::kRead, 0);
  if (head.ok() && (*head)->Owner().value_or(0) == *owner) return absl::OkStatus();
  return Refused(name, StrCat("belongs to the user ", *owner,
                              ", neither you nor the owner of the file, and waits for a h5edit "
                              "--recover of that user"));
}

// True: the journal is not complete yet. It has the magic, a part of the magic, or, after a power
// loss, zeros.
bool MayBeBegun(std::string_view journal) {
  const std::string_view begin = journal.substr(0, kMagic.size());
  return IsZero(begin) || begin == kMagic.substr(0, begin.size());
}

absl::Status Move(EnvFile& head, const JournalCut& cut, JournalWay way) {
  for (const JournalPage& page : cut.pages) {
    const std::string& bytes = way == JournalWay::kBack ? page.before : page.after;
    if (!bytes.empty()) H5M_RETURN_IF_ERROR(WriteAt(head, page.offset, bytes));
  }
  H5M_ASSIGN_OR_RETURN(const uint64_t size, head.Size());
  const uint64_t wanted = way == JournalWay::kBack ? cut.size_before : cut.size_after;
  return size == wanted ? absl::OkStatus() : head.Truncate(wanted);
}

absl::Status Changed(const std::string& name) {
  return absl::FailedPreconditionError(
      StrCat(name,
             " was changed by another program since an edit of it was broken off: nothing is done "
             "to it. h5edit --recover --discard ",
             name, " gives that edit up and keeps the file as it is"));
}

absl::Status IsAnother(const std::string& name) {
  return absl::FailedPreconditionError(
      StrCat(name,
             " is another file than the one that an edit was broken off in, a copy of it or one "
             "that was put in its place: nothing is done to it. h5edit --recover --discard ",
             name, " takes back what it holds of that edit"));
}

absl::Status IsMixed(const std::string& name) {
  return absl::FailedPreconditionError(StrCat(
      name,
      " holds parts of a broken-off edit, but not in the order of its writes: power was lost, "
      "or another program has changed a part back. Nothing is done to it until you decide: "
      "h5edit --recover ",
      name, " finishes that edit, h5edit --recover --discard ", name, " takes it back"));
}

std::string RetiredNotice(const std::string& name, const JournalCut& cut) {
  return StrCat(name, " was put back to what it was before an edit that was broken off (",
                cut.comment, "): that edit is given up, and the file stays as it is");
}

// Checks `way` for a head between the two cuts. A file with another inode is not moved forward: if
// a user put the former file back, the edit must not be finished. Such a copy may still go back.
absl::StatusOr<JournalWay> CheckHead(EnvFile& head, const std::string& name, const FileStat& stat,
                                     const JournalLeft& left, JournalWay way) {
  if (stat.inode != left.cut.inode && way != JournalWay::kBack) return IsAnother(name);
  H5M_ASSIGN_OR_RETURN(const HeadIs is,
                       CompareHead(head, static_cast<uint64_t>(stat.size_bytes), left.cut));
  if (is == HeadIs::kChanged) return Changed(name);
  if (is == HeadIs::kMixed && way == JournalWay::kForward) return IsMixed(name);
  // Between the journal and the first page h5edit does not change the head. So another program did,
  // or h5edit itself on the way back.
  if (is == HeadIs::kBefore && stat.ctime_ns > left.written_ns) return JournalWay::kBack;
  return way;
}

absl::Status RemoveIfThere(EnvTree& tree, const std::string& name) {
  absl::Status removed = tree.Remove(name);
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

// The mark goes last: a reader that finds no mark finds no journal either.
absl::Status RemoveJournal(EnvTree& tree, const std::string& name) {
  H5M_RETURN_IF_ERROR(RemoveIfThere(tree, FileName(name, "journal")));
  return RemoveIfThere(tree, FileName(name, "open"));
}

}  // namespace

CutJournal::CutJournal(EnvTree& tree, std::string name, JournalSync sync, HeadMoved moved)
    : tree_(tree), name_(std::move(name)), sync_(sync), moved_(std::move(moved)) {}

// Whether the name is still that of the head: writes to a replaced file are lost.
absl::Status CutJournal::CheckNamed(const JournalCut& cut) {
  const auto named = tree_.Stat(name_);
  if (!named.ok() && !absl::IsNotFound(named.status())) return named.status();
  if (named.ok() && named->inode == cut.inode) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat(
      name_, named.ok() ? " was replaced while it was edited: the file that has its name now "
                          "is left alone"
                        : " was removed while it was edited: nothing is put under its name"));
}

absl::Status CutJournal::Put(const JournalCut& cut, const FileStat& before) {
  const std::string body = Encode(cut, before);
  if (kHeaderBytes + body.size() > kJournalBytesMax) {
    return absl::ResourceExhaustedError(
        StrCat("so much of ", name_, " changes at once that its journal would have ", body.size(),
               " bytes, and at most ", kJournalBytesMax, " may be: do it in smaller steps"));
  }
  if (file_ == nullptr) {
    H5M_RETURN_IF_ERROR(tree_.Open(FileName(name_, "open"), OpenKind::kCreate, 0600).status());
    H5M_ASSIGN_OR_RETURN(file_,
                         tree_.Open(FileName(name_, "journal"), OpenKind::kCreateFresh, 0600));
  }
  std::string header(kMagic);
  PutInt<uint32_t>(&header, Crc32c(body));
  const std::string_view pieces[] = {header, body};
  H5M_RETURN_IF_ERROR(file_->WriteAt(0, pieces));
  if (sync_ == JournalSync::kProcess) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(file_->Sync());
  if (is_named_) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(tree_.SyncDirectory(StrCat(name_, ".h5m")));
  H5M_RETURN_IF_ERROR(tree_.SyncDirectory(""));
  is_named_ = true;
  return absl::OkStatus();
}

absl::Status CutJournal::Clear() {
  H5M_RETURN_IF_ERROR(file_->Truncate(0));
  left_ = Left::kNothing;
  return absl::OkStatus();
}

// Takes back a cut that failed with `why` before the head had any of it. The journal may still be
// complete on disk, so it is made void.
absl::Status CutJournal::Retract(const absl::Status& why) {
  left_ = Left::kBetween;
  absl::Status cleared = file_->Truncate(0);
  if (cleared.ok() && sync_ == JournalSync::kDurable) cleared = file_->Sync();
  if (cleared.ok()) left_ = Left::kNothing;
  if (cleared.ok()) return why;
  return absl::Status(why.code(),
                      StrCat(why.message(), "; nor could it be taken back: ", cleared.message()));
}

// After a failed sync it is unknown which pages of the cut are on disk. So all pages are written
// once more, and the journal may go only when they are safe.
absl::Status CutJournal::TakeBack(EnvFile& head, const JournalCut& cut, const FileStat& before,
                                  const absl::Status& why) {
  absl::Status back = Move(head, cut, JournalWay::kBack);
  if (back.ok() && sync_ == JournalSync::kDurable) back = head.Sync();
  if (back.ok() && moved_) moved_(cut, {before, before});
  if (back.ok()) return Retract(why);
  left_ = Left::kBetween;
  return absl::Status(why.code(),
                      StrCat(why.message(), "; nor could it be taken back: ", back.message()));
}

absl::Status CutJournal::Commit(EnvFile& head, const JournalCut& cut) {
  if (is_between()) {
    return absl::FailedPreconditionError(
        StrCat(name_, ": a change before this one failed on its way"));
  }
  H5M_ASSIGN_OR_RETURN(const FileStat stat, head.Stat());
  if (stat.inode != cut.inode || static_cast<uint64_t>(stat.size_bytes) != cut.size_before) {
    return absl::FailedPreconditionError(
        StrCat(name_, " was changed by another program while it was edited: it has ",
               stat.size_bytes, " bytes, not ", cut.size_before, "; nothing was done to it"));
  }
  H5M_RETURN_IF_ERROR(CheckNamed(cut));
  if (left_ == Left::kDone) H5M_RETURN_IF_ERROR(Clear());
  const absl::Status put = Put(cut, stat);
  if (!put.ok()) return file_ == nullptr ? put : Retract(put);
  absl::Status moved = Move(head, cut, JournalWay::kForward);
  if (moved.ok() && sync_ == JournalSync::kDurable) moved = head.Sync();
  if (moved.ok()) moved = CheckNamed(cut);
  if (!moved.ok()) return TakeBack(head, cut, stat, moved);
  left_ = Left::kDone;
  if (moved_) moved_(cut, {stat, stat});
  Clear().IgnoreError();  // The head has it: the next cut, or lease, clears the journal.
  return absl::OkStatus();
}

absl::Status CutJournal::Close() {
  if (file_ == nullptr || is_between()) return absl::OkStatus();
  if (left_ == Left::kDone) Clear().IgnoreError();  // Void, even if it has to stay.
  H5M_RETURN_IF_ERROR(RemoveJournal(tree_, name_));
  file_.reset();
  if (sync_ == JournalSync::kProcess) return absl::OkStatus();
  return tree_.SyncDirectory(StrCat(name_, ".h5m"));
}

absl::StatusOr<JournalLeft> ReadJournal(EnvTree& tree, const std::string& name) {
  JournalLeft left;
  auto file = tree.Open(FileName(name, "journal"), OpenKind::kRead, 0);
  if (absl::IsNotFound(file.status())) return left;
  H5M_RETURN_IF_ERROR(file.status());
  left.exists = true;
  H5M_RETURN_IF_ERROR(CheckOwner(tree, name, **file));
  H5M_ASSIGN_OR_RETURN(const FileStat stat, (*file)->Stat());
  const auto size = static_cast<uint64_t>(stat.size_bytes);
  left.written_ns = stat.mtime_ns;
  if (size > kJournalBytesMax) return Refused(name, StrCat("has ", size, " bytes"));
  std::string bytes(size, '\0');
  H5M_RETURN_IF_ERROR(ReadOrZeros(**file, 0, absl::MakeSpan(bytes)));
  const std::string_view all = bytes;
  if (!MayBeBegun(all)) return Refused(name, "is of a newer h5edit, or of another program");
  if (all.size() < kHeaderBytes || all.substr(0, kMagic.size()) != kMagic) return left;
  const std::string_view body = all.substr(kHeaderBytes);
  if (GetInt<uint32_t>(all.data() + kMagic.size()) != Crc32c(body)) return left;
  if (!Decode(body, &left.cut, &left.before) || !IsPossible(left.cut))
    return Refused(name, "makes no sense");
  left.is_committed = true;
  return left;
}

absl::Status SettleJournal(EnvTree& tree, const std::string& name, JournalWay way,
                           const HeadMoved& moved, std::string* notice) {
  H5M_ASSIGN_OR_RETURN(const bool exists, tree.Exists(FileName(name, "journal")));
  if (!exists) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const JournalLeft left, ReadJournal(tree, name));
  if (left.is_committed) {
    H5M_ASSIGN_OR_RETURN(auto head, tree.Open(name, OpenKind::kWrite, 0));
    const auto lock = tree.Lock(name, LockKind::kExclusive);
    if (absl::IsFailedPrecondition(lock.status())) {
      return absl::UnavailableError(StrCat(name,
                                           " has an edit that was broken off, and another program "
                                           "has it open: try again when that has ended"));
    }
    H5M_ASSIGN_OR_RETURN(const FileStat found, head->Stat());
    H5M_ASSIGN_OR_RETURN(const JournalWay taken, CheckHead(*head, name, found, left, way));
    // Even if the head is there already: after a failed sync the content of the disk is unknown.
    H5M_RETURN_IF_ERROR(Move(*head, left.cut, taken));
    H5M_RETURN_IF_ERROR(head->Sync());
    if (moved) moved(left.cut, {left.before, found});
    if (taken != way && notice != nullptr) *notice = RetiredNotice(name, left.cut);
  }
  return RemoveJournal(tree, name);
}

absl::Status SetJournalAside(EnvTree& tree, const std::string& name) {
  H5M_RETURN_IF_ERROR(tree.Rename(FileName(name, "journal"), FileName(name, kGivenUpJournal)));
  return RemoveIfThere(tree, FileName(name, "open"));
}

}  // namespace h5mirror::store
