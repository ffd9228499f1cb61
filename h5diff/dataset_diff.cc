#include "h5diff/dataset_diff.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "h5diff/dataset_facts.h"
#include "h5diff/object_diff.h"
#include "h5diff/value.h"

namespace h5mirror::tools {
namespace {

using hdf5::Handle;
using Search = Evidence::Search;

constexpr size_t kRangesKept = 1000;
constexpr uint64_t kReadBytes = 1 << 20;
constexpr uint64_t kChunkBytesMax = 512 << 20;
// Elements that lead to others, of which a footprint is made by reading them.
constexpr uint64_t kElementsReadMax = 1 << 20;
constexpr uint64_t kElementsAtOnce = 512;
constexpr size_t kValueBytesMax = 256 << 20;

// Bounds the memory for values of variable length. A few bytes in a file can name a large value a
// million times.
class MemoryOfValues {
 public:
  // A transfer property list that allocates here.
  absl::StatusOr<Handle> Transfer() {
    H5M_ASSIGN_OR_RETURN(Handle list, hdf5::Own(H5Pcreate(H5P_DATASET_XFER), "read"));
    H5M_RETURN_IF_ERROR(hdf5::Check(H5Pset_vlen_mem_manager(list.get(), &MemoryOfValues::Take, this,
                                                            &MemoryOfValues::Free, nullptr),
                                    "read"));
    return list;
  }
  // To be called before each read.
  void Begin() {
    left_ = kValueBytesMax;
    is_spent_ = false;
  }
  // Whether the read since then failed for want of it.
  bool is_spent() const { return is_spent_; }

 private:
  static void* Take(size_t bytes, void* self_in) {
    auto* const self = static_cast<MemoryOfValues*>(self_in);
    if (bytes > self->left_) {
      self->is_spent_ = true;
      return nullptr;
    }
    self->left_ -= bytes;
    return std::malloc(bytes);  // Values gives it back as HDF5 does by default, by free().
  }
  static void Free(void* memory, void*) { std::free(memory); }

  size_t left_ = 0;
  bool is_spent_ = false;
};

// The data of two datasets of the same element type.
class DataDiff {
 public:
  DataDiff(DiffContext& context, const std::string& path, const DatasetFacts& old_facts,
           const DatasetFacts& new_facts)
      : context_(context),
        facts_{&old_facts, &new_facts},
        rank_(new_facts.dims.size()),
        decode_(LeadsElsewhere(new_facts.type.get())),
        // A string that is written again may get the place that it had, and so the reference that
        // it had: HDF5 gives the heap of the only element back first. A live file is looked at
        // often, and there it has to do without.
        decode_all_(context.base_offset != 0 || !context.same_base_offset ||
                    (decode_ && (context.look_at_data || !context.one_generation))),
        look_(context.look_at_data || decode_ || decode_all_) {
    change_.path = path;
    change_.object = "dataset";
    change_.what = "data";
    change_.had_old = change_.has_new = true;
  }

  absl::Status Run() {
    const DatasetFacts &one = *facts_[0], &other = *facts_[1];
    absl::Status done;
    if (one.layout == H5D_CHUNKED && other.layout == H5D_CHUNKED && one.chunk == other.chunk) {
      change_.chunked = true;
      done = Chunks();
    } else if (one.dims != other.dims) {
      return absl::OkStatus();  // The shape was reported, and nothing lies where it lay.
    } else if (!decode_ && !decode_all_ && one.InOnePiece() && other.InOnePiece()) {
      done = Pieces();
    } else {
      done = Slabs();
    }
    H5M_RETURN_IF_ERROR(done);
    if (change_.range_count > 0) context_.sink(std::move(change_));
    return absl::OkStatus();
  }

