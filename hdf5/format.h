// Parses a few structures of HDF5's format, for questions that its library does not answer: which
// bytes belong to an object, and where a group in the oldest format has its links.
//
// Source: HDF5 File Format Specification, version 3.0: III.A.1 (B-trees), III.B (symbol table
// nodes), III.D (local heaps), III.E (global heaps), IV.A (object headers). Only files with
// addresses and lengths of 8 bytes, which all but the exotic ones have. Every function takes bytes
// that may be anything, and returns nothing rather than a wrong value.
#ifndef H5MIRROR_HDF5_FORMAT_H_
#define H5MIRROR_HDF5_FORMAT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/extent.h"
#include "hdf5/byte_source.h"

namespace h5mirror::hdf5 {

// How many of `bytes`, which the library read from one place as `kind`, belong to what it read
// there: it reads the beginning of an object header or local heap without knowing its length, so
// the read may include bytes of other structures behind it. 0: cannot be told. `address` is that of
// `bytes`.
uint64_t OwnedBytes(ReadKind kind, uint64_t address, std::string_view bytes);

// The values that a collection of the global heap holds, by their index.
bool IsGlobalHeap(std::string_view bytes);
std::map<uint32_t, std::string_view> GlobalHeapValues(std::string_view collection);

// Where a group in the oldest format has its links.
struct SymbolTable {
  uint64_t tree_address = 0;
  uint64_t heap_address = 0;
  bool operator==(const SymbolTable&) const = default;
};
// The content of one chunk of messages of a version 1 object header.
struct HeaderMessages {
  std::optional<SymbolTable> symbol_table;
  std::vector<Extent> continuations;
};
// The first chunk of messages behind the 16 bytes of a version 1 header.
std::optional<Extent> FirstMessages(uint64_t address, std::string_view prefix);
HeaderMessages ParseMessages(std::string_view messages);

struct LocalHeap {
  uint64_t data_address = 0;
  uint64_t data_bytes = 0;
};
inline constexpr size_t kLocalHeapBytes = 32;
std::optional<LocalHeap> ParseLocalHeap(std::string_view bytes);

// A node of a group's tree: the addresses of nodes one level down, symbol table nodes at level 0.
struct TreeNode {
  int level = 0;
  std::vector<uint64_t> children;
};
std::optional<TreeNode> ParseTreeNode(std::string_view bytes);

struct Symbol {
  uint64_t name_offset = 0;  // in the heap's data
  uint64_t address = 0;      // of the object header
  bool is_object = true;     // else a soft link
  bool is_group = false;     // an object that is known to be one
};
std::optional<std::vector<Symbol>> ParseSymbols(std::string_view bytes);

// Sizes of whole nodes, of which the last part may be unused.
constexpr uint64_t TreeNodeBytes(uint64_t k) { return 24 + 8 * (4 * k + 1); }
constexpr uint64_t SymbolNodeBytes(uint64_t k) { return 8 + 40 * 2 * k; }

}  // namespace h5mirror::hdf5

#endif  // H5MIRROR_HDF5_FORMAT_H_
