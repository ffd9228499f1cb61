#include "h5diff/dataset_facts.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/output/text.h"
#include "h5diff/value.h"

namespace h5mirror::tools {
namespace {

using hdf5::Handle;

constexpr size_t kFillTextMax = 64;

std::string FilterName(H5Z_filter_t filter, const std::string& name) {
  switch (filter) {
    case H5Z_FILTER_DEFLATE:
      return "gzip";
    case H5Z_FILTER_SHUFFLE:
      return "shuffle";
    case H5Z_FILTER_FLETCHER32:
      return "fletcher32";
    case H5Z_FILTER_SZIP:
      return "szip";
    case H5Z_FILTER_NBIT:
      return "nbit";
    case H5Z_FILTER_SCALEOFFSET:
      return "scaleoffset";
    default:
      return name.empty() ? StrCat("filter ", filter) : Printable(name);
  }
}

std::string FiltersText(hid_t dcpl) {
  std::vector<std::string> parts;
  for (int i = 0; i < H5Pget_nfilters(dcpl); ++i) {
    unsigned flags = 0, config = 0, values[8] = {};
    size_t count = 8;
    char name[64] = "";
    const H5Z_filter_t filter = H5Pget_filter2(dcpl, static_cast<unsigned>(i), &flags, &count,
                                               values, sizeof(name), name, &config);
    std::string text = FilterName(filter, name);
    // The user's choices. Values that the library derives from type and chunk are left out.
    if (filter == H5Z_FILTER_DEFLATE && count > 0) StrAppend(&text, " ", values[0]);
    parts.push_back(text);
  }
  return absl::StrJoin(parts, ", ");
}

std::string FillText(hid_t dcpl, hid_t type) {
  H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
  if (H5Pfill_value_defined(dcpl, &defined) < 0 || defined != H5D_FILL_VALUE_USER_DEFINED) {
    return "";
  }
  const Handle native(H5Tget_native_type(type, H5T_DIR_ASCEND));
  const Handle space(H5Screate(H5S_SCALAR));
  if (!native.valid()) return "";
  Values value(native.get(), space.get(), 1);
  if (H5Pget_fill_value(dcpl, native.get(), value.data()) < 0) return "not readable";
  return ElementText(native.get(), value.element(0), kFillTextMax);
}

std::string VirtualText(hid_t dcpl) {
  size_t count = 0;
  if (H5Pget_virtual_count(dcpl, &count) < 0) return "virtual";
  std::vector<std::string> parts;
  for (size_t i = 0; i < count; ++i) {
    char file[512] = "", dataset[512] = "";
    H5Pget_virtual_filename(dcpl, i, file, sizeof(file));
    H5Pget_virtual_dsetname(dcpl, i, dataset, sizeof(dataset));
    const Handle space(H5Pget_virtual_vspace(dcpl, i));
    std::vector<hsize_t> start(H5S_MAX_RANK), end(H5S_MAX_RANK);
    const int rank = H5Sget_simple_extent_ndims(space.get());
    std::string where;
    if (H5Sget_select_bounds(space.get(), start.data(), end.data()) >= 0) {
      for (int d = 0; d < rank; ++d) {
        StrAppend(&where, d > 0 ? "," : "", start[static_cast<size_t>(d)], ":",
                  end[static_cast<size_t>(d)] + 1);
      }
    }
    parts.push_back(StrCat(Printable(file), ":", Printable(dataset), " at [", where, "]"));
  }
  H5Eclear2(H5E_DEFAULT);
  return StrCat("virtual, ", count, " sources: ", absl::StrJoin(parts, "; "));
}

std::string ExternalText(hid_t dcpl) {
  const int count = H5Pget_external_count(dcpl);
  std::vector<std::string> parts;
  for (int i = 0; i < count; ++i) {
    char name[512] = "";
    off_t offset = 0;
    hsize_t size = 0;
    H5Pget_external(dcpl, static_cast<unsigned>(i), sizeof(name), name, &offset, &size);
    parts.push_back(StrCat(Printable(name), " at ", offset));
  }
  return count > 0 ? "external: " + absl::StrJoin(parts, "; ") : "";
}

struct ChunkCollector {
  const DatasetFacts& facts;
  const std::vector<hsize_t>& grid;
  ChunkTable table;
};

int TakeChunk(const hsize_t* offset, unsigned filter_mask, haddr_t address, hsize_t size,
              void* out) {
  auto& collector = *static_cast<ChunkCollector*>(out);
  uint64_t index = 0;
  for (size_t d = 0; d < collector.grid.size(); ++d) {
    index = index * collector.grid[d] + offset[d] / collector.facts.chunk[d];
  }
  collector.table.push_back({index, address, size, filter_mask});
  return H5_ITER_CONT;
}

}  // namespace

std::string DatasetFacts::ShapeAndMax() const {
  if (is_null) return "null";
  std::string text = ShapeText(dims);
  if (dims_max == dims) return text;
  std::vector<std::string> parts;
  for (const hsize_t dim : dims_max) {
    parts.push_back(dim == H5S_UNLIMITED ? "unlimited" : StrCat(dim));
  }
  return StrCat(text, " of at most (", absl::StrJoin(parts, ", "), dims.size() == 1 ? ",)" : ")");
}

std::string DatasetFacts::LayoutText() const {
  switch (layout) {
    case H5D_COMPACT:
      return "compact";
    case H5D_CONTIGUOUS:
      return "contiguous";
    case H5D_CHUNKED:
      return StrCat("chunked ", ShapeText(chunk));
    case H5D_VIRTUAL:
      return "virtual";
    default:
      return "unknown";
  }
}

std::vector<hsize_t> DatasetFacts::Grid(const std::vector<hsize_t>& shape) const {
  std::vector<hsize_t> grid(shape.size(), 1);
  for (size_t d = 0; d < shape.size() && d < chunk.size(); ++d) {
    grid[d] = std::max<hsize_t>(1, (shape[d] + chunk[d] - 1) / chunk[d]);
  }
  return grid;
}

absl::StatusOr<DatasetFacts> ReadDatasetFacts(hid_t dataset) {
  DatasetFacts facts;
  facts.dataset = dataset;
  H5M_ASSIGN_OR_RETURN(facts.type, hdf5::Own(H5Dget_type(dataset), "read the type"));
  H5M_ASSIGN_OR_RETURN(facts.space, hdf5::Own(H5Dget_space(dataset), "read the shape"));
  H5M_ASSIGN_OR_RETURN(const Handle dcpl,
                       hdf5::Own(H5Dget_create_plist(dataset), "read the properties"));
  facts.is_null = H5Sget_simple_extent_type(facts.space.get()) == H5S_NULL;
  const auto rank = static_cast<size_t>(std::max(H5Sget_simple_extent_ndims(facts.space.get()), 0));
  facts.dims.resize(rank);
  facts.dims_max.resize(rank);
  H5Sget_simple_extent_dims(facts.space.get(), facts.dims.data(), facts.dims_max.data());
  facts.layout = H5Pget_layout(dcpl.get());
  if (facts.layout == H5D_CHUNKED) {
    facts.chunk.resize(rank);
    H5Pget_chunk(dcpl.get(), static_cast<int>(rank), facts.chunk.data());
  }
  facts.filters = FiltersText(dcpl.get());
  facts.fill = FillText(dcpl.get(), facts.type.get());
  facts.mapping = facts.layout == H5D_VIRTUAL ? VirtualText(dcpl.get()) : ExternalText(dcpl.get());
  if (facts.layout == H5D_CONTIGUOUS && facts.mapping.empty()) {
    const haddr_t offset = H5Dget_offset(dataset);
    facts.allocated = offset != HADDR_UNDEF;
    facts.storage_offset = facts.allocated ? offset : 0;
    facts.storage_bytes = facts.allocated ? H5Dget_storage_size(dataset) : 0;
    H5Eclear2(H5E_DEFAULT);
  }
  return facts;
}

absl::StatusOr<ChunkTable> ReadChunkTable(const DatasetFacts& facts,
                                          const std::vector<hsize_t>& grid) {
  ChunkCollector collector{facts, grid, {}};
  H5M_RETURN_IF_ERROR(hdf5::Check(H5Dchunk_iter(facts.dataset, H5P_DEFAULT, TakeChunk, &collector),
                                  "read the index of chunks"));
  std::sort(collector.table.begin(), collector.table.end(),
            [](const Chunk& a, const Chunk& b) { return a.index < b.index; });
  return std::move(collector.table);
}

}  // namespace h5mirror::tools