 private:
  void AddRange(ElementRange range) {
    ++change_.range_count;
    change_.element_count += range.element_count;
    if (change_.ranges.size() < kRangesKept) change_.ranges.push_back(std::move(range));
  }
  std::vector<uint64_t> PlaceOf(uint64_t element) const {
    std::vector<uint64_t> place(rank_);
    for (size_t d = rank_; d-- > 0;) {
      place[d] = element % facts_[1]->dims[d];
      element /= facts_[1]->dims[d];
    }
    return place;
  }
  // Elements [first, first + count), of which `same(i)` tells whether they are equal.
  template <typename Same>
  void AddRuns(uint64_t first, uint64_t count, Same same) {
    for (uint64_t i = 0; i < count;) {
      if (same(i)) {
        ++i;
        continue;
      }
      uint64_t end = i + 1;
      while (end < count && !same(end)) ++end;
      if (run_end_ == first + i && !change_.ranges.empty() && run_end_ > 0) {
        change_.element_count += end - i;
        if (change_.ranges.size() == change_.range_count) {
          change_.ranges.back().shape[0] += end - i;
          change_.ranges.back().element_count += end - i;
        }
      } else {
        AddRange({PlaceOf(first + i), {end - i}, end - i, ""});
      }
      run_end_ = first + end;
      i = end;
    }
  }

  // Contiguous data: its bytes, where they were moved or lie in changed pages.
  absl::Status Pieces() {
    const uint64_t size = facts_[1]->storage_bytes;
    const bool moved = facts_[0]->storage_offset != facts_[1]->storage_offset;
    if (!look_) {
      const Extent place{facts_[1]->storage_offset, size};
      if (!moved && !context_.pages.changed().Intersects(place)) return absl::OkStatus();
      context_.evidence.Add(Side::kOld, {facts_[0]->storage_offset, size}, Search::kNo);
      context_.evidence.Add(Side::kNew, place, Search::kNo);
      AddRange({});
      return absl::OkStatus();
    }
    const uint64_t element_bytes = H5Tget_size(facts_[1]->type.get());
    std::vector<Extent> ranges{{0, size}};
    if (!moved) {
      ranges = context_.pages.changed().Intersection({facts_[1]->storage_offset, size});
      for (Extent& range : ranges) range.offset -= facts_[1]->storage_offset;
    }
    uint64_t done = 0;
    for (const Extent& range : ranges) {
      const uint64_t begin = std::max(done, range.offset / element_bytes * element_bytes);
      const uint64_t end =
          std::min(size, (range.end() + element_bytes - 1) / element_bytes * element_bytes);
      const uint64_t step = std::max(kReadBytes / element_bytes, uint64_t{1}) * element_bytes;
      for (done = begin; done < end;) {
        const uint64_t length = std::min(step, end - done);
        H5M_RETURN_IF_ERROR(ComparePiece(done, length, element_bytes));
        done += length;
      }
    }
    return absl::OkStatus();
  }

