#include "tests/crash/promises.h"

#include <algorithm>

namespace h5mirror::store {
namespace {

template <typename T>
std::vector<T> Until(const std::vector<T>& all, size_t change_count) {
  std::vector<T> some;
  for (const T& one : all) {
    if (one.change_count > change_count) continue;
    some.push_back(one);
    some.back().change_count = 0;
  }
  return some;
}

// All of them: a caller may have heard of each by then or not.
template <typename T>
std::vector<T> AckedUntil(std::vector<T> all, size_t change_count) {
  for (T& one : all) {
    one.acked = one.acked && one.change_count <= change_count;
    one.change_count = 0;
  }
  return all;
}

std::vector<FilePromises::Droppable> DroppableAt(const std::vector<FilePromises::Droppable>& all,
                                                 size_t change_count) {
  std::vector<FilePromises::Droppable> some = Until(all, change_count);
  for (FilePromises::Droppable& one : some) {
    const bool gone = one.gone_count != SIZE_MAX && one.gone_count <= change_count;
    one.gone_count = gone ? 0 : SIZE_MAX;
  }
  return some;
}

template <typename T>
size_t CountUntil(const std::vector<T>& all, size_t change_count) {
  return std::count_if(all.begin(), all.end(),
                       [&](const T& one) { return one.change_count <= change_count; });
}

}  // namespace

CutNumber FilePromises::AckedCut() const {
  CutNumber newest = 0;
  for (const Acked& one : acked) newest = std::max(newest, one.cut);
  return newest;
}

CutNumber FilePromises::GivenCut() const {
  CutNumber newest = AckedCut();
  for (const Given& one : given) newest = std::max(newest, one.cut);
  return newest;
}

bool FilePromises::IsDroppable(VersionNumber version) const {
  return std::any_of(droppable.begin(), droppable.end(),
                     [&](const Droppable& one) { return one.version == version; });
}

bool FilePromises::IsGone(VersionNumber version) const {
  return std::any_of(droppable.begin(), droppable.end(), [&](const Droppable& one) {
    return one.version == version && one.gone_count != SIZE_MAX;
  });
}

Bytes FilePromises::GoldenOf(CutNumber cut) const {
  auto found = golden.find(cut);
  return found == golden.end() ? nullptr : found->second;
}

std::map<std::string, std::set<VersionNumber>> FilePromises::PossibleTags() const {
  std::map<std::string, std::set<VersionNumber>> possible;
  for (const TagChange& change : tag_changes) {
    auto [tag, is_new] = possible.try_emplace(change.tag, std::set<VersionNumber>{0});
    if (change.acked) tag->second.clear();
    tag->second.insert(change.version);
  }
  return possible;
}

std::set<std::string> FilePromises::PossibleNames(const std::string& name) const {
  std::set<std::string> possible{name};
  for (const NameChange& change : name_changes) {
    if (change.acked) possible.clear();
    possible.insert(change.name);
  }
  return possible;
}

Promises Promises::At(size_t change_count) const {
  Promises then;
  for (const auto& [name, file] : files) {
    then.files[name] = {file.golden,
                        file.attempts,
                        Until(file.acked, change_count),
                        Until(file.given, change_count),
                        AckedUntil(file.tag_changes, change_count),
                        DroppableAt(file.droppable, change_count),
                        AckedUntil(file.name_changes, change_count),
                        file.owner,
                        file.forked,
                        file.is_archived,
                        file.is_copied,
                        Until(file.copies, change_count)};
  }
  then.tokens = Until(tokens, change_count);
  return then;
}

Token Promises::GivenTokenMax() const {
  Token newest = 0;
  for (const GivenToken& one : tokens) newest = std::max(newest, one.token);
  return newest;
}

size_t Promises::CountAt(size_t change_count) const {
  size_t count = CountUntil(tokens, change_count);
  for (const auto& [name, file] : files) {
    count += CountUntil(file.acked, change_count) + CountUntil(file.given, change_count) +
             CountUntil(file.tag_changes, change_count) + CountUntil(file.copies, change_count) +
             CountUntil(file.name_changes, change_count);
    for (const FilePromises::Droppable& one : file.droppable) {
      count += one.gone_count <= change_count;
    }
  }
  return count;
}

}  // namespace h5mirror::store
