#include "server/cluster/cluster_store.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "rpc/elsewhere.h"
#include "server/cluster/guarded_file.h"

namespace h5mirror::server {
namespace {

// The time between two looks at the sessions and calls that a retiring cell waits for.
constexpr absl::Duration kRetireStep = absl::Milliseconds(20);

absl::Status Nobody(std::string_view name, std::string_view why) {
  return rpc::NobodyServesError(StrCat(name, ": no server serves its cell at the moment: ", why));
}

// An error of the store, which has no payload, with the client's name of a file in place of the
// cell's. What is no whole word is another name. For errors that say that there is no such file:
// that name is all they tell.
absl::Status Named(const OpenCell& cell, std::string_view name, const absl::Status& status) {
  constexpr std::string_view kAround = " ,;:@\"";
  const std::string inner = cell.Inner(name);
  const std::string message(status.message());
  const size_t at = message.find(inner);
  if (status.ok() || at == message.npos || inner.empty()) return status;
  const size_t end = at + inner.size();
  const bool is_word = (at == 0 || kAround.find(message[at - 1]) != kAround.npos) &&
                       (end == message.size() || kAround.find(message[end]) != kAround.npos);
  if (!is_word) return status;
  return {status.code(), StrCat(message.substr(0, at), name, message.substr(end))};
}

}  // namespace

ClusterStore::ClusterStore(Ownership& ownership)
    : ownership_(ownership), incarnation_(RandomBytes16()), acks_(ownership) {}

ClusterStore::~ClusterStore() { acks_.Stop(); }

// ---- Cells ----

void ClusterStore::Add(const std::string& cell, uint64_t epoch, OpenedStore opened) {
  auto added = std::make_shared<OpenCell>(cell, epoch, std::move(opened), ownership_, acks_);
  store::Store& store = added->store();
  store.SetCutListener(
      [this, prefix = added->prefix()](const std::string& name, store::CutNumber cut) {
        absl::ReaderMutexLock lock(&listener_mutex_);
        if (cut_listener_ != nullptr) cut_listener_(prefix + name, cut);
      });
  store.SetOwnerListener([this, prefix = added->prefix()](const std::string& name) {
    absl::ReaderMutexLock lock(&listener_mutex_);
    if (owner_listener_ != nullptr) owner_listener_(prefix + name);
  });
  {
    absl::MutexLock lock(&mutex_);
    for (const std::string& name : stopped_) {
      if (name.empty()) store.StopHistory("");
      if (!name.empty() && name.starts_with(added->prefix())) store.StopHistory(added->Inner(name));
    }
    cells_[added->prefix()] = std::move(added);
  }
  TellCell(cell);
}

void ClusterStore::SetCellsListener(CellsListener listener) {
  absl::MutexLock lock(&cells_mutex_);
  cells_listener_ = std::move(listener);
}

void ClusterStore::TellCell(const std::string& cell) {
  absl::MutexLock lock(&cells_mutex_);
  if (cells_listener_ != nullptr) cells_listener_(cell);
}

ClusterStore::Cell ClusterStore::FindOpen(const std::string& cell) const {
  absl::MutexLock lock(&mutex_);
  const auto found = cells_.find(cell.empty() ? "" : cell + "/");
  return found == cells_.end() ? nullptr : found->second;
}

absl::Status ClusterStore::RetireCell(const std::string& cell, absl::Duration timeout) {
  const Cell retiring = FindOpen(cell);
  if (retiring == nullptr) return absl::OkStatus();
  retiring->SetRetired(true);
  const absl::Duration deadline = clock_.Monotonic() + timeout;
  for (;;) {
    size_t sessions = 0;
    {
      absl::MutexLock lock(&retire_mutex_);
      if (retire_listener_ != nullptr) sessions = retire_listener_(retiring->prefix());
    }
    const size_t calls = retiring->in_hand();
    if (sessions == 0 && calls == 0) return absl::OkStatus();
    if (clock_.Monotonic() >= deadline) {
      retiring->SetRetired(false);
      return absl::UnavailableError(
          StrCat(sessions, " sessions and ", calls, " calls have not ended"));
    }
    absl::SleepFor(kRetireStep);
  }
}

void ClusterStore::SetRetireListener(RetireListener listener) {
  absl::MutexLock lock(&retire_mutex_);
  retire_listener_ = std::move(listener);
}

absl::Status ClusterStore::CloseCell(const std::string& cell, absl::Duration deadline) {
  Cell closing;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = cells_.find(cell.empty() ? "" : cell + "/");
    if (found == cells_.end()) return absl::OkStatus();
    closing = std::move(found->second);
    cells_.erase(found);
  }
  TellCell(cell);
  // Gives the root's lock back. Those who still hold a file can do nothing with it.
  const absl::Status closed = closing->store().Close(deadline);
  closing->store().SetCutListener(nullptr);
  closing->store().SetOwnerListener(nullptr);
  if (std::function<void()> on_unmounted = closing->TakeOnUnmounted();
      closed.ok() && on_unmounted != nullptr) {
    absl::MutexLock lock(&mutex_);
    unmounting_.push_back({closing->mounted(), std::move(on_unmounted)});
  }
  closing.reset();
  TellUnmounted();
  return closed;
}

