#include "h5diff/walk.h"

#include <algorithm>
#include <map>

#include "base/status_macros.h"
#include "base/strings.h"
#include "hdf5/format.h"

namespace h5mirror::tools {
namespace {

using hdf5::Handle;

constexpr uint64_t kHeaderBytesMax = 1 << 20;
constexpr size_t kNameBytesMax = 64 << 10;
constexpr uint64_t kNamePartBytes = 64;
constexpr int kContinuationsMax = 100;
// An object that leads to others is looked at first, even if it lies up to this many times further
// from a change than one that does not. It was made before the objects that it leads to.
constexpr uint64_t kLeadsOn = 16;

absl::StatusOr<OpenObject> OpenRoot(hid_t file) {
  H5M_ASSIGN_OR_RETURN(const Handle root,
                       hdf5::Own(H5Oopen(file, "/", H5P_DEFAULT), "open the root group"));
  H5M_ASSIGN_OR_RETURN(const uint64_t address, AddressOf(root.get()));
  return OpenAt(file, address, "/");
}

}  // namespace

absl::Status Walk::Run() {
  H5M_RETURN_IF_ERROR(Prepare());
  for (bool again = true; again;) {
    H5M_RETURN_IF_ERROR(Loop());
    FindMoves();
    again = !pairs_.empty();
  }
  ReportLone();
  return context_.pages.error();
}

absl::Status Walk::Prepare() {
  H5M_ASSIGN_OR_RETURN(const OpenObject one, OpenRoot(files_[0]->id()));
  H5M_ASSIGN_OR_RETURN(const OpenObject other, OpenRoot(files_[1]->id()));
  pairs_.push_back({"/", one.address, other.address});
  for (const hdf5::SourceFile* file : files_) {
    H5M_ASSIGN_OR_RETURN(const Handle fcpl,
                         hdf5::Own(H5Fget_create_plist(file->id()), "read the superblock"));
    size_t address_bytes = 0, length_bytes = 0;
    unsigned shared_indexes = 0;
    H5Pget_sizes(fcpl.get(), &address_bytes, &length_bytes);
    H5Pget_sym_k(fcpl.get(), &tree_k_, &symbols_k_);
    H5Pget_shared_mesg_nindexes(fcpl.get(), &shared_indexes);
    // Shared messages belong to no one object.
    if (address_bytes != 8 || length_bytes != 8 || shared_indexes > 0) context_.evidence.Forget();
  }
  // The superblock has the roots' addresses; the rest of it is no content.
  H5M_ASSIGN_OR_RETURN(const std::string begin, ReadBytes(Side::kNew, 0, 9));
  context_.evidence.Explain({context_.base_offset, begin[8] < 2 ? 96u + 4u * begin[8] : 48u});
  return absl::OkStatus();
}

absl::Status Walk::Loop() {
  while (true) {
    if (!pairs_.empty()) {
      const Pair pair = std::move(pairs_.back());
      pairs_.pop_back();
      H5M_RETURN_IF_ERROR(ComparePair(pair));
      continue;
    }
    if (context_.evidence.complete() || items_.empty()) {
      if (types_.empty()) return absl::OkStatus();
      pairs_.swap(types_);
      continue;
    }
    Item item = items_.top();
    items_.pop();
    // The bytes near it may have been explained since: costs only rise.
    if (context_.evidence.known()) {
      item.cost = CostOf(item);
      if (!items_.empty() && items_.top().cost < item.cost) {
        items_.push(std::move(item));
        continue;
      }
    }
    H5M_RETURN_IF_ERROR(Visit(item));
  }
}

absl::Status Walk::ComparePair(const Pair& pair) {
  if (context_.exclude.Covers(pair.path)) return PassBy(pair);
  if (!compared_.insert({pair.old_address, pair.new_address}).second) return absl::OkStatus();
  ++objects_compared_;
  context_.evidence.Begin();
  auto one = OpenAt(files_[0]->id(), pair.old_address, pair.path);
  if (!one.ok()) return ReportUnknown(pair.path, one.status());
  auto other = OpenAt(files_[1]->id(), pair.new_address, pair.path);
  if (!other.ok()) return ReportUnknown(pair.path, other.status());
  // An object that was put in the place of another one may have been there before, under a name of
  // its own that is still to be looked at.
  explain_ =
      pair.old_address == pair.new_address || (one->link_count == 1 && other->link_count == 1);
  if (one->kind != other->kind) {
    context_.evidence.Drop();
    Link link;
    link.address = pair.old_address;
    H5M_RETURN_IF_ERROR(TakeLone(Side::kOld, pair.path, link));
    link.address = pair.new_address;
    return TakeLone(Side::kNew, pair.path, link);
  }
  return CompareOpen(pair, *one, *other);
}

absl::Status Walk::CompareOpen(const Pair& pair, const OpenObject& one, const OpenObject& other) {
  H5M_RETURN_IF_ERROR(CompareObjects(context_, pair.path, one, other));
  if (other.kind == ObjectKind::kGroup) {
    below_moved_ = moved_.contains(pair.new_address);
    bool noted = false;
    if (!below_moved_) {
      H5M_ASSIGN_OR_RETURN(noted, NoteTree(pair));
    }
    if (!noted) H5M_RETURN_IF_ERROR(CompareLinks(pair.path, one.id.get(), other.id.get()));
    below_moved_ = false;
  }
  for (const auto& [old_type, new_type] : context_.types) {
    types_.push_back({pair.path + " (its type)", old_type, new_type});
  }
  context_.types.clear();
  return EndScope();
}

absl::Status Walk::PassBy(const Pair& pair) {
  const std::pair addresses(pair.old_address, pair.new_address);
  if (!context_.evidence.known() || compared_.contains(addresses) ||
      !passed_.insert(addresses).second) {
    return absl::OkStatus();
  }
  context_.met_type = false;
  context_.evidence.Begin();
  const auto one = OpenAt(files_[0]->id(), pair.old_address, pair.path);
  const auto other = OpenAt(files_[1]->id(), pair.new_address, pair.path);
  // Unreadable bytes stay unexplained: then everything else is looked at.
  if (!one.ok() || !other.ok()) return DropScope();
  const bool is_group = one->kind == ObjectKind::kGroup || other->kind == ObjectKind::kGroup;
  const bool alone = one->link_count == 1 && other->link_count == 1;
  // Objects below such a group may have another path, by which they are compared.
  if (is_group && !alone) {
    context_.evidence.Forget();
    return DropScope();
  }
  if (one->kind != other->kind) {
    H5M_RETURN_IF_ERROR(DropScope());
    H5M_RETURN_IF_ERROR(TakeLoneObjects(Side::kOld, pair.path, pair.old_address));
    return TakeLoneObjects(Side::kNew, pair.path, pair.new_address);
  }
  H5M_RETURN_IF_ERROR(ExplainObject(context_, Side::kOld, *one));
  H5M_RETURN_IF_ERROR(ExplainObject(context_, Side::kNew, *other));
  explain_ = alone && !context_.met_type;
  if (is_group) {
    H5M_ASSIGN_OR_RETURN(const bool noted, NoteTree(pair));
    if (!noted) H5M_RETURN_IF_ERROR(CompareLinks(pair.path, one->id.get(), other->id.get()));
  }
  return EndScope();
}

absl::Status Walk::DropScope() {
  context_.evidence.Drop();
  return context_.pages.error();
}

absl::Status Walk::EndScope() {
  if (explain_) return context_.evidence.End();
  context_.evidence.Drop();
  return absl::OkStatus();
}

absl::StatusOr<std::string> Walk::ReadBytes(Side side, uint64_t address, uint64_t length) {
  std::string bytes(length, '\0');
  H5M_RETURN_IF_ERROR(
      context_.pages.Read(side, context_.base_offset + address, absl::MakeSpan(bytes)));
  return bytes;
}

absl::StatusOr<std::optional<hdf5::SymbolTable>> Walk::FindSymbolTable(Side side,
                                                                       uint64_t address) {
  H5M_ASSIGN_OR_RETURN(const std::string prefix, ReadBytes(side, address, 16));
  const auto first = hdf5::FirstMessages(address, prefix);
  if (!first) return std::nullopt;
  std::vector<Extent> chunks{*first};
  for (size_t i = 0; i < chunks.size() && i < kContinuationsMax; ++i) {
    if (chunks[i].length > kHeaderBytesMax) break;
    H5M_ASSIGN_OR_RETURN(const std::string messages,
                         ReadBytes(side, chunks[i].offset, chunks[i].length));
    const hdf5::HeaderMessages found = hdf5::ParseMessages(messages);
    if (found.symbol_table) return found.symbol_table;
    chunks.insert(chunks.end(), found.continuations.begin(), found.continuations.end());
  }
  return std::nullopt;
}

absl::StatusOr<bool> Walk::NoteTree(const Pair& pair) {
  if (!context_.evidence.known() || pair.old_address != pair.new_address) return false;
  H5M_ASSIGN_OR_RETURN(const auto one, FindSymbolTable(Side::kOld, pair.old_address));
  H5M_ASSIGN_OR_RETURN(const auto other, FindSymbolTable(Side::kNew, pair.new_address));
  if (!one || !other || *one != *other) return false;
  const uint64_t heap_address = other->heap_address;
  H5M_ASSIGN_OR_RETURN(const std::string bytes,
                       ReadBytes(Side::kNew, heap_address, hdf5::kLocalHeapBytes));
  const auto heap = hdf5::ParseLocalHeap(bytes);
  const uint64_t base = context_.base_offset;
  if (!heap || context_.evidence.Touches({base + heap_address, hdf5::kLocalHeapBytes}) ||
      context_.evidence.Touches({base + heap->data_address, heap->data_bytes})) {
    return false;
  }
  groups_.push_back({pair.path, pair.new_address, *heap});
  Push({0, Item::What::kTree, other->tree_address, static_cast<uint32_t>(groups_.size() - 1)});
  return true;
}

uint64_t Walk::CostOf(const Item& item) const {
  if (!context_.evidence.known()) return item.address;  // In the order of the file, to read ahead.
  const uint64_t distance = context_.evidence.Distance(context_.base_offset + item.address);
  return item.what == Item::What::kObject ? distance : distance / kLeadsOn;
}

void Walk::Push(Item item) {
  item.cost = CostOf(item);
  items_.push(std::move(item));
}

absl::Status Walk::Visit(const Item& item) {
  Group& group = groups_[item.group];
  if (item.what == Item::What::kObject || item.what == Item::What::kGroup) {
    if (compared_.contains({item.address, item.address})) return absl::OkStatus();
    H5M_ASSIGN_OR_RETURN(const std::string name, NameOf(item, group));
    return ComparePair({Child(item.group, name), item.address, item.address});
  }
  return group.compared ? absl::OkStatus() : VisitNode(item, group);
}

absl::StatusOr<std::string> Walk::NameOf(const Item& item, const Group& group) {
  if (!item.name.empty()) return item.name;
  std::string name;
  while (name.size() < kNameBytesMax && item.name_offset + name.size() < group.heap.data_bytes) {
    const uint64_t at = item.name_offset + name.size();
    H5M_ASSIGN_OR_RETURN(const std::string part,
                         ReadBytes(Side::kNew, group.heap.data_address + at,
                                   std::min<uint64_t>(kNamePartBytes, group.heap.data_bytes - at)));
    const auto end = std::find(part.begin(), part.end(), '\0');
    name.append(part.begin(), end);
    if (end != part.end()) break;
  }
  return name;
}

absl::Status Walk::VisitNode(const Item& item, Group& group) {
  const bool tree = item.what == Item::What::kTree;
  const uint64_t length = tree ? hdf5::TreeNodeBytes(tree_k_) : hdf5::SymbolNodeBytes(symbols_k_);
  if (context_.evidence.Touches({context_.base_offset + item.address, length})) {
    return CompareNotedLinks(group);
  }
  H5M_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(Side::kNew, item.address, length));
  if (tree) {
    const auto node = hdf5::ParseTreeNode(bytes);
    if (!node) return CompareNotedLinks(group);
    const auto below = node->level == 0 ? Item::What::kSymbols : Item::What::kTree;
    for (const uint64_t child : node->children) Push({0, below, child, item.group});
    return absl::OkStatus();
  }
  const auto symbols = hdf5::ParseSymbols(bytes);
  if (!symbols) return CompareNotedLinks(group);
  for (const hdf5::Symbol& symbol : *symbols) {
    if (!symbol.is_object) continue;
    const auto what = symbol.is_group ? Item::What::kGroup : Item::What::kObject;
    Push({0, what, symbol.address, item.group, symbol.name_offset});
  }
  return absl::OkStatus();
}

