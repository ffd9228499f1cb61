// The faults that planted_simulation_fault_test plants, one at a time. They wrap functions of the
// product: the linker redirects the calls, only in that test.
#ifndef H5MIRROR_TESTS_SIM_PLANTED_FAULTS_H_
#define H5MIRROR_TESTS_SIM_PLANTED_FAULTS_H_

#include <cstdint>

namespace h5mirror::sim {

enum class Fault : uint8_t {
  kNone,
  // ---- The server ----
  kRevocationLost,    // streams that lose their lease are not ended: only tokens fence them
  kFenceDropped,      // as above, and a fenced token writes on
  kTokenReused,       // as above, and two sessions get the same token
  kAckBeforeDurable,  // a cut is reported durable when it is visible
  kCutNumbersAgain,   // the bound of given cut numbers is not kept
  kStageNotSynced,    // syncs that never reach the disk
  kIndexNotSynced,
  kHeadNotSynced,
  kGenerationContinued,  // a re-created file overwrites its old generation
  kResumePastARestart,   // a resume is accepted, whatever was lost
  kContinueUnchecked,    // an open is accepted, whatever its base
  kLateStreamsTaken,     // streams have no numbers
  // ---- The client ----
  kDirtyBitsClearedEarly,  // when a barrier is sent, and not when it is durable
  kNoCopyOut,              // bytes of a closed cut are overwritten before they are read
  kTruncateForgotten,
  kMapWithoutExtents,   // the dirty map beside the file names no bytes
  kMapOfAnyState,       // the map counts for any state of the file
  kRecordSaysClean,     // though the server lacks the last cut
  kUncleanFileTrusted,  // a killed program's file is taken for the mirror's state
};

void Plant(Fault fault);

}  // namespace h5mirror::sim

#endif  // H5MIRROR_TESTS_SIM_PLANTED_FAULTS_H_