  absl::Status ComparePiece(uint64_t at, uint64_t length, uint64_t element_bytes) {
    std::array<std::string, 2> bytes;
    for (const Side side : kSides) {
      H5M_ASSIGN_OR_RETURN(bytes[IndexOf(side)],
                           ReadRaw(side, {facts_[IndexOf(side)]->storage_offset + at, length}));
    }
    if (bytes[0] == bytes[1]) return absl::OkStatus();
    const hid_t type = facts_[1]->type.get();
    const auto* one = reinterpret_cast<const std::byte*>(bytes[0].data());
    const auto* other = reinterpret_cast<const std::byte*>(bytes[1].data());
    AddRuns(at / element_bytes, length / element_bytes, [&](uint64_t i) {
      const uint64_t offset = i * element_bytes;
      return std::memcmp(one + offset, other + offset, element_bytes) == 0 ||
             SameElement(type, one + offset, other + offset, context_.tolerance);
    });
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ReadRaw(Side side, Extent extent) {
    std::string bytes(extent.length, '\0');
    H5M_RETURN_IF_ERROR(context_.pages.Read(side, extent.offset, absl::MakeSpan(bytes)));
    context_.evidence.Add(side, extent, decode_ ? Search::kYes : Search::kNo);
    return bytes;
  }

  // Data of any layout, in slabs of whole rows as large as may be.
  absl::Status Slabs() {
    const std::vector<hsize_t>& dims = facts_[1]->dims;
    const uint64_t element_bytes = H5Tget_size(facts_[1]->type.get());
    // Those of variable length are larger than they look.
    const uint64_t elements_max = std::min<uint64_t>(
        decode_ ? kElementsAtOnce : UINT64_MAX, std::max<uint64_t>(1, kReadBytes / element_bytes));
    std::vector<hsize_t> start(rank_, 0), count = dims;
    if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return absl::OkStatus();
    // The slowest dimensions are taken one by one until the rest fits.
    uint64_t rest = 1;
    for (const hsize_t dim : dims) rest *= dim;
    size_t split = 0;
    for (; split < rank_ && rest > elements_max; ++split) {
      rest /= dims[split];
      count[split] = rest > elements_max ? 1 : std::max<uint64_t>(1, elements_max / rest);
    }
    uint64_t element = 0;
    while (true) {
      std::vector<hsize_t> part = count;
      uint64_t elements = 1;
      for (size_t d = 0; d < rank_; ++d) {
        part[d] = std::min(count[d], dims[d] - start[d]);
        elements *= part[d];
      }
      H5M_ASSIGN_OR_RETURN(const bool read, CompareSlab(start, part, element, elements));
      if (!read) return absl::OkStatus();
      element += elements;
      size_t d = split;
      while (d > 0 && (start[d - 1] += part[d - 1]) >= dims[d - 1]) start[--d] = 0;
      if (d == 0) return absl::OkStatus();
    }
  }

  absl::StatusOr<bool> CompareSlab(const std::vector<hsize_t>& start,
                                   const std::vector<hsize_t>& count, uint64_t first,
                                   uint64_t elements) {
    const Handle memory = MemorySpace(elements);
    Values one(facts_[0]->type.get(), memory.get(), elements);
    Values other(facts_[1]->type.get(), memory.get(), elements);
    const absl::Status read = ReadBoth(start, count, memory.get(), one, other);
    if (!read.ok()) {
      H5M_RETURN_IF_ERROR(Unreadable(read));
      return false;
    }
    AddRuns(first, elements, [&](uint64_t i) {
      return SameElement(facts_[1]->type.get(), one.element(i), other.element(i),
                         context_.tolerance);
    });
    return true;
  }

  static Handle MemorySpace(hsize_t elements) {
    return Handle(H5Screate_simple(1, &elements, nullptr));
  }

  absl::Status ReadBoth(const std::vector<hsize_t>& start, const std::vector<hsize_t>& count,
                        hid_t memory, Values& one, Values& other) {
    std::array<Values*, 2> values{&one, &other};
    H5M_ASSIGN_OR_RETURN(const Handle transfer, memory_.Transfer());
    for (size_t i = 0; i < 2; ++i) {
      const Handle space(H5Scopy(facts_[i]->space.get()));
      if (rank_ > 0) {
        H5M_RETURN_IF_ERROR(
            hdf5::Check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr,
                                            count.data(), nullptr),
                        "select"));
      }
      memory_.Begin();
      const absl::Status read =
          hdf5::Check(H5Dread(facts_[i]->dataset, facts_[i]->type.get(), memory, space.get(),
                              transfer.get(), values[i]->data()),
                      "read");
      if (memory_.is_spent()) {
        return absl::ResourceExhaustedError("its values take more than 256 MiB at once");
      }
      H5M_RETURN_IF_ERROR(read);
    }
    return absl::OkStatus();
  }

  // An error of the source ends the comparison; another one is a finding.
  absl::Status Unreadable(const absl::Status& status) {
    H5M_RETURN_IF_ERROR(context_.pages.error());
    Change change = change_;
    change.kind = ChangeKind::kUnknown;
    change.ranges.clear();
    change.note = StrCat("data cannot be read: ", ToStd(status.message()));
    context_.sink(std::move(change));
    return absl::OkStatus();
  }

  // Of the first of many chunks.
  absl::Status UnreadableOnce(const absl::Status& status) {
    return std::exchange(is_unreadable_, true) ? absl::OkStatus() : Unreadable(status);
  }

  // Chunks that only one version has, that were moved, or that lie in changed pages.
  absl::Status Chunks() {
    std::vector<hsize_t> dims(rank_);
    for (size_t d = 0; d < rank_; ++d) dims[d] = std::max(facts_[0]->dims[d], facts_[1]->dims[d]);
    grid_ = facts_[1]->Grid(dims);
    std::array<ChunkTable, 2> tables;
    for (size_t i = 0; i < 2; ++i) {
      auto table = ReadChunkTable(*facts_[i], grid_);
      if (!table.ok()) return Unreadable(table.status());
      tables[i] = *std::move(table);
    }
    auto one = tables[0].begin();
    for (auto other = tables[1].begin(); one != tables[0].end() || other != tables[1].end();) {
      const bool has_old =
          one != tables[0].end() && (other == tables[1].end() || one->index <= other->index);
      const bool has_new =
          other != tables[1].end() && (one == tables[0].end() || other->index <= one->index);
      const Chunk* before = has_old ? &*one++ : nullptr;
      const Chunk* after = has_new ? &*other++ : nullptr;
      H5M_ASSIGN_OR_RETURN(const bool same, SameStored(before, after));
      if (same && !decode_all_) continue;
      H5M_RETURN_IF_ERROR(CompareChunk(before, after, same));
    }
    return absl::OkStatus();
  }

