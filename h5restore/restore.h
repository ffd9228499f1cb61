// Brings an object, or attributes of one, from one open HDF5 file into another.
//
//   all references of the target to the replaced object are read: errors come here
//   hidden name  <- H5Ocopy() or H5Lcopy()     nothing that is there has changed
//   old name     -> second hidden name         of the replaced object
//   hidden name  -> the object's own name
//   references of the copy, then those of other objects to the replaced object
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

// The state of the target after an error, as HDF5 has it in memory.
enum class Left {
  kUntouched,
  kTakenBack,  // its bytes changed, and it has the objects that it had
  kTorn,       // it must not be flushed
};

// Errors: kNotFound            the source has no such object or attribute, or the target no object
//                              for attributes.
//         kAlreadyExists       it is there, and the job does not replace.
//         kFailedPrecondition  there is no place for it, or a filter is missing.
//         kInternal            HDF5's error.
absl::StatusOr<tools::RestoreResult> RestoreObject(const Ends& ends, const tools::RestoreJob& job,
                                                   Left* left);
// The same of job.attributes.
absl::StatusOr<tools::RestoreResult> RestoreAttributes(const Ends& ends,
                                                       const tools::RestoreJob& job, Left* left);

}  // namespace h5mirror::restore

#endif  // H5MIRROR_H5RESTORE_RESTORE_H_
