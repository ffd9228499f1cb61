#include "onion_store/pages/archived_copy.h"

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "nlohmann/json.hpp"
#include "onion_store/disk/coding.h"
#include "onion_store/pages/page_packing.h"
#include "onion_store/shared/object_cache.h"
#include "onion_store/store.h"

namespace h5mirror::store {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kPartMagic = "H5MARCD1";
constexpr std::string_view kListMagic = "H5MARCL1";
constexpr std::string_view kBegunMagic = "H5MARCB1";
constexpr std::string_view kBegun = "-begun-";
constexpr size_t kPartHeaderBytes = 64;
constexpr size_t kListHeaderBytes = 16;
constexpr size_t kCrcOffset = 8;
constexpr size_t kEntryBytes = 16;
constexpr uint64_t kGetBytes = 8 << 20;
constexpr int64_t kFormat = 1;
// Programs that know only the first format would restore lost bytes as zeros.
constexpr int64_t kFormatWithLost = 2;
constexpr size_t kLayersMax = 1000;
constexpr size_t kHeadsMax = 100000;
constexpr size_t kNumberDigits = 20;
constexpr size_t kRandomDigits = 32;

absl::Status Wrong(std::string_view what) { return absl::DataLossError(std::string(what)); }

// ---- Reading JSON that may be anything ----

absl::StatusOr<int64_t> NumberIn(const Json& json, const char* key, int64_t min, int64_t max) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (found == json.end() || !found->is_number_integer() ||
      (found->is_number_unsigned() && found->get<uint64_t>() > INT64_MAX)) {
    return Wrong(StrCat("it has no number \"", key, "\""));
  }
  const auto number = found->get<int64_t>();
  if (number >= min && number <= max) return number;
  return Wrong(StrCat("its \"", key, "\" is ", number));
}

absl::StatusOr<std::string> TextIn(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (found != json.end() && found->is_string()) return found->get<std::string>();
  return Wrong(StrCat("it has no text \"", key, "\""));
}

absl::StatusOr<const Json*> ListIn(const Json& json, const char* key, size_t count_max) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (found != json.end() && found->is_array() && found->size() <= count_max) return &*found;
  return Wrong(StrCat("it has no list \"", key, "\" of at most ", count_max));
}

Json ToJson(const CopyLayer& layer) {
  Json parts = Json::array();
  for (const PartObject& part : layer.parts) parts.push_back({part.length, part.crc32c});
  Json json = {{"from", layer.from},     {"from_cut", layer.from_cut}, {"weight", layer.weight},
               {"prefix", layer.prefix}, {"first", layer.first},       {"parts", std::move(parts)}};
  for (const Extent& lost : layer.lost) json["lost"].push_back({lost.offset, lost.length});
  return json;
}

absl::StatusOr<std::vector<Extent>> LostOf(const Json& json) {
  std::vector<Extent> lost;
  if (!json.contains("lost")) return lost;
  H5M_ASSIGN_OR_RETURN(const Json* list, ListIn(json, "lost", kLostExtentsMax));
  uint64_t end = 0;
  for (const Json& each : *list) {
    const bool is_pair = each.is_array() && each.size() == 2 && each[0].is_number_unsigned() &&
                         each[1].is_number_unsigned();
    if (!is_pair) return Wrong("a lost range is no pair of numbers");
    const Extent extent{each[0].get<uint64_t>(), each[1].get<uint64_t>()};
    const bool is_sane = extent.offset >= end && extent.length > 0 &&
                         extent.offset <= static_cast<uint64_t>(INT64_MAX) &&
                         extent.length <= static_cast<uint64_t>(INT64_MAX) - extent.offset;
    if (!is_sane) return Wrong("a lost range cannot be");
    lost.push_back(extent);
    end = extent.end();
  }
  return lost;
}

absl::StatusOr<PartObject> PartOf(const Json& json) {
  const bool is_pair = json.is_array() && json.size() == 2 && json[0].is_number_unsigned() &&
                       json[1].is_number_unsigned();
  if (!is_pair) return Wrong("a part is no pair of numbers");
  const auto length = json[0].get<uint64_t>(), crc = json[1].get<uint64_t>();
  if (length < kPartHeaderBytes || length > kPartObjectBytesMax || crc > UINT32_MAX) {
    return Wrong(StrCat("a part has ", length, " bytes and the checksum ", crc));
  }
  return PartObject{length, static_cast<uint32_t>(crc)};
}

