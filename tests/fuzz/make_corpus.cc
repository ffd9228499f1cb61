// Writes the fuzzers' first inputs with the code's own writers: make_corpus DIRECTORY.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/crc32c.h"
#include "base/dirty_map.h"
#include "base/testing/fault_env.h"
#include "onion_store/disk/coding.h"
#include "onion_store/pages/page_packing.h"
#include "onion_store/pages/page_segments.h"
#include "onion_store/stage/stage_log.h"
#include "rpc/frame_codec.h"

namespace h5mirror {
namespace {

using store::PutInt;

std::filesystem::path directory;

void Put(const std::string& fuzzer, const std::string& name, std::string_view bytes) {
  std::filesystem::create_directories(directory / fuzzer);
  std::ofstream(directory / fuzzer / name, std::ios::binary) << bytes;
}

std::string FileBytes(EnvTree& tree, const std::string& name) {
  auto file = *tree.Open(name, OpenKind::kRead, 0);
  std::string bytes(*file->Size(), '\0');
  ReadOrZeros(*file, 0, absl::MakeSpan(bytes)).IgnoreError();
  return bytes;
}

void MakeStages() {
  FaultEnv env;
  auto tree = *env.OpenTree("/");
  tree->MakeDirectory("d", 0700).IgnoreError();
  store::StageLog log(*tree, "d", {1});
  const std::vector<Extent> extents{{100, 3}, {700, 2}};
  const std::vector<std::string_view> pieces{"abcd", "e"};
  log.AppendWrite(1, 0, extents, pieces).IgnoreError();
  log.AppendTruncate(1, 0, 400).IgnoreError();
  log.AppendCut(1, 7, 702, extents).IgnoreError();
  const store::Revert revert{{0, 512}, store::MakePagesLocation(1, 68), 1};
  log.AppendReverts(1, 7, {&revert, 1}).IgnoreError();
  log.AppendCut(1, 8, 702, {}).IgnoreError();
  const std::string bytes = FileBytes(*tree, "d/stage-000001");
  Put("stage", "all_kinds", std::string(1, '\1') + bytes);
  Put("stage", "as_it_is", std::string(1, '\0') + bytes);
  Put("stage", "torn", std::string(1, '\1') + bytes.substr(0, bytes.size() - 30));
}

void MakePages() {
  for (int level : {0, 3}) {
    for (bool packs : {false, true}) {
      FaultEnv env;
      auto tree = *env.OpenTree("/");
      tree->MakeDirectory("d", 0700).IgnoreError();
      store::PageSegments pages(*tree, "d", {1}, 512, 1, 0);
      const std::string bytes(size_t{512} << level, 'p');
      const std::vector<uint32_t> crcs(size_t{1} << level, Crc32c(bytes.substr(0, 512)));
      std::string packed;
      packs = packs && store::PackPages(bytes, &packed);
      const auto run = packs ? pages.AppendPacked(1, level, 8, 1, packed, crcs)
                             : pages.Append(1, level, 8, 1, bytes, crcs);
      run.status().IgnoreError();
      pages.Sync().IgnoreError();
      std::string input(1, '\1');
      PutInt<uint8_t>(&input, level);
      PutInt<uint32_t>(&input, 8 >> level);
      PutInt<uint16_t>(&input, 0);
      PutInt<uint8_t>(&input, 0);
      PutInt<uint16_t>(&input, packed.size());
      const std::string name = packs ? "packed_level_" : "level_";
      Put("pages", name + std::to_string(level), input + FileBytes(*tree, "d/pages-000001"));
    }
  }
}

// Rows as fuzz_index.cc takes them: column, version, number.
void MakeIndexes() {
  const int64_t numbers[] = {0, -1, 1, INT64_MAX, INT64_MIN, int64_t{1} << 40};
  for (uint8_t column = 0; column < 37; ++column) {
    std::string input;
    PutInt<uint8_t>(&input, column);
    PutInt<uint8_t>(&input, column % 3);
    PutInt<int64_t>(&input, numbers[column % std::size(numbers)]);
    Put("index", "column_" + std::to_string(column), input);
  }
  std::string bytes(2, '\xff');
  for (uint32_t offset : {28, 4096 * 2, 4096 * 3 + 3}) PutInt<uint64_t>(&bytes, offset);
  Put("index", "bytes", bytes);
}

std::string Message(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  buffer.Dump(&slices).ok();
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(slice.begin(), slice.end());
  return bytes;
}

void MakeFrames() {
  const std::vector<Extent> extents{{0, 4}, {1 << 20, 2}};
  const std::vector<grpc::Slice> data{grpc::Slice("abcdef")};
  for (uint16_t slice_bytes : {1, 5, 1000}) {
    std::string input;
    PutInt<uint16_t>(&input, slice_bytes);
    const std::string name = "_in_slices_of_" + std::to_string(slice_bytes);
    Put("frame", "writes" + name, input + Message(rpc::EncodeWrites(extents, 7, data)));
    v1::MirrorFileRequest truncate, barrier;
    truncate.mutable_truncate()->set_size_bytes(100);
    barrier.mutable_barrier()->set_seq(3);
    Put("frame", "truncate" + name, input + Message(rpc::EncodeRequest(truncate)));
    Put("frame", "barrier" + name, input + Message(rpc::EncodeRequest(barrier)));
  }
}

void MakeDirtyMaps() {
  DirtyMap map;
  map.id.fill(1);
  map.claim = DirtyMap::Claim::kResume;
  map.session_id.fill(2);
  map.base_cut = 3;
  map.cut_newest = 5;
  map.stat = {.inode = 7, .size_bytes = 9000, .mtime_ns = 1, .ctime_ns = 1};
  map.truncate = 4096;
  map.extents.Add({0, 96});
  map.extents.Add({4096, 4904});
  const std::string bytes = DirtyMapToBytes(map);
  Put("dirty_map", "summed", std::string(1, '\1') + bytes);
  Put("dirty_map", "as_it_is", std::string(1, '\0') + bytes);
  Put("dirty_map", "torn", std::string(1, '\1') + bytes.substr(0, bytes.size() - 20));
}

void MakeArchivedCopies() {
  const std::string copy =
      "files/01020300000000000000000000000000/copy-00000000000000000005-"
      "00112233445566778899aabbccddeeff";
  const std::string layer =
      R"({"from": 0, "from_cut": 0, "weight": 1, "first": 0, "parts": [[80, 7]], "prefix": ")" +
      copy + "\"}";
  const auto list = [&](const std::string& name, const std::string& size) {
    return R"(l{"format": 1, "file_id": "01020300000000000000000000000000", "name": ")" + name +
           R"(", "owner": "unix:anna", "time_ns": 5, "version_time_ns": 4, "mode_bits": 416,)"
           R"("page_size_bytes": 4096, "versions": 1, "index_bytes": 8192, "index": )" +
           layer + R"(, "heads": [{"generation": 1, "version": 1, "cut": 1, "size_bytes": )" +
           size + R"(, "layers": [)" + layer + "]}]}";
  };
  Put("archived_copy", "list", list("d/x.h5", "5000"));
  Put("archived_copy", "list_of_a_name_outside", list("../x.h5", "5000"));
  Put("archived_copy", "list_of_a_size_that_cannot_be", list("x.h5", "18446744073709551615"));
  const auto part = [](uint32_t extents, uint64_t raw_bytes, const std::string& stored) {
    std::string bytes = "p";
    bytes.append(reinterpret_cast<const char*>(&extents), sizeof(extents));
    bytes.append(reinterpret_cast<const char*>(&raw_bytes), sizeof(raw_bytes));
    return bytes + stored;
  };
  const std::string table("\5\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 16);
  Put("archived_copy", "part", part(1, 19, table + "abc"));
  Put("archived_copy", "part_with_too_many_extents", part(0x10000000, 19, table + "abc"));
  Put("archived_copy", "part_that_unpacks_to_much", part(1, uint64_t{1} << 40, table + "abc"));
}

