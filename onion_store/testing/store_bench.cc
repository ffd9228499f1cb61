// The cost of the store by itself, on a real disk: onion_store_bench --benchmark_filter=Rollback.
// Files lie below $H5M_BENCH_DIR, else below the working directory, and are removed. Figures are of
// one machine under one load: compare only figures of runs beside each other.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>

#include "absl/time/clock.h"
#include "benchmark/benchmark.h"
#include "onion_store/file/versions/version_reader.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kFrame = 1 << 20;

enum class Order : uint8_t { kContiguous, kRandom };

// A store on an empty directory, with one file.
class Bench {
 public:
  Bench() {
    const char* base = std::getenv("H5M_BENCH_DIR");
    std::string pattern = std::string(base == nullptr ? "." : base) + "/h5m_store_bench_XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    root_ = pattern;
    store_ = OpenStore(Env::Posix(), root_);
    file_ = *store_->OpenOrCreateFile("x.h5", kPage);
  }
  ~Bench() {
    file_.reset();
    store_.reset();
    std::filesystem::remove_all(root_);
  }

  // One session that writes `written` (0: all) of a file of `size` bytes, page by page in `order`,
  // and commits. Returns when the cut is durable; the head may lack it.
  void Commit(uint64_t size, Order order, uint64_t written = 0) {
    const Token token = Must(file_->Acquire());
    Must(file_->Begin(token, begun_ ? SessionStart::kContinue : SessionStart::kNewGeneration,
                      Origin{}, {0640}));
    begun_ = true;
    std::vector<uint64_t> pages(size / kPage);
    std::iota(pages.begin(), pages.end(), 0);
    if (order == Order::kRandom) std::shuffle(pages.begin(), pages.end(), random_);
    if (written > 0) pages.resize(written / kPage);
    std::string bytes(kFrame, '\0');
    for (size_t i = 0; i < pages.size();) {
      std::vector<Extent> extents;
      for (uint64_t n = 0; n < kFrame / kPage && i < pages.size(); ++n, ++i) {
        for (uint64_t at = 0; at < kPage; at += sizeof(uint64_t)) {
          uint64_t value = random_();
          std::memcpy(&bytes[n * kPage + at], &value, sizeof(value));
        }
        extents.push_back({pages[i] * kPage, kPage});
      }
      std::string_view piece(bytes.data(), extents.size() * kPage);
      Must(file_->Write(token, extents, {&piece, 1}));
    }
    CutDurably(token, size);
    Must(file_->End(token, SessionEnd::kClean));
  }
  void CutDurably(Token token, uint64_t size) {
    CutRequest request;
    request.kind = BarrierKind::kCommit;
    request.size_bytes = size;
    absl::Notification done;
    Must(file_->Cut(token, request, [&](absl::StatusOr<DurableCut>) { done.Notify(); }).status());
    done.WaitForNotification();
  }
  void WaitApplied() { Must(file_->WaitApplied(absl::Minutes(5))); }

  static void Must(const absl::Status& status) {
    if (status.ok()) return;
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    std::exit(1);
  }
  template <typename T>
  static T Must(absl::StatusOr<T> result) {
    Must(result.status());
    return *std::move(result);
  }

  const std::filesystem::path& root() const { return root_; }
  Store& store() { return *store_; }
  File& file() { return *file_; }

 private:
  std::filesystem::path root_;
  std::unique_ptr<Store> store_;
  std::shared_ptr<File> file_;
  std::mt19937_64 random_{7};
  bool begun_ = false;
};

double SecondsSince(absl::Time start) { return absl::ToDoubleSeconds(absl::Now() - start); }

// The CPU time of the process: load on the machine does not stretch it.
double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](timeval time) { return time.tv_sec + time.tv_usec * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// From the durable overwrite of range(0) MiB in a file of range(1) MiB to the head that holds it.
void BM_Apply(benchmark::State& state, Order order) {
  const uint64_t written = uint64_t(state.range(0)) << 20, size = uint64_t(state.range(1)) << 20;
  for (auto _ : state) {
    Bench bench;
    bench.Commit(size, Order::kContiguous);
    bench.WaitApplied();
    sync();
    const double cpu_before_s = CpuSeconds();
    bench.Commit(size, order, written);
    absl::Time start = absl::Now();
    const double cpu_durable_s = CpuSeconds();
    bench.WaitApplied();
    state.SetIterationTime(SecondsSince(start));
    state.counters["cpu_s"] = CpuSeconds() - cpu_durable_s;
    state.counters["write_cpu_s"] = cpu_durable_s - cpu_before_s;
  }
  state.SetBytesProcessed(state.iterations() * written);
}
BENCHMARK_CAPTURE(BM_Apply, random, Order::kRandom)
    ->Args({512, 512})
    ->Args({512, 2048})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Apply, contiguous, Order::kContiguous)
    ->Args({512, 512})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

