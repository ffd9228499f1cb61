#include "h5edit/executor.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "h5edit/ddl.h"
#include "h5edit/h5_types.h"
#include "h5edit/memory_values.h"
#include "hdf5/byte_driver.h"

namespace h5mirror::edit {

using hdf5::Check;
using hdf5::Handle;
using hdf5::Own;

namespace {

const char* KindName(H5I_type_t kind) {
  return kind == H5I_GROUP ? "a group" : kind == H5I_DATASET ? "a dataset" : "a committed datatype";
}

// Whether the attribute may be too large for its message in the object's header, by another name.
bool IsLarge(hid_t attribute, const std::string& name) {
  constexpr size_t kSurelyFits = 60'000;  // Of 65535 bytes.
  const Handle type(H5Aget_type(attribute));
  return H5Aget_storage_size(attribute) + EncodedBytes(type.get()) + name.size() > kSurelyFits;
}

// The values of an attribute in memory, as they are in the file. Owns what they point to.
class RawValues {
 public:
  RawValues(Handle type, Handle space)
      : type_(std::move(type)),
        space_(std::move(space)),
        bytes_(
            static_cast<size_t>(std::max<hssize_t>(H5Sget_simple_extent_npoints(space_.get()), 0)) *
                H5Tget_size(type_.get()),
            '\0') {}
  RawValues(const RawValues&) = delete;
  ~RawValues() {
    if (filled_) hdf5::Reclaim(type_.get(), space_.get(), bytes_.data()).IgnoreError();
  }
  absl::Status Read(hid_t attribute) {
    if (bytes_.empty()) return absl::OkStatus();
    H5M_RETURN_IF_ERROR(
        Check(H5Aread(attribute, type_.get(), bytes_.data()), "read the attribute"));
    filled_ = true;
    return absl::OkStatus();
  }
  absl::Status Write(hid_t attribute) const {
    if (bytes_.empty()) return absl::OkStatus();
    return Check(H5Awrite(attribute, type_.get(), bytes_.data()), "write the attribute");
  }
  hid_t type() const { return type_.get(); }
  hid_t space() const { return space_.get(); }