  // Whether a chunk's stored bytes are the same. What they lead to may not be: decode_all_.
  absl::StatusOr<bool> SameStored(const Chunk* before, const Chunk* after) {
    if (before == nullptr || after == nullptr) return false;
    if (context_.base_offset != 0 || !context_.same_base_offset) return false;
    if (before->length != after->length || before->filter_mask != after->filter_mask ||
        facts_[0]->filters != facts_[1]->filters) {
      return false;
    }
    if (before->offset == after->offset &&
        !context_.pages.changed().Intersects({after->offset, after->length})) {
      return true;
    }
    if (!look_) return false;
    for (uint64_t at = 0; at < after->length; at += kReadBytes) {
      const uint64_t length = std::min(kReadBytes, after->length - at);
      H5M_ASSIGN_OR_RETURN(const std::string one,
                           ReadRaw(Side::kOld, {before->offset + at, length}));
      H5M_ASSIGN_OR_RETURN(const std::string other,
                           ReadRaw(Side::kNew, {after->offset + at, length}));
      if (one != other) return false;
    }
    return true;
  }

  // A chunk's part of the datasets: clipped to each, it may have another shape in each.
  struct ChunkPart {
    std::vector<hsize_t> start, common;  // common: the shape that both have
    ElementRange range;                  // of the larger one
    uint64_t common_count = 1, all_count = 1;
    bool in_old = true, in_new = true;
  };

  ChunkPart PartOf(uint64_t index) const {
    ChunkPart part;
    part.start.resize(rank_);
    part.common.resize(rank_);
    part.range.offset.resize(rank_);
    part.range.shape.resize(rank_);
    for (size_t d = rank_; d-- > 0;) {
      const hsize_t size = facts_[1]->chunk[d];
      const hsize_t start = index % grid_[d] * size;
      index /= grid_[d];
      const hsize_t one = Clipped(start, size, facts_[0]->dims[d]);
      const hsize_t other = Clipped(start, size, facts_[1]->dims[d]);
      part.in_old = part.in_old && one > 0;
      part.in_new = part.in_new && other > 0;
      part.start[d] = part.range.offset[d] = start;
      part.common[d] = std::min(one, other);
      part.range.shape[d] = std::max(one, other);
      part.common_count *= part.common[d];
      part.all_count *= part.range.shape[d];
    }
    return part;
  }

  // The part of [start, start + size) below `end`.
  static hsize_t Clipped(hsize_t start, hsize_t size, hsize_t end) {
    return end <= start ? 0 : std::min(size, end - start);
  }

  absl::Status CompareChunk(const Chunk* before, const Chunk* after, bool same_stored) {
    if (!look_) {
      AddStored(before, after, Search::kNo);
      AddRange({});
      return absl::OkStatus();
    }
    ChunkPart part = PartOf(before != nullptr ? before->index : after->index);
    if (!part.in_old && !part.in_new) return absl::OkStatus();  // Cut off in both.
    if (part.common_count == 0) {
      AddStored(before, after, decode_ ? Search::kYes : Search::kNo);
      part.range.element_count = part.all_count;
      AddNoted(std::move(part.range), part.in_new ? "added" : "removed");
      return absl::OkStatus();
    }
    if (part.common_count * H5Tget_size(facts_[1]->type.get()) > kChunkBytesMax) {
      if (same_stored) return UnreadableOnce(absl::ResourceExhaustedError("a chunk is too large"));
      AddNoted(std::move(part.range), "too large to look into: its stored bytes differ");
      return absl::OkStatus();
    }
    return CompareElements(std::move(part), same_stored);
  }

