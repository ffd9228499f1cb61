// The command line of h5edit.
#ifndef H5MIRROR_H5EDIT_OPTIONS_H_
#define H5MIRROR_H5EDIT_OPTIONS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace h5mirror::edit {

enum class Atomic : uint8_t { kYes, kInc, kNo };
enum class Task : uint8_t { kEdit, kRecover, kHelp, kVersion };

struct Options {
  Task task = Task::kEdit;
  std::string script_name;  // "-c", "stdin" or the path
  std::string script;
  std::string file;
  Atomic atomic = Atomic::kYes;
  bool dry_run = false;
  bool durable = false;
  bool keep_history = false;
  std::string server;          // --server; empty: those that the file is mirrored to
  std::string driver_config;   // HDF5_DRIVER_CONFIG, where HDF5_DRIVER is h5mirror
  bool copies_backup = false;  // --backup=copy
  bool restores = false;
  bool checks = false;    // --recover --check
  bool discards = false;  // --recover --discard
  bool json = false;
  bool diff = false;
  bool verbose = false;
};

// Options end at the first word that does not begin with '-'; the first problem wins. Empty: all is
// well; else the error, which is shown to the user before the usage.
std::string ParseOptions(const std::vector<std::string>& words, Options* options);

std::string_view UsageText();

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_OPTIONS_H_
