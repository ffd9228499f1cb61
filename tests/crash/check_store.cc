#include "tests/crash/check_store.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/testing/test_store.h"
#include "tests/crash/check_copies.h"
#include "tests/crash/check_objects.h"

namespace h5mirror::store {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

absl::Status Violation(std::string_view what) {
  return absl::FailedPreconditionError(ToAbsl(what));
}

// `status` with what was being done.
absl::Status In(const absl::Status& status, std::string_view what) {
  if (status.ok()) return status;
  return Violation(StrCat(what, ": ", status.ToString()));
}

absl::Status Compare(std::string_view found, std::string_view wanted, std::string_view what) {
  if (found == wanted) return absl::OkStatus();
  const size_t common = std::min(found.size(), wanted.size());
  const size_t first =
      std::mismatch(found.begin(), found.begin() + common, wanted.begin()).first - found.begin();
  return Violation(StrCat(what, " has ", found.size(), " bytes, ", wanted.size(),
                          " wanted; the first that differs is at ", first));
}

// The check of one file.
class FileCheck {
 public:
  // `name`: that the file has now.
  FileCheck(Store& store, CountedEnv& env, const std::string& name, uint64_t choice,
            Promises* promises, FilePromises* promised)
      : store_(store),
        env_(env),
        name_(name),
        choice_(choice),
        promises_(*promises),
        promised_(*promised) {}

  // Versions are read twice: from stage and head, before the new one, and after it from the head
  // and what was saved of it.
  absl::Status Run() {
    auto opened = store_.OpenFile(name_);
    if (opened.ok()) {
      file_ = *opened;
      H5M_RETURN_IF_ERROR(CheckOld());
    } else if (!absl::IsNotFound(opened.status()) || promised_.AckedCut() != 0) {
      return In(opened.status(), StrCat("open ", name_));
    } else {
      // Its cuts were of a file that never came to be: another one has numbers of its own.
      promised_.given.clear();
      promised_.golden.clear();
      promised_.forked = {};
    }
    const bool pruned = !promised_.droppable.empty();
    if (pruned && choice_ % 2 == 0) H5M_RETURN_IF_ERROR(FinishPrune());
    H5M_RETURN_IF_ERROR(CheckWritable());
    if (pruned && choice_ % 2 == 1) H5M_RETURN_IF_ERROR(FinishPrune());
    H5M_RETURN_IF_ERROR(CheckVersions("after a new version"));
    if (promised_.is_archived && choice_ % 3 == 0) H5M_RETURN_IF_ERROR(FinishArchive());
    if (pruned || choice_ % 4 == 0) H5M_RETURN_IF_ERROR(CheckVerify());
    return CheckHead("after a new version");
  }

  // As Run(), by a writer that comes before anything was applied; the background is the caller's.
  absl::Status RunBeforeApplied() {
    auto opened = store_.OpenFile(name_);
    if (!opened.ok()) return absl::OkStatus();  // Run() has looked at that.
    file_ = *opened;
    H5M_RETURN_IF_ERROR(CheckVersions("as found"));
    H5M_ASSIGN_OR_RETURN(const CutNumber cut, GoOn());
    while (store_.RunBackground()) continue;
    auto info = file_->Info();
    H5M_RETURN_IF_ERROR(In(info.status(), "info"));
    if (info->durable_cut != cut || info->applied_cut != cut) {
      return Violation(StrCat("cut ", cut, " of ", name_, " is not durable and applied"));
    }
    H5M_RETURN_IF_ERROR(CheckVersions("after one that came before all was applied"));
    return CheckHead("after one that came before all was applied");
  }

