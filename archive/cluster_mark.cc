#include "archive/cluster_mark.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "archive/root_archive.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace h5mirror::archive {
namespace {

constexpr std::string_view kHead = "h5mirror cluster 1\n";
constexpr size_t kIdDigits = 32;
constexpr size_t kNameBytesMax = 200;
constexpr size_t kObjectBytesMax = kHead.size() + kIdDigits + 1 + 4 * kNameBytesMax + 1;
// Servers of one cluster that start together change the cluster's memory at the same time.
constexpr int kTriesMax = 10;

bool IsId(std::string_view id) {
  return id.size() == kIdDigits && std::all_of(id.begin(), id.end(), [](char c) {
           return absl::ascii_isxdigit(static_cast<unsigned char>(c));
         });
}

class TextSource final : public store::ObjectSource {
 public:
  explicit TextSource(std::string text) : text_(std::move(text)) {}
  uint64_t size_bytes() const override { return text_.size(); }
  absl::Status Read(uint64_t offset, absl::Span<char> out) override {
    text_.copy(out.data(), out.size(), offset);
    return absl::OkStatus();
  }

 private:
  const std::string text_;
};

}  // namespace

absl::Status ClusterMark::Check(store::ObjectStore& top, Asker asker, absl::Duration timeout,
                                const Waits& waits, Verdict* verdict) {
  absl::Status checked;
  for (int i = 0; i < kTriesMax; ++i) {
    *verdict = Verdict::kUnknown;
    checked = TryCheck(top, asker, timeout, waits, verdict);
    if (!absl::IsAborted(checked)) return checked;
  }
  return absl::UnavailableError(StrCat(
      settings_.memory_place, ": other servers go on changing it: ", ToStd(checked.message())));
}

absl::Status ClusterMark::TryCheck(store::ObjectStore& top, Asker asker, absl::Duration timeout,
                                   const Waits& waits, Verdict* verdict) {
  H5M_ASSIGN_OR_RETURN(ClusterMemory memory, Remembered(waits, verdict));
  H5M_ASSIGN_OR_RETURN(std::optional<Found> found, Read(top, timeout));
  const std::string place = top.Describe();
  const bool was_here = memory.is_claimed && memory.place == place;
  if (!found) {
    if (was_here && asker == Asker::kNewPart) {
      *verdict = Verdict::kLacks;
      return Lacks(top, memory.id);
    }
    if (was_here && asker == Asker::kServer) {
      H5M_ASSIGN_OR_RETURN(const auto parts, top.List(RootArchive::kParts, "", 1, timeout));
      // A cell that finds its own part in the archive puts the object.
      *verdict = Verdict::kLacks;
      return parts.objects.empty() ? Lacks(top, memory.id) : absl::OkStatus();
    }
    if (!was_here) {
      // The memory comes before the object: a crash leaves a claim, and the next call continues
      // from it.
      const std::string id = memory.id.empty() ? HexOf(RandomBytes16()) : memory.id;
      H5M_RETURN_IF_ERROR(Remember(memory, {id, place, false}, waits, verdict));
      memory = {id, place, false};
    }
    H5M_RETURN_IF_ERROR(Put(top, memory.id, timeout));
    H5M_ASSIGN_OR_RETURN(found, Read(top, timeout));
    if (!found) return absl::UnavailableError(StrCat(top.Describe(), " has lost what was put"));
  }
  *verdict = Verdict::kOthers;
  H5M_RETURN_IF_ERROR(found->odd);
  if (found->id != memory.id) return OthersArchive(top, *found, memory.id);
  *verdict = Verdict::kOwn;
  return Remember(memory, {memory.id, place, true}, waits, verdict);
}

absl::StatusOr<ClusterMemory> ClusterMark::Remembered(const Waits& waits, Verdict* verdict) {
  if (waits != nullptr) waits(true);
  auto memory = settings_.remembered();
  if (waits != nullptr) waits(false);
  if (!memory.ok()) *verdict = Verdict::kNoMemory;
  return memory;
}

absl::StatusOr<std::optional<ClusterMark::Found>> ClusterMark::Read(store::ObjectStore& top,
                                                                    absl::Duration timeout) {
  const auto info = top.Head(kObject, timeout);
  if (absl::IsNotFound(info.status())) return std::nullopt;
  H5M_RETURN_IF_ERROR(info.status());
  Found odd;
  odd.odd =
      absl::FailedPreconditionError(StrCat("the object \"", kObject, "\" in ", top.Describe(),
                                           " is of a form that this version of h5mirror does not "
                                           "know. If a newer one made it, use that; else delete "
                                           "it, and it is made again"));
  if (info->size_bytes <= kHead.size() + kIdDigits || info->size_bytes > kObjectBytesMax) {
    return odd;
  }
  std::string text(info->size_bytes, '\0');
  const absl::Status got = top.Get(kObject, 0, absl::MakeSpan(text), timeout);
  if (absl::IsNotFound(got)) return std::nullopt;
  H5M_RETURN_IF_ERROR(got);
  if (!text.starts_with(kHead)) return odd;
  Found found{text.substr(kHead.size(), kIdDigits), text.substr(kHead.size() + kIdDigits), {}};
  if (!IsId(found.id) || !found.cluster.starts_with('\n')) return odd;
  found.cluster = Printable(ToStd(absl::StripAsciiWhitespace(found.cluster)));
  return found;
}

std::string ClusterMark::TextOf(const std::string& id) const {
  return StrCat(kHead, id, "\n", Printable(settings_.cluster.substr(0, kNameBytesMax)), "\n");
}

absl::Status ClusterMark::Put(store::ObjectStore& top, const std::string& id,
                              absl::Duration timeout) {
  TextSource source(TextOf(id));
  const absl::Status put = top.Put(kObject, source, timeout);
  return absl::IsAlreadyExists(put) ? absl::OkStatus() : put;
}

absl::Status ClusterMark::Remember(const ClusterMemory& before, const ClusterMemory& after,
                                   const Waits& waits, Verdict* verdict) {
  if (before == after) return absl::OkStatus();
  if (waits != nullptr) waits(true);
  const absl::Status done = settings_.remember(before, after);
  if (waits != nullptr) waits(false);
  if (!done.ok()) *verdict = Verdict::kNoMemory;
  return done;
}

absl::Status ClusterMark::OthersArchive(const store::ObjectStore& top, const Found& found,
                                        const std::string& id) const {
  const std::string other = found.cluster.empty() ? "" : StrCat(" ", found.cluster, ",");
  return absl::FailedPreconditionError(
      StrCat(top.Describe(), " is the archive of another cluster:", other, " id ", found.id,
             ". This one is ", settings_.cluster, id.empty() ? ", and has no id" : ", id ", id,
             ". Give this cluster a directory or a prefix of its own, and move its cells/CELL/ "
             "there. If the archive is this cluster's, and its registry was lost, delete the "
             "object \"",
             kObject, "\" there"));
}

absl::Status ClusterMark::Lacks(const store::ObjectStore& top, const std::string& id) const {
  return absl::FailedPreconditionError(
      StrCat(top.Describe(), " lacks the object \"", kObject, "\" of this cluster's archive, ", id,
             ": is its disk mounted, is this its bucket? If it is, put the object there, with the "
             "lines \"",
             kHead.substr(0, kHead.size() - 1), "\" and \"", id,
             "\". If all of the archive is gone, and shall begin anew, use another directory or "
             "prefix"));
}

}  // namespace h5mirror::archive
