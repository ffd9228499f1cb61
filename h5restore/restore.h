// Brings an object, or attributes of one, from one open HDF5 file into another.
//
//   all references of the target to what is replaced are read: what can fail, fails here
//   hidden name  <- H5Ocopy() or H5Lcopy()     nothing that is there has changed
//   old name     -> second hidden name         of what is replaced
//   hidden name  -> the object's own name
//   references of the copy, then those of other objects to what was replaced
//   second hidden name is removed
//
// All of it lies before the caller's one flush. If a step fails, the steps before are taken back.
#ifndef H5MIRROR_H5RESTORE_RESTORE_H_
#define H5MIRROR_H5RESTORE_RESTORE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/restore/restore_job.h"
#include "hdf5/handle.h"

namespace h5mirror::restore {

// Both files are open, and outlive the call.
struct Ends {
  hid_t source = H5I_INVALID_HID;
  std::string source_said;
  hid_t target = H5I_INVALID_HID;
  std::string target_said;
};

// What an error leaves of the target, as HDF5 has it in memory.
enum class Left {
  kUntouched,
  kTakenBack,  // it is changed, and has what it had
  kTorn,       // it must not be flushed
};

// Errors: kNotFound            the source has no such object or attribute, or the target no object
//                              for attributes.
//         kAlreadyExists       it is there, and the job does not replace.
//         kFailedPrecondition  there is no place for it, or a filter is missing.
//         kInternal            what HDF5 says.
absl::StatusOr<tools::RestoreResult> RestoreObject(const Ends& ends, const tools::RestoreJob& job,
                                                   Left* left);
// The same of job.attributes.
absl::StatusOr<tools::RestoreResult> RestoreAttributes(const Ends& ends,
                                                       const tools::RestoreJob& job, Left* left);

}  // namespace h5mirror::restore

#endif  // H5MIRROR_H5RESTORE_RESTORE_H_
