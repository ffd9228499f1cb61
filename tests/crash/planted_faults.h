// Faults that are planted to check that the crash tests find them: a harness that cannot fail
// proves nothing. All are in the disk below the store, or in functions that the linker replaces
// (store_faults.h); the store itself has no switches.
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
