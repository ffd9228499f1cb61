#include "hdf5/format.h"

#include <algorithm>
#include <cstring>

namespace h5mirror::hdf5 {
namespace {

constexpr size_t kHeaderPrefixBytes = 16;  // version 1
constexpr uint32_t kGlobalHeapHeaderBytes = 16;
constexpr uint16_t kMessageContinuation = 0x10;
constexpr uint16_t kMessageSymbolTable = 0x11;
constexpr uint32_t kCachedGroup = 1;
constexpr uint32_t kCachedSoftLink = 2;

// A little-endian integer; 0 where `bytes` end before it does.
uint64_t IntAt(std::string_view bytes, size_t at, size_t width) {
  if (at > bytes.size() || width > bytes.size() - at) return 0;
  uint64_t value = 0;
  for (size_t i = width; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

uint64_t AtMost(uint64_t length, std::string_view bytes) {
  return std::min<uint64_t>(length, bytes.size());
}

// Version 2: signature, version, flags, times, attribute phases, length of the first chunk.
uint64_t NewHeaderBytes(std::string_view bytes) {
  if (bytes.size() < 6) return 0;
  const auto flags = static_cast<uint8_t>(bytes[5]);
  const size_t length_at = 6 + ((flags & 0x20) != 0 ? 16 : 0) + ((flags & 0x10) != 0 ? 4 : 0);
  const size_t width = size_t{1} << (flags & 3);
  if (bytes.size() < length_at + width) return 0;
  return AtMost(length_at + width + IntAt(bytes, length_at, width) + 4, bytes);
}

bool HasSignature(std::string_view bytes) {
  return bytes.size() >= 4 && std::all_of(bytes.begin(), bytes.begin() + 4, [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
         });
}

}  // namespace

uint64_t OwnedBytes(ReadKind kind, uint64_t address, std::string_view bytes) {
  if (kind == ReadKind::kSuperblock) return 0;
  if (kind == ReadKind::kLocalHeap && bytes.starts_with("HEAP")) {
    const auto heap = ParseLocalHeap(bytes);
    if (!heap) return 0;
    const bool follows = heap->data_address == address + kLocalHeapBytes;
    return AtMost(kLocalHeapBytes + (follows ? heap->data_bytes : 0), bytes);
  }
  if (kind != ReadKind::kObjectHeader) return bytes.size();
  if (bytes.starts_with("OHDR")) return NewHeaderBytes(bytes);
  if (HasSignature(bytes)) return bytes.size();
  // The beginning of a header, or its continuation, which begins with a message's type and length:
  // what would be the count of references is 0 there.
  const auto messages = FirstMessages(address, bytes);
  return messages ? AtMost(kHeaderPrefixBytes + messages->length, bytes) : bytes.size();
}

bool IsGlobalHeap(std::string_view bytes) {
  return bytes.size() >= kGlobalHeapHeaderBytes && bytes.starts_with("GCOL") && bytes[4] == 1;
}

std::map<uint32_t, std::string_view> GlobalHeapValues(std::string_view collection) {
  std::map<uint32_t, std::string_view> values;
  for (size_t at = kGlobalHeapHeaderBytes; collection.size() >= at + 16;) {
    const auto index = static_cast<uint32_t>(IntAt(collection, at, 2));
    const uint64_t size = IntAt(collection, at + 8, 8);
    // Index 0 is the free rest.
    if (index == 0 || size > collection.size() - at - 16) break;
    values[index] = collection.substr(at + 16, size);
    at += 16 + (size + 7) / 8 * 8;
  }
  return values;
}

std::optional<Extent> FirstMessages(uint64_t address, std::string_view prefix) {
  if (prefix.size() < kHeaderPrefixBytes || prefix[0] != 1 || prefix[1] != 0) return std::nullopt;
  if (IntAt(prefix, 4, 4) == 0) return std::nullopt;
  return Extent{address + kHeaderPrefixBytes, IntAt(prefix, 8, 4)};
}

HeaderMessages ParseMessages(std::string_view messages) {
  HeaderMessages found;
  for (size_t at = 0; messages.size() >= at + 8;) {
    const auto type = static_cast<uint16_t>(IntAt(messages, at, 2));
    const uint64_t size = IntAt(messages, at + 2, 2);
    if (size > messages.size() - at - 8) break;
    const std::string_view data = messages.substr(at + 8, size);
    if (type == kMessageContinuation && size >= 16) {
      found.continuations.push_back({IntAt(data, 0, 8), IntAt(data, 8, 8)});
    } else if (type == kMessageSymbolTable && size >= 16) {
      found.symbol_table = {IntAt(data, 0, 8), IntAt(data, 8, 8)};
    }
    at += 8 + size;
  }
  return found;
}

std::optional<LocalHeap> ParseLocalHeap(std::string_view bytes) {
  if (bytes.size() < kLocalHeapBytes || !bytes.starts_with("HEAP") || bytes[4] != 0) {
    return std::nullopt;
  }
  return LocalHeap{IntAt(bytes, 24, 8), IntAt(bytes, 8, 8)};
}

std::optional<TreeNode> ParseTreeNode(std::string_view bytes) {
  if (bytes.size() < 24 || !bytes.starts_with("TREE") || bytes[4] != 0) return std::nullopt;
  TreeNode node;
  node.level = static_cast<uint8_t>(bytes[5]);
  const uint64_t count = IntAt(bytes, 6, 2);
  if (bytes.size() < 24 + 8 + 16 * count) return std::nullopt;
  for (uint64_t i = 0; i < count; ++i) node.children.push_back(IntAt(bytes, 32 + 16 * i, 8));
  return node;
}

std::optional<std::vector<Symbol>> ParseSymbols(std::string_view bytes) {
  if (bytes.size() < 8 || !bytes.starts_with("SNOD") || bytes[4] != 1) return std::nullopt;
  const uint64_t count = IntAt(bytes, 6, 2);
  if (bytes.size() < 8 + 40 * count) return std::nullopt;
  std::vector<Symbol> symbols;
  for (size_t at = 8; symbols.size() < count; at += 40) {
    const uint64_t cached = IntAt(bytes, at + 16, 4);
    symbols.push_back({IntAt(bytes, at, 8), IntAt(bytes, at + 8, 8), cached != kCachedSoftLink,
                       cached == kCachedGroup});
  }
  return symbols;
}

}  // namespace h5mirror::hdf5