void ClusterStore::TellUnmounted() {
  std::vector<std::function<void()>> ended;
  {
    absl::MutexLock lock(&mutex_);
    std::erase_if(unmounting_, [&ended](Unmounting& each) {
      if (!each.mounted.expired()) return false;
      ended.push_back(std::move(each.on_unmounted));
      return true;
    });
  }
  for (const std::function<void()>& each : ended) each();
}

std::vector<ClusterStore::Cell> ClusterStore::AllCells() const {
  absl::MutexLock lock(&mutex_);
  std::vector<Cell> cells;
  for (const auto& [prefix, cell] : cells_) cells.push_back(cell);
  return cells;
}

std::vector<ClusterStore::Cell> ClusterStore::Cells() const {
  std::vector<Cell> cells;
  for (const Cell& cell : AllCells()) {
    Cell entered = cell->Enter();
    if (entered != nullptr && entered->Check().ok()) cells.push_back(std::move(entered));
  }
  return cells;
}

std::vector<ClusterStore::Cell> ClusterStore::OwnCells() const {
  std::vector<Cell> cells;
  for (const Cell& cell : AllCells()) {
    if (cell->IsGivenAway()) continue;
    Cell entered = cell->Enter();
    cells.push_back(entered != nullptr ? std::move(entered) : cell);
  }
  return cells;
}

absl::Status ClusterStore::CheckLooked() {
  if (ownership_.has_looked()) return absl::OkStatus();
  return rpc::NobodyServesError("this server has just started, and does not know its cells yet");
}

absl::StatusOr<ClusterStore::Cell> ClusterStore::CellAt(const std::string& cell,
                                                        std::string_view name) {
  const cluster::Route route = ownership_.Find(cell);
  if (route.kind == cluster::RouteKind::kRedirect) {
    return rpc::ElsewhereError({route.listen, cell, route.epoch});
  }
  if (route.kind != cluster::RouteKind::kServe) return Nobody(name, "it is being taken over");
  const Cell open = FindOpen(cell);
  if (open == nullptr || open->epoch() != route.epoch) return Nobody(name, "it is being opened");
  Cell found = open->Enter();
  if (found == nullptr) return Nobody(name, "it is being handed over");
  H5M_RETURN_IF_ERROR(found->Check());
  return found;
}

absl::StatusOr<ClusterStore::Cell> ClusterStore::CellFor(std::string_view name) {
  H5M_RETURN_IF_ERROR(store::CheckName(name));
  std::optional<std::string> cell = ownership_.CellOf(name);
  if (!cell.has_value()) {
    // Before the first look at the registry, or of a cell that another server has just made.
    const cluster::Route route = ownership_.Find("");
    if (route.kind == cluster::RouteKind::kWait) return Nobody(name, "the registry is away");
    cell = ownership_.CellOf(name);
  }
  // The file of a cell's own name would lie beside it.
  if (!cell.has_value() || *cell == name) {
    return absl::InvalidArgumentError(StrCat(name, " lies in no cell of this cluster"));
  }
  return CellAt(*cell, name);
}

absl::StatusOr<std::shared_ptr<archive::RootArchive>> ClusterStore::ArchiveOf(
    std::string_view name) {
  H5M_ASSIGN_OR_RETURN(Cell cell, CellFor(name));
  archive::RootArchive* const archive = cell->archive();
  return std::shared_ptr<archive::RootArchive>(std::move(cell), archive);
}

