// bench_roots: the cost of large files and of many files for the store of a server, without a
// server.
//
//   bench_roots first-commit --dir DIR --gib 10 [--restart]
//   bench_roots open-files --dir DIR --count 10000 [--at-once 16] [--flushes 2] [--memory-mib 256]
//   bench_roots flushes --dir DIR --writers 32 --seconds 5 [--threads 2]
//
// first-commit: writes a file and commits it. While the checksums of its first version are written,
// another cut is made every 50 ms. With --restart another process writes, and ends without closing
// the store once the version is durable: the checksums of the writes are lost, and all bytes are
// read back. open-files: opens so many files for writing, commits each, and flushes each of them
// twice. flushes: each writer flushes its own file without a pause.
//
// DIR may also be in CephFS: `cephfs:/DIR?conf=FILE`, as root of h5mirrord.toml. Makes a directory
// in DIR, and removes it at the end unless --keep is given. One line of JSON on stdout.
#include <dirent.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/strings.h"
#include "ceph/load_module.h"
#include "ceph/root_url.h"
#include "nlohmann/json.hpp"
#include "onion_store/store.h"

namespace h5mirror::bench {
namespace {

constexpr uint64_t kFrameBytes = 1 << 20;
constexpr uint64_t kDescriptorsPerFile = 5;  // four of each file, and those of open indexes
constexpr absl::Duration kPatience = absl::Hours(24);

struct Options {
  std::string directory = ".";
  uint64_t size_gib = 1;
  bool restarts = false;
  bool keeps = false;
  int count = 1000;
  int at_once = 1;
  int flushes = 2;
  uint64_t memory_mib = 256;
  int writers = 16;
  int threads = 2;
  int seconds = 5;
};

void Must(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}
template <typename T>
T Must(absl::StatusOr<T> result) {
  Must(result.status());
  return *std::move(result);
}

// Entries that cannot be removed stay.
void RemoveBelow(EnvTree& tree, const std::string& directory) {
  const auto entries = tree.List(directory);
  if (!entries.ok()) return;
  for (const DirectoryEntry& entry : *entries) {
    const std::string name = StrCat(directory, "/", entry.name);
    if (entry.kind == EntryKind::kDirectory) {
      RemoveBelow(tree, name);
    } else {
      tree.Remove(name).IgnoreError();
    }
  }
  tree.RemoveDirectory(directory).IgnoreError();
}

double SecondsSince(absl::Time start) { return absl::ToDoubleSeconds(absl::Now() - start); }

// A directory of its own, removed with this object.
class Place {
 public:
  explicit Place(const Options& options) : keeps_(options.keeps) {
    if (ceph::IsRootUrl(options.directory)) {
      MakeInCeph(options.directory);
    } else {
      std::string pattern = options.directory + "/bench_roots_XXXXXX";
      if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make " + pattern);
      store_options_.root = pattern;
    }
    store_options_.memory_max_bytes = options.memory_mib << 20;
    store_options_.background_threads = options.threads;
    store_options_.durable_every = absl::Seconds(1);
  }
  Place(const Place&) = delete;
  ~Place() {
    if (keeps_) return;
    std::error_code ignored;
    if (mounted_ == nullptr) std::filesystem::remove_all(store_options_.root, ignored);
    if (mounted_ == nullptr) return;
    const auto tree = mounted_->OpenTree("/");
    if (tree.ok()) RemoveBelow(**tree, store_options_.root.filename());
  }
  const store::StoreOptions& store_options() const { return store_options_; }
  Env& env() const { return mounted_ == nullptr ? Env::Posix() : *mounted_; }

 private:
  void MakeInCeph(const std::string& url) {
    mounted_ = Must(ceph::Mount(Must(ceph::ParseRootUrl(url)), [](const std::string& why) {
      std::fprintf(stderr, "bench_roots: fenced: %s\n", why.c_str());
      _exit(1);
    }));
    const std::string name = "bench_roots_" + HexOf(RandomBytes16());
    Must(Must(mounted_->OpenTree("/"))->MakeDirectory(name, 0700));
    store_options_.root = "/" + name;
  }

  const bool keeps_;
  std::unique_ptr<ceph::MountedEnv> mounted_;
  store::StoreOptions store_options_;
};

// A store on `place`, which must outlive it.
class Root {
 public:
  explicit Root(const Place& place)
      : store_(Must(store::Store::Open(place.env(), place.store_options()))) {}
  store::Store& store() { return *store_; }
  std::shared_ptr<store::File> Create(const std::string& name) {
    return Must(store_->OpenOrCreateFile(name, 0));
  }

