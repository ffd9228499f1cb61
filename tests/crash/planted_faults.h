// Faults that are planted to see whether the crash tests find them: a harness that cannot fail
// proves nothing. All are of the disk below the store, or of what the linker put in place of a
// function (store_faults.h); the store itself has no switches.
#ifndef H5MIRROR_TESTS_CRASH_PLANTED_FAULTS_H_
#define H5MIRROR_TESTS_CRASH_PLANTED_FAULTS_H_

#include <string>
#include <vector>

#include "tests/crash/explorer.h"

namespace h5mirror::store {

struct PlantedFault {
  const char* name;
  LieMaker lie_maker;
  // Where to look first.
  const char* scenario;
  bool lies_about_names = false;
};

const std::vector<PlantedFault>& AllPlantedFaults();
std::vector<std::string> PlantedFaultNames();

}  // namespace h5mirror::store

#endif  // H5MIRROR_TESTS_CRASH_PLANTED_FAULTS_H_
