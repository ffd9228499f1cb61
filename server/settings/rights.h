// The rights of a caller. No right includes another: a caller has a set of them.
#ifndef H5MIRROR_SERVER_SETTINGS_RIGHTS_H_
#define H5MIRROR_SERVER_SETTINGS_RIGHTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace h5mirror::server {

enum class Right : uint8_t {
  kRead = 1,      // list, read, follow, check
  kWrite = 2,     // mirror, commit, tag
  kRestore = 4,   // roll back, adopt, resync onto another's file
  kDelete = 8,    // move, remove, undelete, prune
  kOperate = 16,  // the server as a whole
};

// "read", "write", "restore", "delete", "operate".
std::string_view NameOf(Right right);

class Rights {
 public:
  constexpr Rights() = default;
  static constexpr Rights All() { return Rights(31); }
  constexpr bool Has(Right right) const { return (bits_ & static_cast<uint8_t>(right)) != 0; }
  constexpr void Add(Right right) { bits_ |= static_cast<uint8_t>(right); }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool operator==(const Rights&) const = default;
  // The rights that are in both.
  constexpr Rights And(Rights other) const {
    return Rights(static_cast<uint8_t>(bits_ & other.bits_));
  }

  // The rights that are in either.
  constexpr Rights Or(Rights other) const {
    return Rights(static_cast<uint8_t>(bits_ | other.bits_));
  }

  // The names, in the order above.
  std::vector<std::string> Names() const;
  // "read,write"; "none" without any.
  std::string ToString() const;
  // A comma-separated list of names. "admin" stands for restore, delete and operate, which were one
  // right once. kInvalidArgument quotes the word and shows all.
  static absl::StatusOr<Rights> Parse(std::string_view text);

 private:
  explicit constexpr Rights(uint8_t bits) : bits_(bits) {}
  uint8_t bits_ = 0;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_RIGHTS_H_
