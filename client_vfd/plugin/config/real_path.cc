#include "client_vfd/plugin/config/real_path.h"

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <memory>

namespace h5mirror::vfd {
namespace {

namespace fs = std::filesystem;

std::string Resolve(const fs::path& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                         std::free);
  return real ? real.get() : "";
}

}  // namespace

std::string RealPathOfMissing(const std::string& path) {
  std::error_code failed;
  fs::path head = fs::absolute(path, failed);
  if (failed) return "";
  fs::path tail;
  while (true) {
    if (const std::string real = Resolve(head); !real.empty()) {
      return tail.empty() ? real : (fs::path(real) / tail).lexically_normal().native();
    }
    if (head == head.parent_path()) return (head / tail).lexically_normal().native();
    if (head.has_filename()) {
      tail = tail.empty() ? head.filename() : head.filename() / tail;
    }
    head = head.parent_path();
  }
}

std::string CarryOver(const std::string& path, const std::string& file,
                      const std::string& other_file) {
  const fs::path relative = fs::path(path).lexically_relative(fs::path(file).parent_path());
  const fs::path carried = (fs::path(other_file).parent_path() / relative).lexically_normal();
  if (relative.empty() || carried.is_absolute() || carried.empty() || *carried.begin() == "..") {
    return "";
  }
  return carried.native();
}

}  // namespace h5mirror::vfd