absl::StatusOr<ClusterStore::Cell> ClusterStore::CellForBoth(std::string_view name,
                                                             std::string_view other) {
  H5M_RETURN_IF_ERROR(store::CheckName(other));
  H5M_ASSIGN_OR_RETURN(Cell cell, CellFor(name));
  if (ownership_.CellOf(other) == cell->cell() && other != cell->cell()) return cell;
  return absl::InvalidArgumentError(
      StrCat(name, " and ", other, " lie in two cells of this cluster; copy the file instead"));
}

// ---- Files ----

absl::Status ClusterStore::Close(absl::Duration deadline) {
  absl::Status first;
  for (const Cell& cell : AllCells()) {
    const absl::Status closed = cell->store().Close(deadline);
    if (first.ok()) first = closed;
  }
  acks_.Stop();
  return first;
}

void ClusterStore::SetCutListener(CutListener listener) {
  absl::MutexLock lock(&listener_mutex_);
  cut_listener_ = std::move(listener);
}

void ClusterStore::SetOwnerListener(OwnerListener listener) {
  absl::MutexLock lock(&listener_mutex_);
  owner_listener_ = std::move(listener);
}

absl::StatusOr<std::shared_ptr<store::File>> ClusterStore::OpenFile(std::string_view name) {
  H5M_ASSIGN_OR_RETURN(const Cell cell, CellFor(name));
  auto opened = cell->store().OpenFile(cell->Inner(name));
  if (absl::IsNotFound(opened.status())) {
    H5M_RETURN_IF_ERROR(cell->Check());
    return rpc::OwnerLacksIt(Named(*cell, name, opened.status()), cell->cell(), cell->epoch());
  }
  H5M_ASSIGN_OR_RETURN(auto file, cell->Fresh(std::move(opened)));
  return cell->Guard(std::move(file));
}

absl::StatusOr<std::shared_ptr<store::File>> ClusterStore::OpenOrCreateFile(
    std::string_view name, uint32_t page_size_bytes) {
  H5M_ASSIGN_OR_RETURN(const Cell cell, CellFor(name));
  H5M_ASSIGN_OR_RETURN(
      auto file, cell->Fresh(cell->store().OpenOrCreateFile(cell->Inner(name), page_size_bytes)));
  return cell->Guard(std::move(file));
}

absl::StatusOr<store::VersionInfo> ClusterStore::Fork(store::File& source,
                                                      store::VersionNumber version,
                                                      std::string_view new_name,
                                                      const store::ForkRequest& request) {
  GuardedFile* const from = AsGuarded(source);
  if (from == nullptr) return absl::InvalidArgumentError(StrCat(source.name(), " is in no cell"));
  H5M_ASSIGN_OR_RETURN(const Cell cell, CellForBoth(source.name(), new_name));
  if (&from->cell() != cell.get()) return Nobody(source.name(), "it has been opened again");
  auto made =
      cell->Acked(cell->store().Fork(from->inner(), version, cell->Inner(new_name), request));
  if (made.ok()) cell->MakeOuter(*made);
  return made;
}

absl::StatusOr<std::vector<store::FileSummary>> ClusterStore::List(std::string_view directory,
                                                                   std::string_view after_name,
                                                                   size_t limit) {
  H5M_RETURN_IF_ERROR(CheckLooked());
  const std::string below = directory.empty() ? "" : StrCat(directory, "/");
  std::vector<Cell> cells = OwnCells();
  // A directory within one cell is that of its server.
  if (const auto cell = ownership_.CellOf(directory); cell.has_value()) {
    H5M_ASSIGN_OR_RETURN(Cell served, CellAt(*cell, directory));
    cells = {std::move(served)};
  }
  std::vector<store::FileSummary> files;
  for (const Cell& cell : cells) {
    const std::string& prefix = cell->prefix();
    const bool is_within = below.starts_with(prefix);
    if (files.size() >= limit || (!is_within && !prefix.starts_with(below))) continue;
    const bool is_begun = after_name.starts_with(prefix);
    if (!is_begun && after_name > prefix) continue;  // All of its names have been listed.
    const std::string_view inner = is_within && !directory.empty() && below != prefix
                                       ? directory.substr(prefix.size())
                                       : std::string_view();
    H5M_ASSIGN_OR_RETURN(
        auto more, cell->Fresh(cell->store().List(inner, is_begun ? cell->Inner(after_name) : "",
                                                  limit - files.size())));
    for (store::FileSummary& file : more) {
      file.name = cell->Outer(file.name);
      files.push_back(std::move(file));
    }
  }
  return files;
}