 private:
  // A version of a file that becomes shorter, and longer than it was, over what is to be applied.
  absl::StatusOr<CutNumber> GoOn() {
    auto info = file_->Info();
    H5M_RETURN_IF_ERROR(In(info.status(), "info"));
    H5M_ASSIGN_OR_RETURN(std::string bytes, NewestBytes(*info));
    Writer writer(file_, SessionStart::kContinue, std::move(bytes), promised_.Local());
    H5M_RETURN_IF_ERROR(In(writer.begun(), StrCat("begin ", name_)));
    const uint64_t size = writer.content().size();
    if (choice_ % 2 == 0) H5M_RETURN_IF_ERROR(In(writer.Truncate(size - size / 5), "truncate"));
    const uint64_t from = writer.content().size() - std::min<uint64_t>(size / 4, 100);
    H5M_RETURN_IF_ERROR(In(writer.Write(from, std::string(3000, 'g')), "write"));
    H5M_RETURN_IF_ERROR(In(writer.Write(from + 5000, std::string(20'000, 'o')), "write"));
    promised_.attempts.push_back(std::make_shared<std::string>(writer.content()));
    const auto cut = writer.Cut(BarrierKind::kCommit);
    H5M_RETURN_IF_ERROR(In(cut.status(), StrCat("commit ", name_)));
    // What the recording gave the same number was after this power loss.
    promised_.golden[*cut] = promised_.attempts.back();
    return *cut;
  }

  // What there is before anybody writes.
  absl::Status CheckOld() {
    auto info = file_->Info();
    H5M_RETURN_IF_ERROR(In(info.status(), "info"));
    if (info->durable_cut < promised_.AckedCut()) {
      return Violation(StrCat("the newest durable cut of ", name_, " is ", info->durable_cut, ", ",
                              promised_.AckedCut(), " was acked"));
    }
    if (info->owner != promised_.owner) {
      return Violation(
          StrCat(name_, " is of \"", info->owner, "\", \"", promised_.owner, "\" made it"));
    }
    H5M_RETURN_IF_ERROR(CheckForked(*info));
    H5M_RETURN_IF_ERROR(CheckVersions("as found"));
    H5M_RETURN_IF_ERROR(CheckTags());
    H5M_RETURN_IF_ERROR(In(file_->WaitApplied(kPatience), StrCat("apply ", name_)));
    H5M_RETURN_IF_ERROR(CheckHead("once applied"));
    auto listed = store_.List("", "", 1000);
    H5M_RETURN_IF_ERROR(In(listed.status(), "list"));
    for (const FileSummary& summary : *listed) {
      if (summary.name == name_) return absl::OkStatus();
    }
    return Violation(name_ + " is not listed");
  }

  // A fork that is there tells what it is one of, also without its version 1.
  absl::Status CheckForked(const FileInfo& info) {
    const auto found = file_->ForkedFrom();
    H5M_RETURN_IF_ERROR(In(found.status(), StrCat("find what ", name_, " is a fork of")));
    if (info.forked_from != *found) return Violation(name_ + " tells of two files that it is of");
    const FilePromises::Forked wanted = promised_.forked;
    if (found->has_value() != (wanted.version != 0)) {
      return Violation(name_ + " is a fork, or is none, and should not");
    }
    if (!found->has_value()) return absl::OkStatus();
    if ((*found)->file_id == wanted.file_id && (*found)->version == wanted.version) {
      return absl::OkStatus();
    }
    return Violation(StrCat(name_, " says that it is a fork of ", (*found)->name, "@",
                            (*found)->version, ", not of version ", wanted.version));
  }

  absl::Status CheckGolden(CutNumber cut, std::string_view bytes, const std::string& what) {
    Bytes golden = promised_.GoldenOf(cut);
    if (golden != nullptr) return Compare(bytes, *golden, what);
    for (const Bytes& attempt : promised_.attempts) {
      if (attempt != nullptr && *attempt == bytes) return absl::OkStatus();
    }
    return Violation(StrCat(what, " is of cut ", cut, ", which nobody made"));
  }

  absl::Status CheckVersions(const char* when) {
    auto versions = file_->ListVersions({}, 10'000);
    H5M_RETURN_IF_ERROR(In(versions.status(), "list versions"));
    std::set<VersionNumber> found;
    for (const VersionInfo& version : *versions) {
      const std::string what = StrCat(name_, "@", version.version, ", ", when);
      if (!found.empty() && version.version >= *found.begin()) {
        return Violation(what + ": its number is out of order");
      }
      found.insert(version.version);
      if (promised_.IsGone(version.version)) return Violation(what + ": it was dropped");
      auto reader = file_->OpenVersion(version.version);
      H5M_RETURN_IF_ERROR(In(reader.status(), what));
      std::string bytes(version.size_bytes, '\0');
      H5M_RETURN_IF_ERROR(In((*reader)->Read(0, absl::MakeSpan(bytes)), what));
      H5M_RETURN_IF_ERROR(CheckGolden(version.cut, bytes, what));
      absl::Status scattered;
      if (!ScatteredReadsMatch(**reader, bytes, &scattered)) {
        return Violation(what + ": scattered reads give other bytes");
      }
      H5M_RETURN_IF_ERROR(In(scattered, what));
      for (const auto& acked : promised_.acked) {
        if (acked.version != version.version) continue;
        H5M_RETURN_IF_ERROR(CheckGolden(acked.cut, bytes, what + ", as it was acked"));
      }
    }
    auto is_missing = [&](VersionNumber version) {
      return version > 0 && !found.contains(version) && !promised_.IsDroppable(version);
    };
    for (const auto& acked : promised_.acked) {
      if (is_missing(acked.version)) {
        return Violation(StrCat(name_, "@", acked.version, " was acked and is not there"));
      }
    }
    for (VersionNumber version = found.empty() ? 0 : *found.rbegin(); version > 0; --version) {
      if (is_missing(version)) return Violation(StrCat(name_, "@", version, " is left out"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckTags() {
    for (const auto& [tag, possible] : promised_.PossibleTags()) {
      auto tagged = file_->FindVersionTagged(tag);
      if (!tagged.ok() && !absl::IsNotFound(tagged.status())) {
        return In(tagged.status(), StrCat("find tag ", tag));
      }
      const VersionNumber found = tagged.ok() ? tagged->version : 0;
      if (possible.contains(found)) continue;
      // It goes with its version.
      if (found == 0 && std::any_of(possible.begin(), possible.end(), [&](VersionNumber version) {
            return promised_.IsDroppable(version);
          })) {
        continue;
      }
      return Violation(StrCat("tag ", tag, " of ", name_, " is at version ", found, ", not at ",
                              *possible.begin()));
    }
    return absl::OkStatus();
  }

  // Goes on with a prune that was cut short: with what it was to drop, or only with what it left.
  absl::Status FinishPrune() {
    std::vector<VersionNumber> versions;
    if (choice_ / 2 % 2 == 0) {
      for (const auto& one : promised_.droppable) versions.push_back(one.version);
    }
    auto opened = store_.OpenOrCreateFile(name_, 0);
    H5M_RETURN_IF_ERROR(In(opened.status(), StrCat("open ", name_, " to prune it")));
    auto job = (*opened)->StartPrune(versions);
    if (absl::IsNotFound(job.status()) && promised_.AckedCut() == 0) return absl::OkStatus();
    H5M_RETURN_IF_ERROR(In(job.status(), StrCat("prune ", name_)));
    while (true) {
      auto progress = (*job)->Step();
      H5M_RETURN_IF_ERROR(In(progress.status(), StrCat("prune ", name_)));
      if (!progress->left.empty()) {
        return Violation(StrCat("the prune of ", name_, " left something: ", progress->left));
      }
      if (progress->done) break;
    }
    H5M_RETURN_IF_ERROR(CheckOldHeads(**opened));
    if (versions.empty()) return absl::OkStatus();
    for (auto& one : promised_.droppable) {
      one.gone_count = std::min(one.gone_count, env_.change_count());
    }
    return absl::OkStatus();
  }

  // Takes up an archive job that was cut short.
  absl::Status FinishArchive() {
    const ArchiveCopy copy = promised_.is_copied ? ArchiveCopy::kKeep : ArchiveCopy::kNone;
    auto job = file_->StartArchive({SealSegment::kYes, 0, copy});
    H5M_RETURN_IF_ERROR(In(job.status(), StrCat("archive ", name_)));
    while (true) {
      auto progress = (*job)->Step();
      H5M_RETURN_IF_ERROR(In(progress.status(), StrCat("archive ", name_)));
      if (progress->done) break;
    }
    return CheckVersions("once it was archived");
  }

  // A head goes with the last version of its generation.
  absl::Status CheckOldHeads(File& file) {
    auto versions = file.ListVersions({}, 10'000);
    H5M_RETURN_IF_ERROR(In(versions.status(), "list versions"));
    H5M_ASSIGN_OR_RETURN(auto tree, env_.OpenTree("/"));
    H5M_ASSIGN_OR_RETURN(auto entries, tree->List(name_ + ".h5m"));
    for (const DirectoryEntry& entry : entries) {
      if (!entry.name.starts_with("head-")) continue;
      if (std::none_of(versions->begin(), versions->end(), [&](const VersionInfo& version) {
            return entry.name == StrCat("head-", version.generation);
          })) {
        return Violation(StrCat("the prune of ", name_, " left ", entry.name));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckVerify() {
    auto job = file_->StartVerify({});
    H5M_RETURN_IF_ERROR(In(job.status(), StrCat("verify ", name_)));
    while (true) {
      auto progress = (*job)->Step();
      H5M_RETURN_IF_ERROR(In(progress.status(), StrCat("verify ", name_)));
      for (const Damage& damage : progress->found) {
        return Violation(StrCat("verify ", name_, ": ", damage.file, ": ", damage.message));
      }
      if (progress->done) return absl::OkStatus();
    }
  }

  absl::Status CheckHead(const char* when) {
    auto info = file_->Info();
    H5M_RETURN_IF_ERROR(In(info.status(), "info"));
    H5M_ASSIGN_OR_RETURN(auto tree, env_.OpenTree("/"));
    auto head = tree->Open(name_, OpenKind::kRead, 0);
    H5M_RETURN_IF_ERROR(In(head.status(), StrCat("the head of ", name_)));
    H5M_ASSIGN_OR_RETURN(uint64_t size, (*head)->Size());
    std::string bytes(size, '\0');
    H5M_RETURN_IF_ERROR(ReadOrZeros(**head, 0, absl::MakeSpan(bytes)));
    return CheckGolden(info->durable_cut, bytes, StrCat("the head of ", name_, ", ", when));
  }

  // The bytes of the newest cut, durable or only visible.
  absl::StatusOr<std::string> NewestBytes(const FileInfo& info) {
    if (info.last_cut == 0) return std::string();
    if (Bytes golden = promised_.GoldenOf(info.last_cut); golden != nullptr) return *golden;
    // A file that was taken in, or a rollback that nobody heard of.
    auto reader = file_->OpenVersion(0);
    if (!reader.ok()) return In(reader.status(), "the newest version");
    std::string bytes((*reader)->info().size_bytes, '\0');
    H5M_RETURN_IF_ERROR(In((*reader)->Read(0, absl::MakeSpan(bytes)), "the newest version"));
    promised_.golden[info.last_cut] = std::make_shared<std::string>(bytes);
    return bytes;
  }

  absl::Status CheckWritable() {
    auto opened = store_.OpenOrCreateFile(name_, 0);
    H5M_RETURN_IF_ERROR(In(opened.status(), StrCat("open ", name_, " to write")));
    file_ = *opened;
    auto info = file_->Info();
    H5M_RETURN_IF_ERROR(In(info.status(), "info"));
    H5M_ASSIGN_OR_RETURN(std::string bytes, NewestBytes(*info));
    Writer writer(file_, SessionStart::kContinue, std::move(bytes), promised_.Local());
    H5M_RETURN_IF_ERROR(In(writer.begun(), StrCat("begin ", name_)));
    if (writer.token() <= promises_.GivenTokenMax()) {
      return Violation(StrCat("token ", writer.token(), " was given twice"));
    }
    promises_.tokens.push_back({writer.token(), env_.change_count()});
    const uint64_t size = writer.content().size();
    auto write = [&](uint64_t offset, size_t length, char fill) {
      return In(writer.Write(offset, std::string(length, fill)), StrCat("write ", name_));
    };
    H5M_RETURN_IF_ERROR(write(size / 3, 700, 'n'));
    H5M_RETURN_IF_ERROR(write(0, 5, 'e'));
    H5M_RETURN_IF_ERROR(write(writer.content().size() + 300, 900, 'w'));
    // Should the commit fail, nobody knows whether it is there.
    promised_.attempts.push_back(std::make_shared<std::string>(writer.content()));
    auto durable = writer.CutDurably(BarrierKind::kCommit);
    H5M_RETURN_IF_ERROR(In(durable.status(), StrCat("commit ", name_)));
    if (durable->cut <= promised_.GivenCut()) {
      return Violation(StrCat("cut ", durable->cut, " of ", name_, " was given twice"));
    }
    promised_.golden[durable->cut] = promised_.attempts.back();
    promised_.acked.push_back({durable->cut, durable->version, env_.change_count()});
    promised_.given.push_back({durable->cut, env_.change_count()});
    H5M_RETURN_IF_ERROR(In(writer.End(), StrCat("end ", name_)));
    return In(file_->WaitApplied(kPatience), StrCat("apply the new version of ", name_));
  }

  Store& store_;
  CountedEnv& env_;
  const std::string name_;
  const uint64_t choice_;
  Promises& promises_;
  FilePromises& promised_;
  std::shared_ptr<File> file_;
};

// Where a file is that has been moved, removed and brought back: under exactly one of the names
// that it may have.
class NameCheck {
 public:
  NameCheck(Store& store, CountedEnv& env, std::string first_name, FilePromises* promised)
      : store_(store),
        env_(env),
        promised_(*promised),
        possible_(promised->PossibleNames(first_name)),
        names_{std::move(first_name)} {
    for (const auto& change : promised->name_changes) names_.insert(change.name);
  }

  // Its name; brings a removed one back. nullopt: it is gone for good, or never came to be.
  absl::StatusOr<std::optional<std::string>> Run() {
    std::vector<std::string> found;
    for (const std::string& name : names_) {
      if (name == FilePromises::kRemoved || name == FilePromises::kPurged) continue;
      auto opened = store_.OpenFile(name);
      if (absl::IsNotFound(opened.status())) continue;
      H5M_RETURN_IF_ERROR(In(opened.status(), StrCat("open ", name)));
      found.push_back(name);
      if (!possible_.contains(name)) return Violation(name + " is there, and had another name");
    }
    auto removed = store_.ListRemoved();
    H5M_RETURN_IF_ERROR(In(removed.status(), "list removed files"));
    std::optional<std::string> id;
    for (const RemovedFile& file : *removed) {
      if (!names_.contains(file.name)) continue;
      if (id) return Violation(file.name + " was removed twice");
      id = file.id;
      if (!possible_.contains(FilePromises::kRemoved)) {
        return Violation(file.name + " is removed, and was brought back, or for good");
      }
    }
    if (found.size() + (id ? 1 : 0) > 1) return Violation(found[0] + " is there under two names");
    if (!found.empty()) return found[0];
    if (id) return BringBack(*id);
    if (possible_.contains(FilePromises::kPurged)) return std::nullopt;
    return Violation(*possible_.begin() + " is under none of its names");
  }

 private:
  absl::StatusOr<std::optional<std::string>> BringBack(const std::string& id) {
    const std::string name = StrCat("back/", id, ".h5");
    promised_.name_changes.push_back({name, false, SIZE_MAX});
    auto back = store_.Undelete(id, name);
    H5M_RETURN_IF_ERROR(In(back.status(), StrCat("undelete ", id)));
    promised_.name_changes.back().acked = true;
    promised_.name_changes.back().change_count = env_.change_count();
    return *back;
  }

  Store& store_;
  CountedEnv& env_;
  FilePromises& promised_;
  const std::set<std::string> possible_;
  std::set<std::string> names_;  // all that it ever had
};

// OK, too, where an error says that the bytes cannot be had.
absl::Status CheckReads(File& file, const std::string& name, const FilePromises& promised) {
  auto versions = file.ListVersions({}, 10'000);
  if (!versions.ok()) return absl::OkStatus();
  for (const VersionInfo& version : *versions) {
    auto reader = file.OpenVersion(version.version);
    Bytes golden = promised.GoldenOf(version.cut);
    if (!reader.ok() || golden == nullptr) continue;
    for (uint64_t at = 0; at < golden->size(); at += 512) {
      std::string bytes(std::min<uint64_t>(512, golden->size() - at), '\0');
      if (!(*reader)->Read(at, absl::MakeSpan(bytes)).ok()) continue;
      H5M_RETURN_IF_ERROR(Compare(bytes, std::string_view(*golden).substr(at, bytes.size()),
                                  StrCat(name, "@", version.version, " at ", at)));
    }
    absl::Status read;
    if (!ScatteredReadsMatch(**reader, *golden, &read)) {
      return Violation(StrCat(name, "@", version.version, ": scattered reads give other bytes"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckStore(Store& store, CountedEnv& env, uint64_t choice, Promises* promises) {
  for (auto& [first_name, promised] : promises->files) {
    std::string name = first_name;
    if (!promised.name_changes.empty() && promised.AckedCut() != 0) {
      H5M_ASSIGN_OR_RETURN(auto now, NameCheck(store, env, name, &promised).Run());
      if (!now) continue;
      name = *std::move(now);
    }
    H5M_RETURN_IF_ERROR(FileCheck(store, env, name, choice, promises, &promised).Run());
  }
  return absl::OkStatus();
}

absl::Status CheckDisk(CountedEnv& env, const PlayOptions& options, uint64_t choice,
                       Promises* promises) {
  const bool is_copied = std::any_of(promises->files.begin(), promises->files.end(),
                                     [](const auto& file) { return file.second.is_copied; });
  if (is_copied) H5M_RETURN_IF_ERROR(In(CheckCopies(env, options, *promises), "as found"));
  auto store = OpenOn(env, options);
  H5M_RETURN_IF_ERROR(In(store.status(), "open the store"));
  H5M_RETURN_IF_ERROR(CheckStore(**store, env, choice, promises));
  H5M_RETURN_IF_ERROR(In((*store)->Close(kPatience), "close the store"));
  store->reset();
  if (is_copied) H5M_RETURN_IF_ERROR(In(CheckCopies(env, options, *promises), "afterwards"));
  const bool is_archived = std::any_of(promises->files.begin(), promises->files.end(),
                                       [](const auto& file) { return file.second.is_archived; });
  return is_archived ? In(CheckObjects(env), "look for objects") : absl::OkStatus();
}

absl::Status CheckGoingOn(CountedEnv& env, const PlayOptions& options, uint64_t choice,
                          Promises* promises) {
  auto store = OpenOn(env, options, 0);
  H5M_RETURN_IF_ERROR(In(store.status(), "open the store"));
  for (auto& [name, promised] : promises->files) {
    if (!promised.name_changes.empty()) continue;  // CheckStore() finds out where it is.
    FileCheck check(**store, env, name, choice, promises, &promised);
    H5M_RETURN_IF_ERROR(check.RunBeforeApplied());
  }
  return absl::OkStatus();
}

absl::Status CheckNoWrongBytes(CountedEnv& env, const PlayOptions& options,
                               const Promises& promises) {
  auto store = OpenOn(env, options);
  if (!store.ok()) return absl::OkStatus();
  for (const auto& [first_name, promised] : promises.files) {
    for (const std::string& name : promised.PossibleNames(first_name)) {
      auto file = (*store)->OpenFile(name);
      if (!file.ok()) continue;
      H5M_RETURN_IF_ERROR(CheckReads(**file, name, promised));
      (*file)->WaitApplied(kPatience).IgnoreError();
      file = (*store)->OpenFile(name);
      if (file.ok()) H5M_RETURN_IF_ERROR(CheckReads(**file, name, promised));
    }
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::store