absl::StatusOr<CopyLayer> LayerOf(const FileId& file_id, const Json& json) {
  CopyLayer layer;
  H5M_ASSIGN_OR_RETURN(layer.from, NumberIn(json, "from", 0, INT64_MAX));
  H5M_ASSIGN_OR_RETURN(layer.from_cut, NumberIn(json, "from_cut", 0, INT64_MAX));
  H5M_ASSIGN_OR_RETURN(layer.weight, NumberIn(json, "weight", 1, INT64_MAX / 2));
  H5M_ASSIGN_OR_RETURN(layer.prefix, TextIn(json, "prefix"));
  H5M_ASSIGN_OR_RETURN(layer.first, NumberIn(json, "first", 0, INT32_MAX));
  // Else one file could take bytes of another file.
  if (!layer.prefix.starts_with(CopyPrefix(file_id))) {
    return Wrong("it names a copy of another file");
  }
  H5M_RETURN_IF_ERROR(NumberOfCopy(layer.prefix).status());
  H5M_ASSIGN_OR_RETURN(const Json* parts, ListIn(json, "parts", INT32_MAX));
  layer.parts.reserve(parts->size());
  for (const Json& each : *parts) {
    H5M_ASSIGN_OR_RETURN(const PartObject part, PartOf(each));
    layer.parts.push_back(part);
  }
  H5M_ASSIGN_OR_RETURN(layer.lost, LostOf(json));
  return layer;
}

absl::StatusOr<CopyHead> HeadOf(const FileId& file_id, const Json& json) {
  CopyHead head;
  H5M_ASSIGN_OR_RETURN(head.generation, NumberIn(json, "generation", 1, INT64_MAX));
  H5M_ASSIGN_OR_RETURN(head.version, NumberIn(json, "version", 1, INT64_MAX));
  H5M_ASSIGN_OR_RETURN(head.cut, NumberIn(json, "cut", 1, INT64_MAX));
  H5M_ASSIGN_OR_RETURN(head.size_bytes, NumberIn(json, "size_bytes", 0, INT64_MAX));
  H5M_ASSIGN_OR_RETURN(const Json* layers, ListIn(json, "layers", kLayersMax));
  for (const Json& each : *layers) {
    H5M_ASSIGN_OR_RETURN(CopyLayer layer, LayerOf(file_id, each));
    head.layers.push_back(std::move(layer));
  }
  const auto damaged = json.find("damaged");
  head.is_damaged = damaged != json.end() && *damaged == Json(true);
  if (head.layers.empty() || head.layers.front().from != 0) return Wrong("a head has no beginning");
  return head;
}

absl::Status HeadsOf(const Json& json, FileCopy* copy) {
  H5M_ASSIGN_OR_RETURN(const Json* heads, ListIn(json, "heads", kHeadsMax));
  for (const Json& each : *heads) {
    H5M_ASSIGN_OR_RETURN(CopyHead head, HeadOf(copy->file_id, each));
    if (!copy->heads.empty() && copy->heads.back().generation >= head.generation) {
      return Wrong("its heads are in no order");
    }
    copy->heads.push_back(std::move(head));
  }
  return copy->heads.empty() ? Wrong("it has no head") : absl::OkStatus();
}

// Checks the file's name and owner, as this store allows them.
absl::Status NamesOf(const Json& json, FileCopy* copy) {
  H5M_ASSIGN_OR_RETURN(copy->name, TextIn(json, "name"));
  H5M_ASSIGN_OR_RETURN(copy->owner, TextIn(json, "owner"));
  const bool is_sane =
      CheckName(copy->name).ok() && (copy->owner.empty() || CheckOwner(copy->owner).ok());
  return is_sane ? absl::OkStatus() : Wrong("it has an impossible name or owner");
}

