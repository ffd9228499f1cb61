// A head that another program changed while no store had it open: docs/design/031-recovery.md.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/file/file_impl.h"
#include "onion_store/history_names.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kPages = 256;  // read at once

}  // namespace

struct FileImpl::OutsideChange {
  GenerationPtr generation;
  std::shared_ptr<VersionIndex> index;
  FileRow row;
  VersionInfo newest;
  uint64_t size_bytes = 0;
  bool was_begun = false;      // an earlier attempt was broken off
  uint64_t changed_pages = 0;  // if it was begun: only the known ones
  uint64_t lost_pages = 0;     // of older versions

  // Calls `look` for each `kPages` pages that begin below `end_bytes`, with two sets of sums: those
  // of the head now, as if it held zeros from `end_bytes` on; and those in the sums file.
  template <typename Look>
  absl::Status ForEachPages(uint64_t end_bytes, uint32_t page_bytes, const Look& look) const {
    const uint64_t end_page = (end_bytes + page_bytes - 1) / page_bytes;
    std::string bytes;
    for (uint64_t first = 0; first < end_page; first += kPages) {
      const uint64_t count = std::min(kPages, end_page - first);
      const uint64_t at = first * page_bytes;
      bytes.assign(count * page_bytes, '\0');
      const auto read = absl::MakeSpan(bytes).first(std::min(bytes.size(), end_bytes - at));
      H5M_RETURN_IF_ERROR(ReadOrZeros(*generation->head, at, read));
      const std::vector<uint32_t> now = generation->sums->SumsOf(bytes);
      H5M_ASSIGN_OR_RETURN(const std::vector<uint32_t> before,
                           generation->sums->Read(first, count));
      H5M_RETURN_IF_ERROR(look(first, now, before));
    }
    return absl::OkStatus();
  }
};

// Writes first that old versions lost pages, then the new sums: in the other order a crash in
// between would pass new bytes off as old ones. Before both it notes that it has begun: once the
// sums are there, nothing else shows that no version has the change yet.
absl::Status FileImpl::TakeInOutsideChange(uint64_t size_bytes) {
  OutsideChange change;
  {
    absl::MutexLock lock(&mutex_);
    change.generation = cuts_.base;
    change.index = index_;
    change.row = row_;
    change.newest = newest_;
  }
  change.size_bytes = size_bytes;
  change.was_begun = IsTakingIn(change.row);
  if (!change.was_begun) {
    H5M_RETURN_IF_ERROR(CountChangedPages(change));
    // Only the time changed, or this is the tail of a writer whose mark a power loss took.
    if (change.changed_pages == 0 && size_bytes >= change.row.applied_size_bytes) {
      return CutOffGrowth(change);
    }
    change.row.head.size_bytes = kTakingInBytes;
    H5M_RETURN_IF_ERROR(change.index->WriteFileRow(change.row));
  }
  H5M_RETURN_IF_ERROR(NoteLostPages(change));
  const VersionNumber before = change.row.applied_version;
  H5M_RETURN_IF_ERROR(WriteOutsideSums(change));
  H5M_RETURN_IF_ERROR(CommitOutsideChange(change));
  context_->lost_pages += change.lost_pages;
  context_->TellNotice(StoreNotice::Kind::kPagesLost, files_.name(),
                       StrCat("the head was changed from outside: what it holds is version ",
                              outside_change_, " now; lost pages of version ", before,
                              " or older: ", change.lost_pages, "; h5mirror verify lists them"));
  return absl::OkStatus();
}

absl::Status FileImpl::CountChangedPages(OutsideChange& change) {
  auto count = [&](uint64_t, const std::vector<uint32_t>& now,
                   const std::vector<uint32_t>& before) {
    for (size_t i = 0; i < now.size(); ++i) change.changed_pages += now[i] != before[i];
    return absl::OkStatus();
  };
  // Bytes beyond the applied size are growth, also in the last page.
  return change.ForEachPages(change.row.applied_size_bytes, files_.page_size_bytes(), count);
}