// Part of the group's tree has changed, or is not what it seemed: all links are compared.
absl::Status Walk::CompareNotedLinks(Group& group) {
  group.compared = true;
  explain_ = true;
  const std::string path = group.path;
  const uint64_t address = group.address;
  context_.evidence.Begin();
  auto one = OpenAt(files_[0]->id(), address, path);
  if (!one.ok()) return ReportUnknown(path, one.status());
  auto other = OpenAt(files_[1]->id(), address, path);
  if (!other.ok()) return ReportUnknown(path, other.status());
  H5M_RETURN_IF_ERROR(CompareLinks(path, one->id.get(), other->id.get()));
  return context_.evidence.End();
}

absl::Status Walk::CompareLinks(const std::string& path, hid_t one, hid_t other) {
  auto before = ReadLinks(one);
  if (!before.ok()) return ReportUnknown(path, before.status());
  auto after = ReadLinks(other);
  if (!after.ok()) return ReportUnknown(path, after.status());
  // The group's own bytes are read now. The targets of its links do not belong to it.
  H5M_RETURN_IF_ERROR(EndScope());
  const uint32_t group = AddGroup(path);
  auto a = before->begin(), b = after->begin();
  while (a != before->end() || b != after->end()) {
    if (b == after->end() || (a != before->end() && a->name < b->name)) {
      H5M_RETURN_IF_ERROR(TakeLone(Side::kOld, Child(group, a->name), *a));
      ++a;
    } else if (a == before->end() || b->name < a->name) {
      H5M_RETURN_IF_ERROR(TakeLone(Side::kNew, Child(group, b->name), *b));
      ++b;
    } else {
      H5M_RETURN_IF_ERROR(CompareLink(group, *a++, *b++));
    }
  }
  context_.evidence.Begin();
  return absl::OkStatus();
}