absl::StatusOr<store::FileInfo> ClusterStore::Glance(const store::FileSummary& listed) {
  H5M_ASSIGN_OR_RETURN(const Cell cell, CellFor(listed.name));
  store::FileSummary inner = listed;
  inner.name = cell->Inner(listed.name);
  H5M_ASSIGN_OR_RETURN(store::FileInfo info, cell->Fresh(cell->store().Glance(inner)));
  cell->MakeOuter(info.newest_version);
  if (info.forked_from.has_value()) info.forked_from->name = cell->Outer(info.forked_from->name);
  return info;
}

absl::Status ClusterStore::Move(std::string_view name, std::string_view new_name) {
  H5M_ASSIGN_OR_RETURN(const Cell cell, CellForBoth(name, new_name));
  return cell->Acked(cell->store().Move(cell->Inner(name), cell->Inner(new_name)));
}

absl::StatusOr<store::RemovedFile> ClusterStore::Remove(std::string_view name,
                                                        const store::Provenance& who,
                                                        absl::Duration keep) {
  H5M_ASSIGN_OR_RETURN(const Cell cell, CellFor(name));
  auto removed = cell->store().Remove(cell->Inner(name), who, keep);
  if (!removed.ok()) return Named(*cell, name, removed.status());
  removed = cell->Acked(std::move(removed));
  if (!removed.ok()) return removed;
  removed->name = cell->Outer(removed->name);
  removed->id = cell->OuterId(removed->id);
  return removed;
}

absl::StatusOr<std::vector<store::RemovedFile>> ClusterStore::ListRemoved() {
  H5M_RETURN_IF_ERROR(CheckLooked());
  std::vector<store::RemovedFile> all;
  for (const Cell& cell : OwnCells()) {
    H5M_ASSIGN_OR_RETURN(auto removed, cell->Fresh(cell->store().ListRemoved()));
    for (store::RemovedFile& file : removed) {
      file.name = cell->Outer(file.name);
      file.id = cell->OuterId(file.id);
      all.push_back(std::move(file));
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.removed > b.removed; });
  return all;
}

absl::StatusOr<std::string> ClusterStore::Undelete(std::string_view removal_id,
                                                   std::string_view new_name) {
  for (const Cell& cell : OwnCells()) {
    const auto inner_id = cell->InnerId(removal_id);
    if (!inner_id.has_value()) continue;
    H5M_RETURN_IF_ERROR(cell->Check());
    if (!new_name.empty() && !new_name.starts_with(cell->prefix())) {
      return absl::InvalidArgumentError(StrCat(
          new_name, " lies in another cell than the removed file; a file stays in its cell"));
    }
    auto name = cell->Acked(cell->store().Undelete(
        *inner_id, new_name.empty() ? std::string() : cell->Inner(new_name)));
    if (name.ok()) return cell->Outer(*name);
    return name;
  }
  return absl::NotFoundError(
      StrCat("no removed file ", removal_id, " lies in a cell that this server serves"));
}

absl::StatusOr<int> ClusterStore::PurgeRemoved(absl::Time now) {
  int count = 0;
  for (const Cell& cell : Cells()) {
    H5M_ASSIGN_OR_RETURN(const int purged, cell->store().PurgeRemoved(now));
    count += purged;
  }
  return count;
}

absl::Status ClusterStore::PurgeOneRemoved(std::string_view removal_id) {
  for (const Cell& cell : Cells()) {
    const auto inner_id = cell->InnerId(removal_id);
    if (inner_id.has_value()) return cell->store().PurgeOneRemoved(*inner_id);
  }
  return absl::NotFoundError(StrCat("no removed file ", removal_id));
}

absl::StatusOr<std::vector<std::string>> ClusterStore::Names(
    absl::StatusOr<std::vector<std::string>> (store::Store::*list)()) {
  std::vector<std::string> all;
  for (const Cell& cell : Cells()) {
    H5M_ASSIGN_OR_RETURN(const auto names, (cell->store().*list)());
    for (const std::string& name : names) all.push_back(cell->Outer(name));
  }
  return all;
}