 private:
  std::unique_ptr<store::Store> store_;
};

class Writer {
 public:
  explicit Writer(std::shared_ptr<store::File> file) : file_(std::move(file)) {
    token_ = Must(file_->Acquire());
    Must(file_->Begin(token_, store::SessionStart::kContinue, {}, {0640}));
    size_bytes_ = Must(file_->Info()).size_bytes;
  }
  void Write(uint64_t offset, std::string_view bytes) {
    const Extent extent{offset, bytes.size()};
    Must(file_->Write(token_, {&extent, 1}, {&bytes, 1}));
    size_bytes_ = std::max(size_bytes_, extent.end());
  }
  // Returns when the cut is durable; the result is the seconds that it took.
  double Flush(store::BarrierKind kind = store::BarrierKind::kSync) {
    const absl::Time start = absl::Now();
    absl::Notification done;
    absl::Status status;
    store::CutRequest request;
    request.kind = kind;
    request.size_bytes = size_bytes_;
    Must(file_
             ->Cut(token_, request,
                   [&](absl::StatusOr<store::DurableCut> result) {
                     status = result.status();
                     done.Notify();
                   })
             .status());
    done.WaitForNotification();
    Must(status);
    return SecondsSince(start);
  }
  void End() { Must(file_->End(token_, store::SessionEnd::kClean)); }
  store::File& file() { return *file_; }

