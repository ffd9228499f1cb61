// h5mirror_cluster_sim: plays seeds, or replays one with its trace.
#include <charconv>
#include <cstdio>
#include <cstring>

#include "tests/cluster_sim/simulation.h"

namespace {

int Usage() {
  std::fputs("usage: h5mirror_cluster_sim [N | --seed S]\n", stderr);
  return 2;
}

bool Parse(const char* text, uint64_t* number) {
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, *number);
  return error == std::errc() && stop == end;
}

int Replay(uint64_t seed) {
  const auto outcome = h5mirror::cluster_sim::Simulate(seed, h5mirror::cluster_sim::Tracing::kOn);
  std::fputs(h5mirror::cluster_sim::Describe(seed, outcome, SIZE_MAX).c_str(), stdout);
  return outcome.violation.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t number = 10000;
  if (argc == 3 && std::strcmp(argv[1], "--seed") == 0) {
    return Parse(argv[2], &number) ? Replay(number) : Usage();
  }
  if (argc > 2 || (argc == 2 && !Parse(argv[1], &number))) return Usage();
  uint64_t seed = 0;
  const auto outcome = h5mirror::cluster_sim::SimulateMany(1, number, &seed);
  if (outcome.violation.empty()) {
    std::printf("%llu seeds, %llu takeovers: all promises were kept\n",
                static_cast<unsigned long long>(number),
                static_cast<unsigned long long>(outcome.takeovers));
    return 0;
  }
  std::fputs(h5mirror::cluster_sim::Describe(seed, outcome, 200).c_str(), stdout);
  return 1;
}
