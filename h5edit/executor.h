// Statements, done to an open HDF5 file.
#ifndef H5MIRROR_H5EDIT_EXECUTOR_H_
#define H5MIRROR_H5EDIT_EXECUTOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "h5edit/ast.h"
#include "h5edit/h5_types.h"
#include "h5edit/memory_values.h"
#include "hdf5/handle.h"

namespace h5mirror::edit {

// Not thread-safe.
class Executor {
 public:
  // `file` must outlive it.
  static absl::StatusOr<Executor> Make(hid_t file);
  // An executor without a file. It holds no identifier of HDF5.
  static Executor None() { return Executor(H5I_INVALID_HID); }

  // Carries out one statement. After an error the file looks to a user of HDF5 as if nothing was
  // done. The output of SHOW and LIST goes to `output`.
  absl::Status Run(const Statement& statement, std::string* output);
  // After an error of Run(): the offset in the script of its reason.
  size_t blame() const { return blame_; }

  // The attribute that a statement is about, as DDL; empty: there is none.
  std::string TouchedBefore(const Statement& statement);
  std::string TouchedAfter(const Statement& statement);

 private:
  explicit Executor(hid_t file) : file_(file) {}

  // A match of a pattern: an attribute of an object, or a link in a group.
  struct Match {
    std::string object;
    std::string name;
  };

  // Whether the kind of object matters to a command.
  enum class KindRule : uint8_t {
    kAny,         // MODIFY, COPY, SHOW: only a wrong word is an error
    kPairIsData,  // CREATE, DELETE, RENAME: in the pair form, without GROUP, it is a dataset
  };

  absl::Status Fail(size_t at, absl::Status status);
  absl::Status Fail(size_t at, const std::string& message);
  absl::StatusOr<hdf5::Handle> Open(const std::string& path, size_t at);
  absl::StatusOr<hdf5::Handle> OpenTarget(const Target& target, KindRule rule);
  absl::Status CheckIsOurs(hid_t object, const std::string& path, size_t at);
  absl::StatusOr<bool> HasAttribute(hid_t object, const std::string& name);
  absl::Status CheckFree(hid_t object, const Target& target);
  absl::Status CheckThere(hid_t object, const Target& target);
  // A free name for an attribute that becomes `target`: no shorter, so that a rename always fits.
  absl::StatusOr<std::string> NameBeside(hid_t object, const Target& target);

  absl::Status CreateAttribute(const Statement& statement);
  absl::Status MakeAttribute(hid_t object, const std::string& name, const Statement& statement);
  absl::Status DeleteAttribute(const Statement& statement);
  absl::Status RenameAttribute(const Statement& statement);
  // Makes the attribute that `to` names, with the values of another. `list` is for its creation.
  absl::Status MakeCopy(hid_t attribute, hid_t object, const Target& to, hid_t list,
                        const std::string& what);
  absl::Status CopyAttribute(const Statement& statement);
  absl::Status Show(const Statement& statement, std::string* output);
  absl::Status List(const Statement& statement, std::string* output);

  // In attribute_values.cc.
  struct AttributeParts {
    hid_t object;
    const std::string& name;
    hid_t type;
    hid_t space;
    hid_t list;  // for its creation
  };
  // Makes an attribute that HDF5 can read again.
  absl::StatusOr<hdf5::Handle> NewAttribute(const AttributeParts& parts, size_t at,
                                            const std::string& what);
  Scene TheScene() const;
  // `count` values for a type in the file. `type_at`: the place to blame if the type is the reason
  // of an error.
  absl::StatusOr<MemoryValues> ValuesOf(hid_t type, const ValueList& list, uint64_t count,
                                        size_t type_at);
  absl::Status ModifyAttribute(const Statement& statement);
  absl::Status ModifyElements(const Statement& statement, hid_t attribute, hid_t type);

  // In object_commands.cc.
  absl::StatusOr<hdf5::Handle> DatasetList(const Definition& definition, hid_t type);
  absl::Status CheckHoldsItsValues(hid_t dataset, const Target& target);
  absl::Status CheckNewLink(const Target& target);
  absl::Status CheckLink(const Target& target);
  absl::Status CheckIsOutside(const Target& from, const Target& to);
  absl::Status CreateGroup(const Statement& statement);
  absl::Status CreateDataset(const Statement& statement);
  absl::Status ModifyDataset(const Statement& statement);
  absl::Status DeleteObject(const Statement& statement);
  absl::Status MoveObject(const Statement& statement);
  absl::Status Link(const Statement& statement);

  // In pattern_commands.cc.
  absl::StatusOr<std::vector<Match>> FindMatches(const Statement& statement);
  absl::Status DeleteMatches(const Statement& statement);
  std::string TouchedMatches(const Statement& statement);

  // In append_commands.cc.
  absl::StatusOr<std::vector<uint64_t>> GrownBy(hid_t space, const Statement& statement);
  absl::Status AppendAttribute(const Statement& statement);
  absl::Status AppendDataset(const Statement& statement);

  std::string Touched(const Target& target, const std::string& name);

  hid_t file_;
  hdf5::Handle access_;  // of links that lead to other files
  size_t blame_ = 0;
};

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_EXECUTOR_H_