absl::Status Walk::CompareLink(uint32_t group, const Link& one, const Link& other) {
  const std::string path = Child(group, other.name);
  if (one.type == H5L_TYPE_HARD && other.type == H5L_TYPE_HARD) {
    // Excluded ones too: they may have to be passed by.
    if (below_moved_) moved_.insert(other.address);
    if (one.address != other.address || below_moved_) {
      pairs_.push_back({path, one.address, other.address});
    } else if (!compared_.contains({one.address, other.address})) {
      Push({0, Item::What::kObject, other.address, group, 0, other.name});
    }
    return absl::OkStatus();
  }
  if (one.type != other.type) {
    H5M_RETURN_IF_ERROR(TakeLone(Side::kOld, path, one));
    return TakeLone(Side::kNew, path, other);
  }
  if (one.value == other.value || context_.exclude.Covers(path)) return absl::OkStatus();
  Change change;
  change.path = path;
  change.object = LinkText(other.type);
  change.what = "link";
  change.old_value = one.value;
  change.new_value = other.value;
  change.had_old = change.has_new = true;
  context_.sink(std::move(change));
  return absl::OkStatus();
}

absl::Status Walk::TakeLone(Side side, const std::string& path, const Link& link) {
  const bool excluded = context_.exclude.Covers(path);
  if (!excluded) lone_.push_back({side, path, link});
  if (link.type != H5L_TYPE_HARD) return absl::OkStatus();
  if (excluded && !context_.evidence.known()) return absl::OkStatus();
  return TakeLoneObjects(side, path, link.address);
}