// A rollback over range(0) MiB that changed at random.
void BM_Rollback(benchmark::State& state) {
  const uint64_t size = uint64_t(state.range(0)) << 20;
  for (auto _ : state) {
    Bench bench;
    bench.Commit(size, Order::kContiguous);
    bench.WaitApplied();
    bench.Commit(size, Order::kRandom);
    bench.WaitApplied();
    sync();
    absl::Time start = absl::Now();
    Bench::Must(bench.file().Rollback(1, {}, {1}));
    state.SetIterationTime(SecondsSince(start));
    start = absl::Now();
    bench.WaitApplied();
    state.counters["apply_s"] = SecondsSince(start);
  }
}
BENCHMARK(BM_Rollback)->Arg(512)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);

// A version of range(0) MiB as a file of its own, beside cp(1) of the head; both page caches warm.
// `old`: a version of which range(1) pages have changed since.
void BM_Export(benchmark::State& state) {
  const uint64_t size = uint64_t(state.range(0)) << 20;
  Bench bench;
  bench.Commit(size, Order::kContiguous);
  bench.WaitApplied();
  if (state.range(1) > 0) bench.Commit(size, Order::kRandom, state.range(1) * kPage);
  bench.WaitApplied();
  sync();
  const std::string head = (bench.root() / "x.h5").string(), copy = head + ".cp";
  double cp_s = 0, cp_synced_s = 0, export_s = 0, export_synced_s = 0, read_s = 0;
  for (auto _ : state) {
    absl::Time start = absl::Now();
    if (std::system(("cp " + head + " " + copy).c_str()) != 0) std::abort();
    cp_s += SecondsSince(start);
    if (std::system(("sync " + copy).c_str()) != 0) std::abort();
    cp_synced_s += SecondsSince(start);
    std::filesystem::remove(copy);
    auto reader = Bench::Must(bench.file().OpenVersion(1));
    auto tree = Bench::Must(Env::Posix().OpenTree(bench.root()));
    auto out = Bench::Must(tree->Open("out", OpenKind::kCreateFresh, 0600));
    start = absl::Now();
    Bench::Must(static_cast<VersionReaderImpl&>(*reader).CopyTo(*out));
    state.SetIterationTime(SecondsSince(start));
    export_s += SecondsSince(start);
    Bench::Must(out->Sync());
    export_synced_s += SecondsSince(start);
    out.reset();
    std::filesystem::remove(bench.root() / "out");
    // As the server reads for a client, in half mebibytes.
    std::string bytes(512 << 10, '\0');
    start = absl::Now();
    for (uint64_t at = 0; at < size; at += bytes.size()) {
      Bench::Must(reader->Read(at, absl::MakeSpan(bytes)));
    }
    read_s += SecondsSince(start);
  }
  state.counters["cp_s"] = cp_s / state.iterations();
  state.counters["to_cp"] = export_s / cp_s;
  state.counters["to_cp_synced"] = export_synced_s / cp_synced_s;
  state.counters["read_s"] = read_s / state.iterations();
}
BENCHMARK(BM_Export)
    ->Args({2048, 0})
    ->Args({2048, 65536})
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);

// The first commit of a file, and the later ones of one that is open.
void BM_SmallCommit(benchmark::State& state) {
  Bench bench;
  bench.Commit(kPage, Order::kContiguous);
  bench.WaitApplied();
  for (auto _ : state) {
    absl::Time start = absl::Now();
    bench.Commit(kPage, Order::kContiguous);
    state.SetIterationTime(SecondsSince(start));
    bench.WaitApplied();
  }
}
BENCHMARK(BM_SmallCommit)->UseManualTime()->Iterations(50)->Unit(benchmark::kMillisecond);