  absl::Status CompareElements(ChunkPart part, bool same_stored) {
    const uint64_t count = part.common_count;
    const Handle memory = MemorySpace(count);
    Values one(facts_[0]->type.get(), memory.get(), count);
    Values other(facts_[1]->type.get(), memory.get(), count);
    const absl::Status read = ReadBoth(part.start, part.common, memory.get(), one, other);
    if (!read.ok()) {
      H5M_RETURN_IF_ERROR(context_.pages.error());
      if (same_stored) return UnreadableOnce(read);
      AddNoted(std::move(part.range), StrCat("its stored bytes differ; ", ToStd(read.message())));
      return absl::OkStatus();
    }
    for (uint64_t i = 0; i < count; ++i) {
      if (!SameElement(facts_[1]->type.get(), one.element(i), other.element(i),
                       context_.tolerance)) {
        ++part.range.element_count;
      }
    }
    if (part.range.element_count > 0) AddRange(std::move(part.range));
    return absl::OkStatus();
  }

  // Notes where the bytes of the chunk lie in each version that has it.
  void AddStored(const Chunk* before, const Chunk* after, Search search) {
    for (const auto& [chunk, side] :
         {std::pair(before, Side::kOld), std::pair(after, Side::kNew)}) {
      if (chunk != nullptr) context_.evidence.Add(side, {chunk->offset, chunk->length}, search);
    }
  }

  void AddNoted(ElementRange range, std::string note) {
    range.note = std::move(note);
    AddRange(std::move(range));
  }

  DiffContext& context_;
  const std::array<const DatasetFacts*, 2> facts_;
  const size_t rank_;
  const bool decode_, decode_all_, look_;
  MemoryOfValues memory_;
  Change change_;
  bool is_unreadable_ = false;  // what UnreadableOnce() has told
  uint64_t run_end_ = 0;        // one past the last element of the last run
  std::vector<hsize_t> grid_;   // chunks in each dimension
};

void Report(DiffContext& context, const std::string& path, const char* what,
            const std::string& before, const std::string& after) {
  if (before == after) return;
  Change change;
  change.path = path;
  change.object = "dataset";
  change.what = what;
  change.old_value = before;
  change.new_value = after;
  change.had_old = !before.empty();
  change.has_new = !after.empty();
  context.sink(std::move(change));
}

// Reads all elements, a few rows of the first dimension at a time, so that the footprint has what
// they lead to.
absl::Status ReadBySlabs(hid_t dataset, const DatasetFacts& facts, Footprint& footprint) {
  const size_t rank = facts.dims.size();
  uint64_t in_row = 1;
  for (size_t d = 1; d < rank; ++d) in_row *= facts.dims[d];
  const hsize_t rows = rank == 0 ? 1 : facts.dims[0];
  const hsize_t at_once = std::max<hsize_t>(1, kElementsAtOnce / in_row);
  MemoryOfValues memory;
  H5M_ASSIGN_OR_RETURN(const Handle transfer, memory.Transfer());
  for (hsize_t row = 0; row < rows; row += at_once) {
    std::vector<hsize_t> start(rank, 0), count = facts.dims;
    const hsize_t taken = std::min(at_once, rows - row);
    if (rank > 0) {
      start[0] = row;
      count[0] = taken;
      H5M_RETURN_IF_ERROR(
          hdf5::Check(H5Sselect_hyperslab(facts.space.get(), H5S_SELECT_SET, start.data(), nullptr,
                                          count.data(), nullptr),
                      "read"));
    }
    const hsize_t elements = taken * in_row;
    const Handle in_memory(H5Screate_simple(1, &elements, nullptr));
    Values values(facts.type.get(), in_memory.get(), elements);
    memory.Begin();
    const absl::Status read = hdf5::Check(H5Dread(dataset, facts.type.get(), in_memory.get(),
                                                  facts.space.get(), transfer.get(), values.data()),
                                          "read");
    if (memory.is_spent()) {
      footprint.SetUnbounded();
      return absl::OkStatus();
    }
    H5M_RETURN_IF_ERROR(read);
  }
  return absl::OkStatus();
}

}  // namespace

std::string DatasetText(hid_t dataset) {
  const Handle type(H5Dget_type(dataset)), space(H5Dget_space(dataset));
  return StrCat(TypeText(type.get()), " ", ShapeText(space.get()));
}