absl::Status FileImpl::NoteLostPages(OutsideChange& change) {
  const FileRow& row = change.row;
  if (row.applied_version == 0) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const uint64_t size_max, change.index->SizeMax(row.generation));
  const uint64_t end_page =
      std::min(files_.PagesIn(size_max),
               std::max(files_.PagesIn(row.applied_size_bytes), files_.PagesIn(change.size_bytes)));
  uint64_t noted_before = 0;
  auto note = [&](uint64_t first, const std::vector<uint32_t>& now,
                  const std::vector<uint32_t>& before) -> absl::Status {
    if (now == before && !change.was_begun) return absl::OkStatus();
    const uint64_t end = first + now.size();
    std::vector<bool> saved(now.size());
    H5M_ASSIGN_OR_RETURN(const auto rows,
                         change.index->FindPages(row.generation, row.applied_version, first, end));
    for (const PageRun& run : rows) {
      for (uint64_t page = std::max(run.page, first); page < std::min(run.page_end(), end);
           ++page) {
        saved[page - first] = true;
        noted_before += run.segment == PageRun::kLost;
      }
    }
    std::vector<PageRun> lost;
    for (uint64_t i = 0; i < now.size(); ++i) {
      if (now[i] == before[i] || saved[i]) continue;
      lost.push_back({0, first + i, row.applied_version, PageRun::kLost, 0});
    }
    change.lost_pages += lost.size();
    return lost.empty() ? absl::OkStatus() : change.index->AddPages(row, lost);
  };
  const uint32_t page_bytes = files_.page_size_bytes();
  H5M_RETURN_IF_ERROR(change.ForEachPages(end_page * page_bytes, page_bytes, note));
  change.lost_pages += noted_before;
  if (change.was_begun) change.changed_pages = noted_before;
  return absl::OkStatus();
}

absl::Status FileImpl::WriteOutsideSums(const OutsideChange& change) {
  SumsFile& sums = *change.generation->sums;
  const uint32_t page_bytes = files_.page_size_bytes();
  const uint64_t end_page =
      std::max(files_.PagesIn(change.row.applied_size_bytes), files_.PagesIn(change.size_bytes));
  auto write = [&](uint64_t first, const std::vector<uint32_t>& now,
                   const std::vector<uint32_t>& before) {
    // The sums of an earlier attempt may be in memory only, if its sync failed.
    return now == before && !change.was_begun ? absl::OkStatus() : sums.Write(first, now);
  };
  H5M_RETURN_IF_ERROR(change.ForEachPages(end_page * page_bytes, page_bytes, write));
  H5M_RETURN_IF_ERROR(sums.Truncate(files_.PagesIn(change.size_bytes), change.was_begun));
  H5M_RETURN_IF_ERROR(change.generation->head->Sync());
  return sums.Sync();
}

absl::Status FileImpl::CommitOutsideChange(OutsideChange& change) {
  FileRow& row = change.row;
  row.server_time_ns = std::max(row.server_time_ns + 1, absl::ToUnixNanos(context_->env.Now()));
  VersionRow version;
  version.info.version = change.newest.version + 1;
  {
    absl::MutexLock lock(&mutex_);
    row.cut_reserved = std::max(row.cut_reserved, cuts_.next);
  }
  version.info.cut = row.cut_reserved;
  version.info.generation = row.generation;
  version.info.server_time = absl::FromUnixNanos(row.server_time_ns);
  version.info.provenance.comment = "outside change";
  outside_change_ = version.info.version;
  version.info.size_bytes = change.size_bytes;
  version.info.changed_pages = change.changed_pages;
  version.info.changed_bytes = change.changed_pages * files_.page_size_bytes();
  row.cut_reserved += kCutReserve;
  row.durable_cut = row.applied_cut = version.info.cut;
  row.durable_size_bytes = row.applied_size_bytes = change.size_bytes;
  row.durable_barrier = {};
  row.applied_version = version.info.version;
  row.changed = false;
  row.changed_pages = row.sent_bytes = 0;
  row.local = {};
  H5M_ASSIGN_OR_RETURN(row.head, change.generation->head->Stat());
  H5M_RETURN_IF_ERROR(change.index->CommitCuts(row, {&version, 1}, std::nullopt));
  absl::MutexLock lock(&mutex_);
  row_ = row;
  newest_ = version.info;
  cuts_.next = version.info.cut + 1;
  cuts_.last.number = version.info.cut;
  cuts_.last.size_bytes = change.size_bytes;
  cuts_.last.time = version.info.server_time;
  cuts_.last.barrier = {};
  change.generation->cut_bytes = std::max(change.generation->cut_bytes, change.size_bytes);
  return absl::OkStatus();
}

absl::Status FileImpl::CutOffGrowth(const OutsideChange& change) {
  FileRow row = change.row;
  H5M_RETURN_IF_ERROR(change.generation->head->Truncate(row.applied_size_bytes));
  H5M_ASSIGN_OR_RETURN(row.head, change.generation->head->Stat());
  H5M_RETURN_IF_ERROR(change.index->WriteFileRow(row));
  absl::MutexLock lock(&mutex_);
  row_ = row;
  return absl::OkStatus();
}

}  // namespace h5mirror::store