// The cost of a reader's metadata: runs of a page, range(0) pages apart, of a cut of 64 MiB whose
// head is in the page cache. `to_single`: together, of a Read() of each.
void BM_PinnedRanges(benchmark::State& state) {
  constexpr uint64_t kSize = uint64_t{64} << 20;
  Bench bench;
  bench.Commit(kSize, Order::kContiguous);
  bench.WaitApplied();
  const auto snapshot = Bench::Must(bench.file().PinNewestCut());
  std::vector<Extent> ranges;
  for (uint64_t at = 0; at < kSize; at += (1 + state.range(0)) * kPage) {
    ranges.push_back({at, kPage});
  }
  std::string bytes(TotalBytes(ranges), '\0');
  double together_s = 0, single_s = 0;
  for (auto _ : state) {
    absl::Time start = absl::Now();
    Bench::Must(snapshot->ReadRanges(ranges, absl::MakeSpan(bytes)));
    state.SetIterationTime(SecondsSince(start));
    together_s += SecondsSince(start);
    start = absl::Now();
    for (size_t i = 0; i < ranges.size(); ++i) {
      Bench::Must(snapshot->Read(ranges[i].offset, absl::MakeSpan(&bytes[i * kPage], kPage)));
    }
    single_s += SecondsSince(start);
  }
  state.counters["to_single"] = together_s / single_s;
}
BENCHMARK(BM_PinnedRanges)
    ->Arg(1)
    ->Arg(3)
    ->Arg(4)
    ->Arg(15)
    ->UseManualTime()
    ->Iterations(21)
    ->Unit(benchmark::kMillisecond);

// A long history: range(0) versions of a file of 64 MiB, each over 20 pages; then commits, opens of
// any version, and a prune of nine versions of ten.
void BM_LongHistory(benchmark::State& state) {
  constexpr uint64_t kSize = uint64_t{64} << 20;
  constexpr int kSamples = 200;
  for (auto _ : state) {
    Bench bench;
    bench.Commit(kSize, Order::kContiguous);
    const auto commits_s = [&](int64_t count) {
      const absl::Time start = absl::Now();
      for (int64_t i = 0; i < count; ++i) {
        bench.Commit(kSize, Order::kRandom, 20 * kPage);
        bench.WaitApplied();
      }
      return SecondsSince(start) / static_cast<double>(count);
    };
    commits_s(kSamples);  // Warm.
    state.counters["commit_first_ms"] = 1e3 * commits_s(kSamples);
    commits_s(state.range(0) - 3 * kSamples - 1);
    state.counters["commit_last_ms"] = 1e3 * commits_s(kSamples);
    std::mt19937_64 random(1);
    absl::Time start = absl::Now();
    for (int i = 0; i < kSamples; ++i) {
      std::string bytes(kPage, '\0');
      const VersionNumber version = 1 + random() % state.range(0);
      auto reader = Bench::Must(bench.file().OpenVersion(version));
      Bench::Must(reader->Read(random() % (kSize / kPage) * kPage, absl::MakeSpan(bytes)));
    }
    state.counters["open_ms"] = 1e3 * SecondsSince(start) / kSamples;
    const auto history_bytes = [&](const char* prefix) {
      uint64_t bytes = 0;
      for (const auto& entry : std::filesystem::directory_iterator(bench.root() / "x.h5.h5m")) {
        if (entry.path().filename().string().rfind(prefix, 0) == 0) bytes += entry.file_size();
      }
      return static_cast<double>(bytes) / (1 << 20);
    };
    state.counters["pages_before_mb"] = history_bytes("pages-");
    state.counters["index_before_mb"] = history_bytes("index");
    std::vector<VersionNumber> doomed;
    for (VersionNumber version = 1; version < state.range(0); ++version) {
      if (version % 10 != 0) doomed.push_back(version);
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const double peak_before_kb = static_cast<double>(usage.ru_maxrss);
    start = absl::Now();
    auto job = Bench::Must(bench.file().StartPrune(doomed));
    double longest_s = 0;
    for (bool done = false; !done;) {
      const absl::Time step = absl::Now();
      done = Bench::Must(job->Step()).done;
      longest_s = std::max(longest_s, SecondsSince(step));
    }
    state.SetIterationTime(SecondsSince(start));
    getrusage(RUSAGE_SELF, &usage);
    state.counters["longest_step_ms"] = 1e3 * longest_s;
    state.counters["peak_grew_mb"] = (static_cast<double>(usage.ru_maxrss) - peak_before_kb) / 1024;
    state.counters["pages_after_mb"] = history_bytes("pages-");
    state.counters["index_after_mb"] = history_bytes("index");
  }
}
BENCHMARK(BM_LongHistory)
    ->Arg(2'000)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace h5mirror::store

BENCHMARK_MAIN();
