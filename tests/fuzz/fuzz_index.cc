// The index of a file as bit rot or a foreign program may have left it: rows with any numbers, and
// changed bytes of the database. The store opens it, reads and writes.
#include "absl/strings/str_format.h"
#include "base/testing/fault_env.h"
#include "onion_store/disk/sqlite.h"
#include "onion_store/disk/sqlite_vfs.h"
#include "onion_store/testing/test_store.h"
#include "tests/fuzz/fuzz_input.h"

namespace h5mirror::store {
namespace {

constexpr char kName[] = "x.h5", kIndex[] = "x.h5.h5m/index";
constexpr const char* kNumbers[] = {"file.page_size_bytes",
                                    "file.generation",
                                    "file.cut_reserved",
                                    "file.durable_cut",
                                    "file.durable_size_bytes",
                                    "file.durable_seq",
                                    "file.applied_cut",
                                    "file.applied_size_bytes",
                                    "file.applied_version",
                                    "file.changed",
                                    "file.changed_pages",
                                    "file.sent_bytes",
                                    "file.server_time_ns",
                                    "file.mode_bits",
                                    "file.stage_first",
                                    "file.stage_last",
                                    "file.stage_end_bytes",
                                    "file.pages_segment",
                                    "file.pages_end_bytes",
                                    "file.head_inode",
                                    "file.head_size_bytes",
                                    "generation.generation",
                                    "generation.first_cut",
                                    "generation.direct_end_bytes",
                                    "version.version",
                                    "version.cut",
                                    "version.generation",
                                    "version.server_time_ns",
                                    "version.size_bytes",
                                    "version.changed_pages",
                                    "pages.generation",
                                    "pages.level",
                                    "pages.page",
                                    "pages.version",
                                    "pages.segment",
                                    "pages.offset",
                                    "tags.version"};

StoreOptions Options() {
  StoreOptions options;
  options.root = "/";
  options.page_size_bytes = 512;
  options.background_threads = 1;
  return options;
}

// Two generations, a rollback, a tag, and a cut that is not in the head.
std::unique_ptr<FaultEnv> MakeHistory() {
  auto env = std::make_unique<FaultEnv>();
  auto store = *Store::Open(*env, Options());
  auto file = *store->OpenOrCreateFile(kName, 512);
  auto commit = [&](SessionStart start, uint64_t offset, size_t size) {
    Writer writer(file, start, std::string(9000, 'a'));
    FuzzCheck(writer.Write(offset, std::string(size, static_cast<char>(offset))).ok());
    FuzzCheck(writer.CutDurably(BarrierKind::kCommit).ok() && writer.End().ok());
    FuzzCheck(file->WaitApplied(absl::Seconds(60)).ok());
  };
  commit(SessionStart::kContinue, 0, 9000);
  commit(SessionStart::kContinue, 700, 3000);
  commit(SessionStart::kNewGeneration, 0, 5000);
  commit(SessionStart::kContinue, 100, 400);
  FuzzCheck(file->Tag(2, "t", TagMode::kKeep).ok());
  FuzzCheck(file->Rollback(3, {}, {1}).ok());
  FuzzCheck(store->Close(absl::ZeroDuration()).ok());
  return env->CopyNow();
}

void ChangeIndex(FuzzInput& input, FaultEnv& env) {
  auto tree = *env.OpenTree("/");
  const SqliteVfs vfs(*tree);
  auto database = *SqliteDatabase::Open(vfs.name(), kIndex, SQLITE_OPEN_READWRITE);
  database->Execute("PRAGMA locking_mode = EXCLUSIVE").IgnoreError();
  for (int i = 0; i < 8 && !input.rest().empty(); ++i) {
    const uint8_t which = input.Take<uint8_t>();
    const uint8_t row = input.Take<uint8_t>();
    if (which >= std::size(kNumbers)) break;
    const std::string_view name = kNumbers[which];
    const std::string table(name.substr(0, name.find('.')));
    const std::string column(name.substr(table.size() + 1));
    const bool all = row == 0 || table == "file" || table == "generation";
    const int64_t value = input.Take<int64_t>();
    database
        ->Execute(absl::StrFormat("UPDATE OR IGNORE %s SET %s = %d%s", table, column, value,
                                  all ? "" : absl::StrFormat(" WHERE version = %d", row))
                      .c_str())
        .IgnoreError();
  }
  database->Execute("PRAGMA wal_checkpoint(TRUNCATE)").IgnoreError();
  database.reset();
  auto file = *tree->Open(kIndex, OpenKind::kWrite, 0);
  while (!input.rest().empty()) {  // Changes bytes of the database itself.
    const uint64_t offset = input.Take<uint32_t>() % *file->Size();
    WriteAt(*file, offset, input.TakeBytes(4)).IgnoreError();
  }
}

void Use(Store& store) {
  auto opened = store.OpenFile(kName);
  if (!opened.ok()) return;
  File& file = **opened;
  file.Info().IgnoreError();
  auto versions = file.ListVersions({}, 64);
  if (!versions.ok()) return;
  for (const VersionInfo& version : *versions) {
    auto reader = file.OpenVersion(version.version);
    if (!reader.ok()) continue;
    std::string bytes(std::min<uint64_t>(version.size_bytes, 16 << 10), '\0');
    (*reader)->Read(0, absl::MakeSpan(bytes)).IgnoreError();
    (*reader)->Read(version.size_bytes - bytes.size(), absl::MakeSpan(bytes)).IgnoreError();
    (*reader)->Locate(0, PageSums::kGive).IgnoreError();
    (*reader)->NextData(version.size_bytes / 2).IgnoreError();
  }
  file.WaitApplied(absl::Milliseconds(20)).IgnoreError();
  file.Rollback(versions->empty() ? 1 : versions->back().version, {}, {2}).IgnoreError();
  Writer writer(*opened, SessionStart::kContinue, std::string(1000, 'b'));
  writer.Write(0, "bytes").IgnoreError();
  writer.Cut(BarrierKind::kCommit).IgnoreError();
  writer.End().IgnoreError();
  file.WaitApplied(absl::Milliseconds(20)).IgnoreError();
}

}  // namespace
}  // namespace h5mirror::store

int h5mirror::LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace store;  // NOLINT
  static const FaultEnv& history = *MakeHistory().release();
  FuzzInput input(data, size);
  std::unique_ptr<FaultEnv> env = history.CopyNow();
  ChangeIndex(input, *env);
  auto opened = Store::Open(*env, Options());
  FuzzCheck(opened.ok());
  Use(**opened);
  (*opened)->Close(absl::ZeroDuration()).IgnoreError();
  return 0;
}
