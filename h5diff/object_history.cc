#include "h5diff/object_history.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "h5diff/evidence.h"
#include "hdf5/source_driver.h"

namespace h5mirror::tools {

// One side of a comparison, open. The file is closed last.
struct ObjectLook {
  hdf5::SourceFile file;
  FoundObject found;
};

namespace {

using Kind = ObjectEvent::Kind;

using Look = ObjectLook;

// `footprint` may be null; it must outlive the result. Errors: those of HDF5; if the source
// failed, `pages` says why.
absl::StatusOr<Look> LookAt(VersionPages& pages, Side side, const std::string& path,
                            Footprint* footprint) {
  H5M_ASSIGN_OR_RETURN(hdf5::SourceFile file,
                       hdf5::SourceFile::Open(pages.source(side), footprint));
  H5M_ASSIGN_OR_RETURN(FoundObject found, FindObject(file.id(), path));
  if (footprint != nullptr && found.object) {
    TakeFootprint(*found.object, file.base_offset(), *footprint);
  }
  return Look{std::move(file), std::move(found)};
}

std::string LinkTargetText(hid_t file, const Link& link, const std::string& path) {
  if (link.type != H5L_TYPE_HARD) return StrCat(LinkText(link.type), " to ", link.value);
  const auto object = OpenAt(file, link.address, path);
  return object.ok() ? DescribeObject(*object) : "object";
}

// In another generation each object has another address, which says nothing.
bool LeadToTheSame(const Link& one, const Link& other, bool one_generation) {
  return one.type == other.type && (one.address == other.address || !one_generation) &&
         one.value == other.value;
}

// The difference of a group's links, one change for each name.
absl::Status CompareLinkLists(const std::string& path, const Look& one, const Look& other,
                              bool one_generation, const ChangeSink& sink) {
  H5M_ASSIGN_OR_RETURN(const std::vector<Link> before, ReadLinks(one.found.object->id.get()));
  H5M_ASSIGN_OR_RETURN(const std::vector<Link> after, ReadLinks(other.found.object->id.get()));
  std::map<std::string, std::pair<const Link*, const Link*>> names;
  for (const Link& link : before) names[link.name].first = &link;
  for (const Link& link : after) names[link.name].second = &link;
  for (const auto& [name, links] : names) {
    const auto& [old_link, new_link] = links;
    if (old_link != nullptr && new_link != nullptr &&
        LeadToTheSame(*old_link, *new_link, one_generation)) {
      continue;
    }
    Change change;
    change.path = StrCat(path == "/" ? "" : path, "/", name);
    change.object = LinkText((new_link != nullptr ? new_link : old_link)->type);
    change.what = "link";
    change.had_old = old_link != nullptr;
    change.has_new = new_link != nullptr;
    change.kind = !change.had_old   ? ChangeKind::kAdded
                  : !change.has_new ? ChangeKind::kRemoved
                                    : ChangeKind::kChanged;
    if (change.had_old) change.old_value = LinkTargetText(one.file.id(), *old_link, change.path);
    if (change.has_new) change.new_value = LinkTargetText(other.file.id(), *new_link, change.path);
    sink(std::move(change));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Change>> CompareLooks(VersionPages& pages, const std::string& path,
                                                 const Look& one, const Look& other,
                                                 bool one_generation) {
  std::vector<Change> changes;
  Evidence evidence(pages);
  DiffContext context{.pages = pages,
                      .evidence = evidence,
                      .sink = [&](Change change) { changes.push_back(std::move(change)); },
                      .one_generation = one_generation};
  context.base_offset = other.file.base_offset();
  context.same_base_offset = one.file.base_offset() == other.file.base_offset();
  H5M_RETURN_IF_ERROR(CompareObjects(context, path, *one.found.object, *other.found.object));
  if (other.found.object->kind == ObjectKind::kGroup) {
    H5M_RETURN_IF_ERROR(CompareLinkLists(path, one, other, one_generation, context.sink));
  }
  return changes;
}

Change OtherObject(const std::string& path, const std::string& before, const std::string& after) {
  Change change;
  change.path = path;
  change.object = "object";
  change.what = "object";
  change.old_value = before;
  change.new_value = after;
  change.had_old = change.has_new = true;
  return change;
}

uint64_t AddressIn(const FoundObject& found) { return found.object ? found.object->address : 0; }

}  // namespace

bool ObjectHistory::Tell(Kind kind, std::vector<Change> changes, const std::string& text,
                         int64_t before) {
  ObjectEvent event;
  event.kind = kind;
  event.version = state_->version;
  event.before = before;
  event.object = text;
  event.changes = std::move(changes);
  return sink_(std::move(event));
}

bool ObjectHistory::TellUnknown(const v1::Version& version, const absl::Status& why) {
  ObjectEvent event;
  event.kind = Kind::kUnknown;
  event.version = version;
  event.note = ToStd(why.message());
  return sink_(std::move(event));
}

absl::StatusOr<bool> ObjectHistory::Begin(const v1::Version& version) {
  // Both sides are the same version: nothing differs, and each page is fetched once.
  VersionPages pages(client_, {.file = file_, .versions = {version, version}}, ExtentSet());
  ++versions_opened_;
  State state;
  const auto look = LookAt(pages, Side::kNew, path_, &state.footprint);
  H5M_RETURN_IF_ERROR(pages.error());
  if (!look.ok()) return TellUnknown(version, look.status());
  state.version = version;
  state.is_there = was_there_ = look->found.is_there();
  state.address = AddressIn(look->found);
  state.text = look->found.Text();
  state_ = std::move(state);
  return true;
}

absl::StatusOr<bool> ObjectHistory::Add(const v1::Version& version) {
  H5M_RETURN_IF_ERROR(hdf5::StartLibrary());
  if (!state_) return Begin(version);
  H5M_ASSIGN_OR_RETURN(ChangedRanges ranges, FindChangedRanges(client_, file_, version.version(),
                                                               state_->version.version(), nullptr));
  VersionPages pages(client_,
                     {.file = file_,
                      .versions = {version, state_->version},
                      .page_size_bytes = ranges.page_size_bytes},
                     ranges.changed);
  bool differs = state_->footprint.Touches(ranges.changed);
  if (differs) {
    H5M_ASSIGN_OR_RETURN(differs, state_->footprint.Differs(pages));
  }
  if (differs) return Compare(version, pages);
  state_->version = version;
  return true;
}

absl::StatusOr<bool> ObjectHistory::Compare(const v1::Version& older, VersionPages& pages) {
  ++versions_opened_;
  State next;
  next.version = older;
  const auto one = LookAt(pages, Side::kOld, path_, &next.footprint);
  H5M_RETURN_IF_ERROR(pages.error());
  if (!one.ok()) return TellUnknown(older, one.status());
  next.is_there = one->found.is_there();
  next.address = AddressIn(one->found);
  next.text = one->found.Text();
  was_there_ = was_there_ || next.is_there;
  absl::StatusOr<bool> go_on = true;
  if (next.is_there != state_->is_there) {
    go_on = state_->is_there ? Tell(Kind::kAppeared, {}, state_->text, older.version())
                             : Tell(Kind::kWent, {}, next.text, older.version());
  } else if (next.is_there) {
    go_on = CompareThere(older, next, *one, pages);
    H5M_RETURN_IF_ERROR(go_on.status());
  }
  state_ = std::move(next);
  return go_on;
}

absl::StatusOr<bool> ObjectHistory::CompareThere(const v1::Version& older, const State& next,
                                                 const Look& one, VersionPages& pages) {
  const bool one_generation = older.generation() == state_->version.generation();
  const auto other = LookAt(pages, Side::kNew, path_, nullptr);
  H5M_RETURN_IF_ERROR(pages.error());
  if (!other.ok()) return TellUnknown(state_->version, other.status());
  const bool comparable = one.found.object && other->found.object &&
                          one.found.object->kind == other->found.object->kind;
  if (!comparable) {
    if (next.text == state_->text) return true;
    return Tell(Kind::kReplaced, {OtherObject(path_, next.text, state_->text)}, state_->text,
                older.version());
  }
  auto changes = CompareLooks(pages, path_, one, *other, one_generation);
  H5M_RETURN_IF_ERROR(pages.error());
  if (!changes.ok()) return TellUnknown(state_->version, changes.status());
  const bool replaced = one_generation && next.address != state_->address;
  if (!replaced && changes->empty()) return true;
  const auto known = std::find_if(changes->begin(), changes->end(), [](const Change& each) {
    return each.kind != ChangeKind::kUnknown;
  });
  if (!replaced && known == changes->end()) {
    return TellUnknown(state_->version, absl::UnknownError(ToAbsl(changes->front().note)));
  }
  return Tell(replaced ? Kind::kReplaced : Kind::kChanged, *std::move(changes), state_->text,
              older.version());
}

void ObjectHistory::End(bool all) {
  if (!all || !state_ || !state_->is_there) return;
  const bool is_first = state_->version.version() == 1;
  Tell(is_first ? Kind::kAppeared : Kind::kFirstSeen, {}, state_->text, 0);
}

}  // namespace h5mirror::tools
