// A directory of its own for one test, removed with it.
#ifndef H5MIRROR_SERVER_TESTING_TEST_DIRECTORY_H_
#define H5MIRROR_SERVER_TESTING_TEST_DIRECTORY_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace h5mirror::server {

class TestDirectory {
 public:
  TestDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "h5mirror.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) abort();
    path_ = name;
  }
  ~TestDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path Write(const std::string& name, std::string_view content) const {
    std::ofstream(path_ / name) << content;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_TESTING_TEST_DIRECTORY_H_