 private:
  std::shared_ptr<store::File> file_;
  store::Token token_ = 0;
  uint64_t size_bytes_ = 0;
};

nlohmann::json Summary(std::vector<double> seconds) {
  if (seconds.empty()) return nullptr;
  std::sort(seconds.begin(), seconds.end());
  return {{"count", seconds.size()},
          {"median_ms", 1e3 * seconds[seconds.size() / 2]},
          {"max_ms", 1e3 * seconds.back()}};
}

struct Written {
  double write_s = 0;
  double durable_s = 0;
};

Written WriteAndCommit(const Options& options, Writer& writer) {
  std::mt19937_64 random(1);
  std::string bytes(kFrameBytes, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  const absl::Time start = absl::Now();
  for (uint64_t at = 0; at < options.size_gib << 30; at += kFrameBytes) {
    bytes[at / kFrameBytes % kFrameBytes] ^= 1;
    writer.Write(at, bytes);
  }
  Written written;
  written.write_s = SecondsSince(start);
  written.durable_s = writer.Flush(store::BarrierKind::kCommit);
  return written;
}

// Runs WriteAndCommit in a process that ends without a close. No thread may run in this one.
Written WriteAndDie(const Options& options, const Place& place) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    Root root(place);
    Writer writer(root.Create("x.h5"));
    const Written written = WriteAndCommit(options, writer);
    const bool told = write(ends[1], &written, sizeof written) == sizeof written;
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  Written written;
  const bool told = read(ends[0], &written, sizeof written) == sizeof written;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!told) throw std::runtime_error("the process that writes has failed");
  return written;
}

nlohmann::json FirstCommit(const Options& options) {
  if (options.restarts && ceph::IsRootUrl(options.directory)) {
    throw std::runtime_error("--restart forks, which libcephfs does not survive");
  }
  const Place place(options);
  Written written;
  if (options.restarts) written = WriteAndDie(options, place);
  absl::Time start = absl::Now();
  Root root(place);
  Writer writer(root.Create("x.h5"));
  if (!options.restarts) {
    written = WriteAndCommit(options, writer);
    start = absl::Now();
  }
  const store::CutNumber first = Must(writer.file().Info()).last_cut;
  std::vector<double> flushes;
  std::mt19937_64 random(1);
  while (Must(writer.file().Info()).applied_cut < first) {
    writer.Write(random() % kFrameBytes, "x");
    flushes.push_back(writer.Flush());
    absl::SleepFor(absl::Milliseconds(50));
  }
  const double applied_s = SecondsSince(start);
  writer.End();
  Must(writer.file().WaitApplied(kPatience));
  return {{"write_s", written.write_s},
          {"durable_s", written.durable_s},
          {"applied_s", applied_s},
          {"flushes_meanwhile", Summary(flushes)}};
}

uint64_t ResidentBytes() {
  malloc_trim(0);
  std::ifstream statm("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

int DescriptorCount() {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

void AllowDescriptors(const Options& options) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < kDescriptorsPerFile * static_cast<uint64_t>(options.count)) {
    throw std::runtime_error(StrCat("--count ", options.count, " takes ", kDescriptorsPerFile,
                                    " descriptors a file, and `ulimit -Hn` allows ", limit.rlim_cur,
                                    " in all"));
  }
}

// Opens and commits so many files, `options.at_once` of them at a time. Returns the seconds of each
// open.
std::vector<double> OpenAndCommit(const Options& options, Root& root,
                                  std::vector<std::unique_ptr<Writer>>& writers) {
  writers.resize(options.count);
  std::vector<double> opens(options.count);
  std::atomic<int> next{0};
  const auto open = [&] {
    for (int i = next++; i < options.count; i = next++) {
      const absl::Time start = absl::Now();
      writers[i] = std::make_unique<Writer>(root.Create(StrCat("d", i / 1000, "/x", i, ".h5")));
      opens[i] = SecondsSince(start);
      writers[i]->Write(0, std::string(10'000, 'a'));
      writers[i]->Flush(store::BarrierKind::kCommit);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < options.at_once; ++i) threads.emplace_back(open);
  open();
  for (std::thread& thread : threads) thread.join();
  return opens;
}

nlohmann::json OpenFiles(const Options& options) {
  AllowDescriptors(options);
  const Place place(options);
  Root root(place);
  const uint64_t resident_before = ResidentBytes();
  const int descriptors_before = DescriptorCount();
  std::vector<std::unique_ptr<Writer>> writers;
  std::vector<double> flushes;
  const absl::Time begin = absl::Now();
  const std::vector<double> opens = OpenAndCommit(options, root, writers);
  const double opened_s = SecondsSince(begin);
  for (int round = 0; round < options.flushes; ++round) {
    for (const auto& writer : writers) {
      writer->Write(5000, "b");
      flushes.push_back(writer->Flush());
    }
  }
  for (const auto& writer : writers) Must(writer->file().WaitApplied(kPatience));
  const double count = options.count;
  nlohmann::json result = {
      {"resident_kib_per_file",
       static_cast<double>(ResidentBytes() - resident_before) / 1024 / count},
      {"counted_kib_per_file",
       static_cast<double>(root.store().memory_used_bytes()) / 1024 / count},
      {"descriptors_per_file", (DescriptorCount() - descriptors_before) / count},
      {"open", Summary(opens)},
      {"per_s", count / opened_s},
      {"flush", Summary(flushes)}};
  for (const auto& writer : writers) writer->End();
  return result;
}

nlohmann::json Flushes(const Options& options) {
  const Place place(options);
  Root root(place);
  std::atomic<bool> ends{false};
  std::vector<std::vector<double>> flushes(options.writers);
  std::vector<std::unique_ptr<Writer>> writers;
  for (int i = 0; i < options.writers; ++i) {
    writers.push_back(std::make_unique<Writer>(root.Create(StrCat("x", i, ".h5"))));
    writers.back()->Write(0, std::string(100'000, 'a'));
    writers.back()->Flush(store::BarrierKind::kCommit);
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < options.writers; ++i) {
    threads.emplace_back([&, i] {
      for (uint64_t n = 0; !ends; ++n) {
        writers[i]->Write(n * 977 % 90'000, "b");
        flushes[i].push_back(writers[i]->Flush());
      }
    });
  }
  absl::SleepFor(absl::Seconds(options.seconds));
  ends = true;
  for (std::thread& thread : threads) thread.join();
  std::vector<double> all;
  for (const auto& some : flushes) all.insert(all.end(), some.begin(), some.end());
  for (const auto& writer : writers) writer->End();
  return {{"flushes_per_s", static_cast<double>(all.size()) / options.seconds},
          {"flush", Summary(all)}};
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures the store of a server on large files and on many files.");
  const auto add = [&](const char* name, const char* what, nlohmann::json (*run)(const Options&)) {
    CLI::App* verb = app.add_subcommand(name, what);
    verb->add_option("--dir", options.directory, "an existing directory on the disk to measure");
    verb->add_flag("--keep", options.keeps, "leave what it makes");
    verb->add_option("--memory-mib", options.memory_mib, "the store's part of memory_max")
        ->check(CLI::Range(1, 1 << 20));
    verb->add_option("--threads", options.threads, "background threads of each pool")
        ->check(CLI::Range(1, 32));
    verb->callback([&options, run] { std::cout << run(options) << std::endl; });
    return verb;
  };
  CLI::App* first = add("first-commit", "a first commit of a large file", FirstCommit);
  first->add_option("--gib", options.size_gib, "its size")->check(CLI::Range(1, 1 << 20));
  first->add_flag("--restart", options.restarts, "open the store again before the apply");
  CLI::App* many = add("open-files", "many files that are open for writing", OpenFiles);
  many->add_option("--count", options.count, "how many")->check(CLI::Range(1, 1'000'000));
  many->add_option("--at-once", options.at_once, "opens at a time")->check(CLI::Range(1, 1000));
  many->add_option("--flushes", options.flushes, "of each, then")->check(CLI::Range(0, 1000));
  CLI::App* flushes = add("flushes", "flushes without a pause", Flushes);
  flushes->add_option("--writers", options.writers, "of a file each")->check(CLI::Range(1, 1000));
  flushes->add_option("--seconds", options.seconds, "how long")->check(CLI::Range(1, 3600));
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  return 0;
}

}  // namespace
}  // namespace h5mirror::bench

int main(int argc, char** argv) {
  try {
    return h5mirror::bench::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_roots: %s\n", error.what());
    return 1;
  }
}