absl::Status CompareDatasets(DiffContext& context, const std::string& path, hid_t old_dataset,
                             hid_t new_dataset) {
  H5M_ASSIGN_OR_RETURN(const DatasetFacts one, ReadDatasetFacts(old_dataset));
  H5M_ASSIGN_OR_RETURN(const DatasetFacts other, ReadDatasetFacts(new_dataset));
  Report(context, path, "shape", one.ShapeAndMax(), other.ShapeAndMax());
  Report(context, path, "layout", one.LayoutText(), other.LayoutText());
  Report(context, path, "filters", one.filters, other.filters);
  Report(context, path, "fill value", one.fill, other.fill);
  Report(context, path, "mapping", one.mapping, other.mapping);
  NoteTypes(context, one.type.get(), other.type.get());
  if (H5Tequal(one.type.get(), other.type.get()) <= 0) {
    const std::string before = TypeText(one.type.get()), after = TypeText(other.type.get());
    const bool same_text = before == after;
    Report(context, path, "type", before, same_text ? after + " (of another layout)" : after);
    return absl::OkStatus();
  }
  // Data elsewhere is not of this file, and null has none.
  if (!one.mapping.empty() || !other.mapping.empty() || one.is_null || other.is_null ||
      one.dims.size() != other.dims.size()) {
    return absl::OkStatus();
  }
  return DataDiff(context, path, one, other).Run();
}

absl::Status ExplainDataset(DiffContext& context, Side side, hid_t dataset) {
  if (!context.evidence.known()) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const DatasetFacts facts, ReadDatasetFacts(dataset));
  // References to other values in the file are looked for; other data need not be read.
  const auto search = LeadsElsewhere(facts.type.get()) ? Search::kYes : Search::kNo;
  const auto explain = [&](Extent extent) { context.evidence.Add(side, extent, search); };
  if (facts.InOnePiece()) {
    explain({facts.storage_offset, facts.storage_bytes});
  } else if (facts.layout == H5D_CHUNKED) {
    H5M_ASSIGN_OR_RETURN(const ChunkTable table, ReadChunkTable(facts, facts.Grid(facts.dims)));
    for (const Chunk& chunk : table) explain({chunk.offset, chunk.length});
  }
  return absl::OkStatus();
}

namespace {

// Where a dataset's elements lie in the file.
absl::Status TakeStoredPlaces(const DatasetFacts& facts, Footprint& footprint) {
  if (facts.InOnePiece() && facts.storage_bytes > 0) {
    footprint.Add({facts.storage_offset, facts.storage_bytes});
  } else if (facts.layout == H5D_CHUNKED) {
    H5M_ASSIGN_OR_RETURN(const ChunkTable table, ReadChunkTable(facts, facts.Grid(facts.dims)));
    for (const Chunk& chunk : table) {
      if (chunk.length > 0) footprint.Add({chunk.offset, chunk.length});
    }
  }
  return absl::OkStatus();
}

// Above kElementsReadMax: some number above it.
uint64_t CountElements(const DatasetFacts& facts) {
  uint64_t count = 1;
  for (const hsize_t dim : facts.dims) {
    count = dim == 0 ? 0 : count > kElementsReadMax / dim ? kElementsReadMax + 1 : count * dim;
  }
  return count;
}

}  // namespace

absl::Status TakeDataFootprint(hid_t dataset, uint64_t base_offset, Footprint& footprint) {
  H5M_ASSIGN_OR_RETURN(const DatasetFacts facts, ReadDatasetFacts(dataset));
  const bool decode = LeadsElsewhere(facts.type.get());
  // Behind a user block HDF5 does not tell where chunks are in the file.
  if (base_offset != 0 && facts.layout != H5D_COMPACT) footprint.SetUnbounded();
  H5M_RETURN_IF_ERROR(TakeStoredPlaces(facts, footprint));
  if (!decode || facts.is_null || !facts.mapping.empty()) return absl::OkStatus();
  const uint64_t count = CountElements(facts);
  if (count == 0) return absl::OkStatus();
  if (count > kElementsReadMax || count * H5Tget_size(facts.type.get()) > kChunkBytesMax) {
    footprint.SetUnbounded();
    return absl::OkStatus();
  }
  return ReadBySlabs(dataset, facts, footprint);
}

}  // namespace h5mirror::tools
