// Splits a fuzzer's bytes into values. Missing bytes are zeros.
#ifndef H5MIRROR_TESTS_FUZZ_FUZZ_INPUT_H_
#define H5MIRROR_TESTS_FUZZ_FUZZ_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace h5mirror {

// The function that libFuzzer, or replay_main.cc, calls.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  template <typename T>
  T Take() {
    T value{};
    std::string_view bytes = TakeBytes(sizeof(T));
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  std::string_view TakeBytes(size_t size) {
    std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(bytes.size());
    return bytes;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// Checks a rule: a failure is a crash, and the fuzzer keeps its input.
inline void FuzzCheck(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace h5mirror

#endif  // H5MIRROR_TESTS_FUZZ_FUZZ_INPUT_H_