absl::StatusOr<FileCopy> CopyOf(std::string_view prefix, const Json& json) {
  FileCopy copy;
  copy.prefix = std::string(prefix);
  H5M_RETURN_IF_ERROR(NumberIn(json, "format", kFormat, kFormatWithLost).status());
  H5M_ASSIGN_OR_RETURN(const std::string id, TextIn(json, "file_id"));
  const auto file_id = ParseHex16(id);
  if (!file_id.ok() || !copy.prefix.starts_with(CopyPrefix(*file_id))) {
    return Wrong("it is of another file");
  }
  copy.file_id = *file_id;
  H5M_RETURN_IF_ERROR(NamesOf(json, &copy));
  H5M_ASSIGN_OR_RETURN(const int64_t time, NumberIn(json, "time_ns", INT64_MIN, INT64_MAX));
  H5M_ASSIGN_OR_RETURN(const int64_t made, NumberIn(json, "version_time_ns", INT64_MIN, INT64_MAX));
  copy.time = absl::FromUnixNanos(time);
  copy.version_time = absl::FromUnixNanos(made);
  H5M_ASSIGN_OR_RETURN(copy.page_size_bytes, NumberIn(json, "page_size_bytes", 512, 65536));
  if ((copy.page_size_bytes & (copy.page_size_bytes - 1)) != 0) return Wrong("its page size");
  H5M_ASSIGN_OR_RETURN(copy.mode_bits, NumberIn(json, "mode_bits", 0, 0777));
  H5M_ASSIGN_OR_RETURN(copy.versions, NumberIn(json, "versions", 1, INT64_MAX));
  H5M_ASSIGN_OR_RETURN(copy.index_bytes, NumberIn(json, "index_bytes", 512, INT64_MAX));
  const auto index = json.find("index");
  if (index == json.end()) return Wrong("it has no index");
  H5M_ASSIGN_OR_RETURN(copy.index, LayerOf(copy.file_id, *index));
  if (!copy.index.lost.empty()) return Wrong("its index is damaged");
  H5M_RETURN_IF_ERROR(HeadsOf(json, &copy));
  return copy;
}

Json ToJson(const CopyHead& head) {
  Json layers = Json::array();
  for (const CopyLayer& layer : head.layers) layers.push_back(ToJson(layer));
  Json json = {{"generation", head.generation},
               {"version", head.version},
               {"cut", head.cut},
               {"size_bytes", head.size_bytes},
               {"layers", std::move(layers)}};
  if (head.is_damaged) json["damaged"] = true;
  return json;
}

// A text with its length and checksum.
std::string Framed(std::string_view magic, const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::string object(magic);
  PutInt<uint32_t>(&object, Crc32c(text));
  PutInt<uint32_t>(&object, static_cast<uint32_t>(text.size()));
  return object += text;
}

absl::StatusOr<Json> Unframed(std::string_view magic, std::string_view object) {
  if (object.size() < kListHeaderBytes || !object.starts_with(magic)) {
    return Wrong("it is no list of a copy");
  }
  const std::string_view text = object.substr(kListHeaderBytes);
  if (GetInt<uint32_t>(object.data() + 12) != text.size() ||
      GetInt<uint32_t>(object.data() + kCrcOffset) != Crc32c(text)) {
    return Wrong("it does not match its checksum");
  }
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Wrong("it does not parse");
  return json;
}

// The extents of a table, whose bytes must add up to `bytes`.
absl::StatusOr<std::vector<Extent>> ExtentsOf(std::string_view table, uint64_t bytes) {
  std::vector<Extent> extents;
  for (size_t at = 0; at < table.size(); at += kEntryBytes) {
    const Extent extent{GetInt<uint64_t>(table.data() + at),
                        GetInt<uint64_t>(table.data() + at + 8)};
    const bool is_sane = extent.length > 0 && extent.length <= bytes &&
                         extent.offset <= static_cast<uint64_t>(INT64_MAX) - extent.length;
    if (!is_sane) return Wrong("an extent cannot be");
    bytes -= extent.length;
    extents.push_back(extent);
  }
  return bytes == 0 ? absl::StatusOr<std::vector<Extent>>(extents)
                    : Wrong("its extents are not as long as its bytes");
}

}  // namespace

std::string EncodePart(const FileId& file_id, const Part& part) {
  std::string raw;
  raw.reserve(part.extents.size() * kEntryBytes + part.bytes.size());
  for (const Extent& extent : part.extents) {
    PutInt<uint64_t>(&raw, extent.offset);
    PutInt<uint64_t>(&raw, extent.length);
  }
  raw += part.bytes;
  std::string packed;
  const bool is_packed = !raw.empty() && PackPages(raw, &packed);
  const std::string& stored = is_packed ? packed : raw;
  std::string object(kPartMagic);
  PutInt<uint32_t>(&object, 0);
  PutInt<uint32_t>(&object, static_cast<uint32_t>(part.extents.size()));
  object.append(reinterpret_cast<const char*>(file_id.data()), file_id.size());
  PutInt<uint64_t>(&object, raw.size());
  PutInt<uint64_t>(&object, stored.size());
  PutInt<uint32_t>(&object, Crc32c(stored));
  object.resize(kPartHeaderBytes, '\0');
  PutIntAt<uint32_t>(&object, kCrcOffset,
                     Crc32c(std::string_view(object).substr(kCrcOffset + sizeof(uint32_t))));
  return object += stored;
}