// The object, and all below it.
absl::Status Walk::TakeLoneObjects(Side side, const std::string& path, uint64_t address) {
  struct Waiting {
    std::string path;
    uint64_t address;
    bool alone;
  };
  std::vector<Waiting> waiting{{path, address, true}};
  while (!waiting.empty()) {
    const auto [at, where, alone] = std::move(waiting.back());
    waiting.pop_back();
    const std::pair<int, uint64_t> key{static_cast<int>(IndexOf(side)), where};
    if (lone_objects_.contains(key)) continue;
    auto object = TakeLoneObject(side, at, where, alone);
    if (!object.ok()) {
      H5M_RETURN_IF_ERROR(ReportUnknown(at, object.status()));
      continue;
    }
    for (auto below = object->links.rbegin(); below != object->links.rend(); ++below) {
      if (below->type != H5L_TYPE_HARD) continue;
      waiting.push_back(
          {StrCat(at == "/" ? "" : at, "/", below->name), below->address, object->alone});
    }
    lone_objects_[key] = std::move(*object);
  }
  return absl::OkStatus();
}

absl::StatusOr<Walk::LoneObject> Walk::TakeLoneObject(Side side, const std::string& path,
                                                      uint64_t address, bool alone) {
  context_.met_type = false;
  context_.evidence.Begin();
  H5M_ASSIGN_OR_RETURN(const OpenObject object, OpenAt(files_[IndexOf(side)]->id(), address, path));
  if (!context_.exclude.Covers(path)) ++objects_compared_;
  H5M_RETURN_IF_ERROR(ExplainObject(context_, side, object));
  LoneObject lone{object.kind, DescribeObject(object)};
  if (object.kind == ObjectKind::kGroup) {
    H5M_ASSIGN_OR_RETURN(lone.links, ReadLinks(object.id.get()));
  }
  // With a further name, or a type that others use, it may be in both versions, and all below it.
  lone.alone = alone && object.link_count == 1;
  explain_ = lone.alone && !context_.met_type;
  H5M_RETURN_IF_ERROR(EndScope());
  return lone;
}