absl::StatusOr<std::vector<std::string>> ClusterStore::CheckedFiles() {
  return Names(&store::Store::CheckedFiles);
}

absl::StatusOr<std::vector<std::string>> ClusterStore::UnfinishedPrunes() {
  return Names(&store::Store::UnfinishedPrunes);
}

absl::StatusOr<store::FileOwner> ClusterStore::OwnerOf(std::string_view name) {
  H5M_ASSIGN_OR_RETURN(const Cell cell, CellFor(name));
  return cell->Fresh(cell->store().OwnerOf(cell->Inner(name)));
}

absl::StatusOr<store::HistorySizes> ClusterStore::Measure(std::string_view name,
                                                          store::WithHead with_head) {
  H5M_ASSIGN_OR_RETURN(const Cell cell, CellFor(name));
  return cell->Fresh(cell->store().Measure(cell->Inner(name), with_head));
}

void ClusterStore::StopHistory(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  stopped_.insert(std::string(name));
  for (const auto& [prefix, cell] : cells_) {
    if (name.empty()) cell->store().StopHistory("");
    if (!name.empty() && name.starts_with(prefix)) cell->store().StopHistory(cell->Inner(name));
  }
}

void ClusterStore::ResumeHistory(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  stopped_.erase(std::string(name));
  for (const auto& [prefix, cell] : cells_) {
    if (name.empty()) cell->store().ResumeHistory("");
    if (!name.empty() && name.starts_with(prefix)) cell->store().ResumeHistory(cell->Inner(name));
  }
}

uint64_t ClusterStore::memory_used_bytes() const {
  uint64_t bytes = 0;
  for (const Cell& cell : AllCells()) bytes += cell->store().memory_used_bytes();
  return bytes;
}

absl::StatusOr<uint64_t> ClusterStore::FreeDiskBytes() const {
  const std::vector<Cell> cells = AllCells();
  if (cells.empty()) return absl::UnavailableError("this server serves no cell at the moment");
  return cells.front()->store().FreeDiskBytes();
}

uint64_t ClusterStore::disk_bytes() const {
  const std::vector<Cell> cells = AllCells();
  return cells.empty() ? 0 : cells.front()->store().disk_bytes();
}

ClusterOperations* OperationsOf(store::Store& store) {
  auto* const cells = dynamic_cast<ClusterStore*>(&store);
  return cells == nullptr ? nullptr : cells->operations();
}

Ownership* OwnershipOf(store::Store& store) {
  auto* const cells = dynamic_cast<ClusterStore*>(&store);
  return cells == nullptr ? nullptr : &cells->ownership();
}

// ---- Health ----

std::vector<store::StoreNotice> ClusterStore::TakeNotices() {
  std::vector<store::StoreNotice> all;
  for (const Cell& cell : AllCells()) {
    auto* const health = store::StoreHealth::Of(cell->store());
    if (health == nullptr) continue;
    for (store::StoreNotice& notice : health->TakeNotices()) {
      if (!notice.file.empty()) notice.file = cell->Outer(notice.file);
      all.push_back(std::move(notice));
    }
  }
  return all;
}

uint64_t ClusterStore::lost_pages() const {
  uint64_t pages = 0;
  for (const Cell& cell : AllCells()) {
    const auto* const health = store::StoreHealth::Of(cell->store());
    if (health != nullptr) pages += health->lost_pages();
  }
  return pages;
}

absl::Time ClusterStore::Now() {
  absl::Time now = absl::InfinitePast();
  for (const Cell& cell : AllCells()) {
    auto* const health = store::StoreHealth::Of(cell->store());
    if (health != nullptr) now = std::max(now, health->Now());
  }
  return now == absl::InfinitePast() ? clock_.Now() : now;
}

std::string ClusterStore::DoubtOfTime() {
  for (const Cell& cell : AllCells()) {
    auto* const health = store::StoreHealth::Of(cell->store());
    std::string doubt = health == nullptr ? "" : health->DoubtOfTime();
    if (!doubt.empty()) return doubt;
  }
  return "";
}

absl::Duration ClusterStore::ClockAhead() { return clock_.Now() - Now(); }

void ClusterStore::Tend() {
  for (const Cell& cell : AllCells()) {
    auto* const health = store::StoreHealth::Of(cell->store());
    if (health != nullptr) health->Tend();
  }
  TellUnmounted();
}

}  // namespace h5mirror::server