 private:
  Handle type_;
  Handle space_;
  std::string bytes_;
  bool filled_ = false;
};

}  // namespace

absl::StatusOr<Executor> Executor::Make(hid_t file) {
  Executor executor(file);
  H5M_ASSIGN_OR_RETURN(executor.access_, Own(H5Pcreate(H5P_LINK_ACCESS), "make a property list"));
  H5M_RETURN_IF_ERROR(Check(H5Pset_elink_acc_flags(executor.access_.get(), H5F_ACC_RDONLY),
                            "make a property list"));
  return executor;
}

absl::Status Executor::Fail(size_t at, absl::Status status) {
  blame_ = at;
  absl::Status cause = hdf5::TakeDriverError();
  return cause.ok() ? status : cause;
}

absl::Status Executor::Fail(size_t at, const std::string& message) {
  return Fail(at, absl::FailedPreconditionError(message));
}

absl::StatusOr<Handle> Executor::Open(const std::string& path, size_t at) {
  Handle object(H5Oopen(file_, path.c_str(), access_.get()));
  if (object.valid()) return object;
  hdf5::ErrorOf(path).IgnoreError();  // Shows the stack where that is asked for, and clears it.
  return Fail(at, absl::NotFoundError(StrCat("no such object ", path)));
}

absl::Status Executor::CheckIsOurs(hid_t object, const std::string& path, size_t at) {
  H5O_info2_t theirs, ours;
  if (H5Oget_info3(object, &theirs, H5O_INFO_BASIC) < 0 ||
      H5Oget_info3(file_, &ours, H5O_INFO_BASIC) < 0) {
    return Fail(at, hdf5::ErrorOf(path));
  }
  if (theirs.fileno == ours.fileno) return absl::OkStatus();
  std::string name(static_cast<size_t>(std::max<ssize_t>(H5Fget_name(object, nullptr, 0), 0)) + 1,
                   '\0');
  H5Fget_name(object, name.data(), name.size());
  return Fail(at, StrCat(path, " lies in another file, ", name.c_str(),
                         ", to which an external link leads: edit that file"));
}

absl::StatusOr<Handle> Executor::OpenTarget(const Target& target, KindRule rule) {
  H5M_ASSIGN_OR_RETURN(Handle object, Open(target.object, target.object_at));
  const H5I_type_t kind = H5Iget_type(object.get());
  const bool is_bare_pair =
      rule == KindRule::kPairIsData && !target.is_joined && target.word == ObjectWord::kNone;
  const bool wants_dataset = target.word == ObjectWord::kDataset || is_bare_pair;
  const bool wants_group = target.word == ObjectWord::kGroup;
  if ((wants_dataset && kind != H5I_DATASET) || (wants_group && kind != H5I_GROUP)) {
    const char* const hint = is_bare_pair && kind == H5I_GROUP ? "; write GROUP before it" : "";
    return Fail(target.object_at, StrCat(target.object, " is ", KindName(kind), ", not ",
                                         wants_group ? "a group" : "a dataset", hint));
  }
  return object;
}

absl::StatusOr<bool> Executor::HasAttribute(hid_t object, const std::string& name) {
  const htri_t exists = H5Aexists(object, name.c_str());
  if (exists < 0) return hdf5::ErrorOf(StrCat("look for attribute ", name));
  return exists > 0;
}

absl::Status Executor::CheckFree(hid_t object, const Target& target) {
  H5M_ASSIGN_OR_RETURN(const bool exists, HasAttribute(object, target.attribute));
  if (!exists) return absl::OkStatus();
  return Fail(target.attribute_at,
              absl::AlreadyExistsError(StrCat("attribute ", target.attribute, " of ", target.object,
                                              " exists already")));
}

absl::Status Executor::CheckThere(hid_t object, const Target& target) {
  H5M_ASSIGN_OR_RETURN(const bool exists, HasAttribute(object, target.attribute));
  if (exists) return absl::OkStatus();
  return Fail(target.attribute_at, absl::NotFoundError(StrCat("no attribute ", target.attribute,
                                                              " in ", target.object)));
}

absl::StatusOr<std::string> Executor::NameBeside(hid_t object, const Target& target) {
  std::string name = "h5edit-new";
  name.resize(std::max(name.size(), target.attribute.size()), '-');
  while (name.size() <= kAttributeNameMax) {
    H5M_ASSIGN_OR_RETURN(const bool exists, HasAttribute(object, name));
    if (!exists) return name;
    name += '-';
  }
  return Fail(target.attribute_at, "no name is free for the new attribute until it has its own");
}

absl::Status Executor::Run(const Statement& statement, std::string* output) {
  blame_ = statement.begin;
  if (statement.target.pattern != Target::Pattern::kNone) return DeleteMatches(statement);
  switch (statement.verb) {
    case Verb::kCreateAttribute:
      return CreateAttribute(statement);
    case Verb::kDeleteAttribute:
      return DeleteAttribute(statement);
    case Verb::kModifyAttribute:
      return ModifyAttribute(statement);
    case Verb::kAppendAttribute:
      return AppendAttribute(statement);
    case Verb::kAppendDataset:
      return AppendDataset(statement);
    case Verb::kRenameAttribute:
      return RenameAttribute(statement);
    case Verb::kCopyAttribute:
      return CopyAttribute(statement);
    case Verb::kShow:
      return Show(statement, output);
    case Verb::kList:
      return List(statement, output);
    case Verb::kCreateGroup:
      return CreateGroup(statement);
    case Verb::kCreateDataset:
      return CreateDataset(statement);
    case Verb::kModifyDataset:
      return ModifyDataset(statement);
    case Verb::kDeleteObject:
      return DeleteObject(statement);
    case Verb::kMoveObject:
      return MoveObject(statement);
    case Verb::kLinkHard:
    case Verb::kLinkSoft:
    case Verb::kLinkExternal:
      return Link(statement);
  }
  return absl::InternalError("a command that is not known");
}

absl::Status Executor::CreateAttribute(const Statement& statement) {
  const Target& target = statement.target;
  H5M_ASSIGN_OR_RETURN(const Handle object, OpenTarget(target, KindRule::kPairIsData));
  H5M_RETURN_IF_ERROR(CheckIsOurs(object.get(), target.object, target.object_at));
  H5M_ASSIGN_OR_RETURN(const bool exists, HasAttribute(object.get(), target.attribute));
  if (!exists) return MakeAttribute(object.get(), target.attribute, statement);
  if (!statement.or_replace) return CheckFree(object.get(), target);
  // Under another name first, so that the old one stays where the new one cannot be.
  H5M_ASSIGN_OR_RETURN(const std::string beside, NameBeside(object.get(), target));
  H5M_RETURN_IF_ERROR(MakeAttribute(object.get(), beside, statement));
  const std::string what = StrCat("replace attribute ", target.attribute);
  H5M_RETURN_IF_ERROR(Check(H5Adelete(object.get(), target.attribute.c_str()), what));
  return Check(H5Arename(object.get(), beside.c_str(), target.attribute.c_str()), what);
}

// `name` is that of the statement, or one that it has on the way.
absl::Status Executor::MakeAttribute(hid_t object, const std::string& name,
                                     const Statement& statement) {
  const Definition& definition = statement.definition;
  const std::string what = StrCat("create attribute ", statement.target.attribute);
  Scene scene = TheScene();
  auto type = MakeType(definition.type, scene);
  if (!type.ok()) return Fail(scene.blame.value_or(definition.type.at), type.status());
  H5M_ASSIGN_OR_RETURN(const Handle space, MakeSpace(definition.space));
  H5M_ASSIGN_OR_RETURN(const Handle list, NameList(H5P_ATTRIBUTE_CREATE, name));
  const bool has_values = definition.space.kind != SpaceSpec::Kind::kNull;
  std::optional<MemoryValues> values;
  if (has_values) {
    const auto count = static_cast<uint64_t>(H5Sget_simple_extent_npoints(space.get()));
    H5M_ASSIGN_OR_RETURN(values,
                         ValuesOf(type->get(), *definition.values, count, definition.type.at));
  }
  H5M_ASSIGN_OR_RETURN(
      Handle attribute,
      NewAttribute({object, name, type->get(), space.get(), list.get()}, definition.type.at, what));
  if (!has_values) return absl::OkStatus();
  const absl::Status written =
      Check(H5Awrite(attribute.get(), values->type(), values->data()), what);
  if (written.ok()) return written;
  attribute = Handle();
  H5Adelete(object, name.c_str());  // An attribute without values is worse than none.
  H5Eclear2(H5E_DEFAULT);
  return Fail(definition.type.at, written);
}

absl::Status Executor::DeleteAttribute(const Statement& statement) {
  const Target& target = statement.target;
  auto object = OpenTarget(target, KindRule::kPairIsData);
  if (statement.if_exists && absl::IsNotFound(object.status())) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(object.status());
  H5M_RETURN_IF_ERROR(CheckIsOurs(object->get(), target.object, target.object_at));
  const absl::Status there = CheckThere(object->get(), target);
  if (statement.if_exists && absl::IsNotFound(there)) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(there);
  return Check(H5Adelete(object->get(), target.attribute.c_str()),
               StrCat("delete attribute ", target.attribute));
}

absl::Status Executor::RenameAttribute(const Statement& statement) {
  const Target& target = statement.target;
  H5M_ASSIGN_OR_RETURN(const Handle object, OpenTarget(target, KindRule::kPairIsData));
  H5M_RETURN_IF_ERROR(CheckIsOurs(object.get(), target.object, target.object_at));
  H5M_RETURN_IF_ERROR(CheckThere(object.get(), target));
  Target renamed = target;
  renamed.attribute = statement.new_name;
  renamed.attribute_at = statement.new_name_at;
  H5M_RETURN_IF_ERROR(CheckFree(object.get(), renamed));
  const std::string what = StrCat("rename attribute ", target.attribute);
  Handle old(H5Aopen(object.get(), target.attribute.c_str(), H5P_DEFAULT));
  if (!old.valid()) return Fail(target.attribute_at, hdf5::ErrorOf(what));
  const bool may_be_too_large =
      statement.new_name.size() > target.attribute.size() && IsLarge(old.get(), statement.new_name);
  if (may_be_too_large) {
    // HDF5 would take the old one away first, and find that there is no room for the new one then.
    H5M_ASSIGN_OR_RETURN(const Handle list, Own(H5Aget_create_plist(old.get()), what));
    H5M_RETURN_IF_ERROR(MakeCopy(old.get(), object.get(), renamed, list.get(), what));
  }
  old = Handle();
  const herr_t done = may_be_too_large ? H5Adelete(object.get(), target.attribute.c_str())
                                       : H5Arename(object.get(), target.attribute.c_str(),
                                                   statement.new_name.c_str());
  return Check(done, what);
}

absl::Status Executor::CopyAttribute(const Statement& statement) {
  const Target &from = statement.target, &to = statement.destination;
  H5M_ASSIGN_OR_RETURN(const Handle source, OpenTarget(from, KindRule::kAny));
  H5M_RETURN_IF_ERROR(CheckThere(source.get(), from));
  H5M_ASSIGN_OR_RETURN(const Handle target, OpenTarget(to, KindRule::kAny));
  H5M_RETURN_IF_ERROR(CheckIsOurs(target.get(), to.object, to.object_at));
  H5M_RETURN_IF_ERROR(CheckFree(target.get(), to));
  const std::string what = StrCat("copy attribute ", from.attribute);
  H5M_ASSIGN_OR_RETURN(const Handle old,
                       Own(H5Aopen(source.get(), from.attribute.c_str(), H5P_DEFAULT), what));
  H5M_ASSIGN_OR_RETURN(const Handle type, Own(H5Aget_type(old.get()), what));
  const bool has_references = H5Tdetect_class(type.get(), H5T_REFERENCE) > 0;
  if (has_references && !CheckIsOurs(source.get(), from.object, from.object_at).ok()) {
    return Fail(from.attribute_at,
                StrCat("attribute ", from.attribute, " of ", from.object,
                       " holds references, which lead to objects of the file that it lies in; here "
                       "they would lead to others"));
  }
  H5M_ASSIGN_OR_RETURN(const Handle list, NameList(H5P_ATTRIBUTE_CREATE, to.attribute));
  return MakeCopy(old.get(), target.get(), to, list.get(), what);
}

absl::Status Executor::MakeCopy(hid_t attribute, hid_t object, const Target& to, hid_t list,
                                const std::string& what) {
  H5M_ASSIGN_OR_RETURN(Handle type, Own(H5Aget_type(attribute), what));
  H5M_ASSIGN_OR_RETURN(Handle space, Own(H5Aget_space(attribute), what));
  RawValues values(std::move(type), std::move(space));
  H5M_RETURN_IF_ERROR(values.Read(attribute));
  H5M_ASSIGN_OR_RETURN(Handle made,
                       NewAttribute({object, to.attribute, values.type(), values.space(), list},
                                    to.attribute_at, what));
  absl::Status written = values.Write(made.get());
  if (written.ok()) return written;
  made = Handle();
  H5Adelete(object, to.attribute.c_str());
  H5Eclear2(H5E_DEFAULT);
  return Fail(to.attribute_at, written);
}

absl::Status Executor::Show(const Statement& statement, std::string* output) {
  const Target& target = statement.target;
  H5M_ASSIGN_OR_RETURN(const Handle object, OpenTarget(target, KindRule::kAny));
  auto text = AttributeDdl(object.get(), target.attribute);
  if (absl::IsNotFound(text.status()))
    return Fail(target.attribute_at,
                StrCat("no attribute ", target.attribute, " in ", target.object));
  H5M_RETURN_IF_ERROR(text.status());
  *output += *text;
  return absl::OkStatus();
}

absl::Status Executor::List(const Statement& statement, std::string* output) {
  H5M_ASSIGN_OR_RETURN(const Handle object,
                       Open(statement.target.object, statement.target.object_at));
  H5M_ASSIGN_OR_RETURN(const std::string text,
                       ObjectListing(object.get(), statement.target.object));
  *output += text;
  return absl::OkStatus();
}

std::string Executor::Touched(const Target& target, const std::string& name) {
  if (name.empty()) return {};
  std::string text;
  if (const Handle object(H5Oopen(file_, target.object.c_str(), access_.get())); object.valid()) {
    text = AttributeDdl(object.get(), name).value_or(std::string());
  }
  H5Eclear2(H5E_DEFAULT);
  return text;
}

std::string Executor::TouchedBefore(const Statement& statement) {
  if (statement.target.pattern != Target::Pattern::kNone) return TouchedMatches(statement);
  const Target& target =
      statement.verb == Verb::kCopyAttribute ? statement.destination : statement.target;
  return Changes(statement.verb) ? Touched(target, target.attribute) : std::string();
}

std::string Executor::TouchedAfter(const Statement& statement) {
  if (statement.verb == Verb::kRenameAttribute)
    return Touched(statement.target, statement.new_name);
  return TouchedBefore(statement);
}

}  // namespace h5mirror::edit