absl::StatusOr<Part> DecodePart(const FileId& file_id, std::string_view object) {
  if (object.size() < kPartHeaderBytes || !object.starts_with(kPartMagic)) {
    return Wrong("it is no part of a copy");
  }
  const std::string_view header = object.substr(0, kPartHeaderBytes);
  if (GetInt<uint32_t>(header.data() + kCrcOffset) != Crc32c(header.substr(kCrcOffset + 4))) {
    return Wrong("its header does not match its checksum");
  }
  if (std::memcmp(header.data() + 16, file_id.data(), file_id.size()) != 0) {
    return Wrong("it is of another file");
  }
  const uint64_t extents = GetInt<uint32_t>(header.data() + 12);
  const auto raw_bytes = GetInt<uint64_t>(header.data() + 32);
  const auto stored_bytes = GetInt<uint64_t>(header.data() + 40);
  const std::string_view stored = object.substr(kPartHeaderBytes);
  const bool is_sane = extents <= kPartExtentsMax && stored_bytes == stored.size() &&
                       raw_bytes >= stored_bytes && raw_bytes >= extents * kEntryBytes &&
                       raw_bytes - extents * kEntryBytes <= kPartDataBytesMax;
  if (!is_sane) return Wrong("its header has impossible lengths");
  if (GetInt<uint32_t>(header.data() + 48) != Crc32c(stored)) {
    return Wrong("its bytes do not match their checksum");
  }
  std::string raw(stored);
  if (raw_bytes != stored_bytes) {
    raw.assign(raw_bytes, '\0');
    H5M_RETURN_IF_ERROR(UnpackPages(stored, absl::MakeSpan(raw)));
  }
  Part part;
  const uint64_t table_bytes = extents * kEntryBytes;
  H5M_ASSIGN_OR_RETURN(part.extents, ExtentsOf(std::string_view(raw).substr(0, table_bytes),
                                               raw.size() - table_bytes));
  part.bytes = raw.substr(table_bytes);
  return part;
}

uint64_t CopyLayer::object_bytes() const {
  uint64_t bytes = 0;
  for (const PartObject& part : parts) bytes += part.length;
  return bytes;
}

uint64_t FileCopy::lost_bytes() const {
  uint64_t bytes = 0;
  for (const CopyHead& head : heads) {
    for (const CopyLayer& layer : head.layers) {
      for (const Extent& lost : layer.lost) bytes += lost.length;
    }
  }
  return bytes;
}

std::string CopyLayer::PartName(size_t i) const {
  return StrCat(prefix, absl::StrFormat("-data-%06d", first + i));
}

std::string EncodeCopyList(const FileCopy& copy) {
  Json heads = Json::array();
  for (const CopyHead& head : copy.heads) heads.push_back(ToJson(head));
  return Framed(kListMagic, {{"format", copy.lost_bytes() == 0 ? kFormat : kFormatWithLost},
                             {"file_id", HexOf(copy.file_id)},
                             {"name", copy.name},
                             {"owner", copy.owner},
                             {"time_ns", absl::ToUnixNanos(copy.time)},
                             {"version_time_ns", absl::ToUnixNanos(copy.version_time)},
                             {"page_size_bytes", copy.page_size_bytes},
                             {"mode_bits", copy.mode_bits},
                             {"versions", copy.versions},
                             {"index_bytes", copy.index_bytes},
                             {"index", ToJson(copy.index)},
                             {"heads", std::move(heads)}});
}

absl::StatusOr<FileCopy> DecodeCopyList(std::string_view prefix, std::string_view object) {
  H5M_ASSIGN_OR_RETURN(const Json json, Unframed(kListMagic, object));
  return CopyOf(prefix, json);
}

std::string EncodeBegunCopy(const BegunCopy& begun) {
  Json heads = Json::array();
  for (const CopyHead& head : begun.heads) heads.push_back(ToJson(head));
  return Framed(kBegunMagic, {{"format", kFormat},
                              {"file_id", HexOf(begun.file_id)},
                              {"done_bytes", begun.done_bytes},
                              {"heads", std::move(heads)}});
}

