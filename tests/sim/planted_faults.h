// The faults that planted_simulation_fault_test plants, one at a time. They stand before functions
// of the product, which the linker has called through here in that test alone.
#ifndef H5MIRROR_TESTS_SIM_PLANTED_FAULTS_H_
#define H5MIRROR_TESTS_SIM_PLANTED_FAULTS_H_

#include <cstdint>

namespace h5mirror::sim {

enum class Fault : uint8_t {
  kNone,
  // ---- The server ----
  kRevocationLost,    // streams that lose their lease are not ended: the tokens alone fence them
  kFenceDropped,      // so, and a fenced token writes on
  kTokenReused,       // so, and two sessions get the same one
  kAckBeforeDurable,  // a cut is said to be durable when it is visible
  kCutNumbersAgain,   // how far they may have been given is not kept
  kStageNotSynced,    // syncs that never reach the disk
  kIndexNotSynced,
  kHeadNotSynced,
  kGenerationContinued,  // a file that is created again is written over its old one
  kResumePastARestart,   // a resume is taken, whatever was lost
  kContinueUnchecked,    // so is an open, whatever cut it is based on
  kLateStreamsTaken,     // streams have no numbers
  // ---- The client ----
  kDirtyBitsClearedEarly,  // when a barrier is sent, and not when it is durable
  kNoCopyOut,              // bytes of a closed cut are overwritten before they are read
  kTruncateForgotten,
  kMapWithoutExtents,   // the dirty map beside the file names no bytes
  kMapOfAnyState,       // it counts for whatever the file has become
  kRecordSaysClean,     // though the server lacks the last cut
  kUncleanFileTrusted,  // a file that a killed program left is taken for the mirror's state
};

void Plant(Fault fault);

}  // namespace h5mirror::sim

#endif  // H5MIRROR_TESTS_SIM_PLANTED_FAULTS_H_