// Null where it could not be read, or is no object.
Walk::LoneObject* Walk::FindLoneObject(Side side, const Link& link) {
  if (link.type != H5L_TYPE_HARD) return nullptr;
  const auto found = lone_objects_.find({static_cast<int>(IndexOf(side)), link.address});
  return found == lone_objects_.end() ? nullptr : &found->second;
}

void Walk::FindMoves() {
  if (!context_.one_file) return;
  std::sort(lone_.begin(), lone_.end(),
            [](const Lone& a, const Lone& b) { return a.path < b.path; });
  std::map<uint64_t, const Lone*> gone;
  for (const Lone& lone : lone_) {
    if (lone.side == Side::kOld && FindLoneObject(lone.side, lone.link) != nullptr) {
      gone.emplace(lone.link.address, &lone);
    }
  }
  absl::flat_hash_set<const Lone*> moved;
  for (const Lone& lone : lone_) {
    LoneObject* object = lone.side == Side::kNew ? FindLoneObject(lone.side, lone.link) : nullptr;
    const auto found = object == nullptr ? gone.end() : gone.find(lone.link.address);
    if (found == gone.end()) continue;
    const Lone& before = *found->second;
    if (FindLoneObject(before.side, before.link)->kind != object->kind) continue;
    if (before.path == lone.path) continue;
    Change change;
    change.kind = ChangeKind::kMoved;
    change.path = lone.path;
    change.object = KindText(object->kind);
    change.old_value = before.path;
    change.new_value = object->text;
    context_.sink(std::move(change));
    pairs_.push_back({lone.path, lone.link.address, lone.link.address});
    moved_.insert(lone.link.address);
    object->listed = true;
    moved.insert({&lone, &before});
    gone.erase(found);
  }
  std::erase_if(lone_, [&](const Lone& lone) { return moved.contains(&lone); });
}

void Walk::ReportLone() {
  for (const Lone& lone : lone_) ReportLone(lone);
  lone_.clear();
}

// The link, and all below what it leads to, under the first name of each.
void Walk::ReportLone(const Lone& lone) {
  std::vector<std::pair<std::string, Link>> waiting{{lone.path, lone.link}};
  while (!waiting.empty()) {
    const auto [path, link] = std::move(waiting.back());
    waiting.pop_back();
    if (context_.exclude.Covers(path)) continue;
    const bool added = lone.side == Side::kNew;
    Change change;
    change.kind = added ? ChangeKind::kAdded : ChangeKind::kRemoved;
    change.path = path;
    std::string text;
    if (link.type != H5L_TYPE_HARD) {
      change.object = LinkText(link.type);
      text = StrCat(LinkText(link.type), " to ", link.value);
    } else {
      LoneObject* object = FindLoneObject(lone.side, link);
      if (object == nullptr) continue;  // Could not be read, as was reported.
      change.object = KindText(object->kind);
      text = StrCat(object->text, object->listed ? " (another name of one listed)" : "");
      if (!std::exchange(object->listed, true)) {
        for (auto below = object->links.rbegin(); below != object->links.rend(); ++below) {
          waiting.push_back({StrCat(path == "/" ? "" : path, "/", below->name), *below});
        }
      }
    }
    (added ? change.new_value : change.old_value) = std::move(text);
    (added ? change.has_new : change.had_old) = true;
    context_.sink(std::move(change));
  }
}

absl::Status Walk::ReportUnknown(const std::string& path, const absl::Status& status) {
  H5M_RETURN_IF_ERROR(context_.pages.error());
  if (context_.exclude.Covers(path)) return DropScope();
  Change change;
  change.kind = ChangeKind::kUnknown;
  change.path = path;
  change.object = "object";
  change.what = "object";
  change.note = ToStd(status.message());
  context_.sink(std::move(change));
  return context_.evidence.End();
}

uint32_t Walk::AddGroup(const std::string& path) {
  groups_.push_back({path, 0, {}, true});
  return static_cast<uint32_t>(groups_.size() - 1);
}

std::string Walk::Child(uint32_t group, const std::string& name) const {
  const std::string& path = groups_[group].path;
  return StrCat(path == "/" ? "" : path, "/", name);
}

}  // namespace h5mirror::tools