absl::StatusOr<BegunCopy> DecodeBegunCopy(const FileId& file_id, std::string_view object) {
  H5M_ASSIGN_OR_RETURN(const Json json, Unframed(kBegunMagic, object));
  H5M_RETURN_IF_ERROR(NumberIn(json, "format", kFormat, kFormat).status());
  H5M_ASSIGN_OR_RETURN(const std::string id, TextIn(json, "file_id"));
  if (id != HexOf(file_id)) return Wrong("it is of another file");
  FileCopy copy;
  copy.file_id = file_id;
  H5M_RETURN_IF_ERROR(HeadsOf(json, &copy));
  BegunCopy begun{file_id, std::move(copy.heads), 0};
  H5M_ASSIGN_OR_RETURN(begun.done_bytes, NumberIn(json, "done_bytes", 0, INT64_MAX));
  return begun;
}

std::string BegunCopyName(std::string_view prefix, uint64_t number) {
  return StrCat(prefix, kBegun, absl::StrFormat("%06d", number));
}

bool IsBegunCopyName(std::string_view name) {
  const size_t at = name.rfind(kBegun);
  return at != name.npos && name.find('/', at) == name.npos;
}

std::string CopyPrefix(const FileId& file_id) { return StrCat("files/", HexOf(file_id), "/copy-"); }

std::string NewCopyPrefix(const FileId& file_id, uint64_t number) {
  return StrCat(CopyPrefix(file_id), absl::StrFormat("%020d-", number), HexOf(RandomBytes16()));
}

absl::StatusOr<uint64_t> NumberOfCopy(std::string_view prefix) {
  const size_t at = prefix.rfind("/copy-");
  const std::string_view last = at == prefix.npos ? "" : prefix.substr(at + 6);
  const bool is_sane =
      last.size() == kNumberDigits + 1 + kRandomDigits && last[kNumberDigits] == '-' &&
      std::all_of(last.begin(), last.begin() + kNumberDigits, absl::ascii_isdigit) &&
      std::all_of(last.begin() + kNumberDigits + 1, last.end(), absl::ascii_isxdigit);
  if (!is_sane) return Wrong(StrCat(prefix.substr(0, 200), " is no copy of a file"));
  uint64_t number = 0;
  for (const char digit : last.substr(1, kNumberDigits - 1)) {  // of 19 digits: it fits
    number = number * 10 + static_cast<uint64_t>(digit - '0');
  }
  return number;
}

std::string CopyListName(std::string_view prefix) { return StrCat(prefix, "-list"); }

absl::StatusOr<std::string> GetObject(ObjectStore& store, const std::string& name,
                                      uint64_t bytes_max) {
  H5M_ASSIGN_OR_RETURN(const ObjectInfo info, store.Head(name, ObjectCache::kGetTimeout));
  if (info.size_bytes > bytes_max) {
    return Wrong(StrCat(name, ": it has ", info.size_bytes, " bytes, and may have ", bytes_max));
  }
  std::string bytes;
  while (bytes.size() < info.size_bytes) {
    const size_t at = bytes.size();
    bytes.resize(std::min(at + kGetBytes, info.size_bytes));
    H5M_RETURN_IF_ERROR(
        store.Get(name, at, absl::MakeSpan(bytes).subspan(at), ObjectCache::kGetTimeout));
  }
  return bytes;
}

absl::StatusOr<FileCopy> GetCopyList(ObjectStore& store, const std::string& prefix) {
  const std::string name = CopyListName(prefix);
  H5M_ASSIGN_OR_RETURN(const std::string object, GetObject(store, name, kCopyListBytesMax));
  auto copy = DecodeCopyList(prefix, object);
  if (copy.ok()) return copy;
  return Wrong(StrCat(name, ": ", ToStd(copy.status().message())));
}

absl::StatusOr<Part> GetPart(ObjectStore& store, const FileId& file_id, const CopyLayer& layer,
                             size_t i) {
  const std::string name = layer.PartName(i);
  auto object = GetObject(store, name, kPartObjectBytesMax);
  if (absl::IsNotFound(object.status())) return Wrong(StrCat(name, ": there is no such object"));
  H5M_RETURN_IF_ERROR(object.status());
  const PartObject& wanted = layer.parts[i];
  if (object->size() != wanted.length || Crc32c(*object) != wanted.crc32c) {
    return Wrong(StrCat(name, ": its bytes differ from those put"));
  }
  auto part = DecodePart(file_id, *object);
  if (part.ok()) return part;
  return Wrong(StrCat(name, ": ", ToStd(part.status().message())));
}

}  // namespace h5mirror::store