void MakeConfigs() {
  Put("client_config", "string", "server=node7:7447;root=/data;exclude=*.tmp.h5;window=64MiB");
  Put("client_config", "string_of_knobs", "mode=mirror;flush=sync;ack=durable;timeout=5s");
  Put("client_config", "file",
      "@server = \"node7\"\nexclude = [\"*.tmp\", \"x\"]\ntimeout = \"5s\"\n");
  Put("server_config", "file",
      "root = \"/srv\"\nlisten = [\"127.0.0.1:0\", \"unix:/run/x\"]\nmemory_max = \"1GiB\"\n"
      "umask = \"0027\"\nlease_ttl = \"10s\"\nmax_sessions = 4\n");
  Put("server_config", "unknown_key", "root = \"/srv\"\nlisten_ = 1\n[a.b]\nc = 2026-01-01\n");
  const std::string claims =
      R"({"iss": "https://i", "aud": ["a"], "sub": "u", "exp": 4e9, "nbf": 1, "groups": ["g"]})";
  Put("token", "signed_by_nobody",
      "p{\"alg\": \"ES256\", \"kid\": \"e\"}\n" + claims + "\n" + std::string(64, 's'));
  Put("token", "none", "p{\"alg\": \"none\"}\n" + claims + "\n");
  Put("token", "whole", "teyJhbGciOiJFUzI1NiJ9.e30.c2ln");
  Put("token", "keys",
      "k{\"keys\": [{\"kty\": \"EC\", \"kid\": \"e\", \"crv\": \"P-256\", "
      "\"x\": \"axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY\", "
      "\"y\": \"T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU\"}, {\"kty\": \"oct\"}]}");
}

}  // namespace
}  // namespace h5mirror

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_corpus DIRECTORY\n");
    return 2;
  }
  h5mirror::directory = argv[1];
  h5mirror::MakeStages();
  h5mirror::MakePages();
  h5mirror::MakeIndexes();
  h5mirror::MakeArchivedCopies();
  h5mirror::MakeDirtyMaps();
  h5mirror::MakeFrames();
  h5mirror::MakeConfigs();
  return 0;
}
