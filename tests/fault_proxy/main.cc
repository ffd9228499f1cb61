// fault_proxy: a TCP proxy that makes a loopback connection as slow and unreliable as real ones.
//
//   fault_proxy --to 127.0.0.1:7447 --port-file FILE --delay-us 500 [--control]
//
// Each byte arrives late by the delay, in each direction: a round trip takes twice the delay
// longer. The throughput is the machine's. With --control it obeys lines of standard input
// (control.h). On SIGTERM, or at the end of that input, it ends and prints its totals as JSON.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "tests/fault_proxy/control.h"
#include "tests/fault_proxy/proxy.h"

namespace h5mirror::fault_proxy {
namespace {

int Main(int argc, char** argv) {
  std::string to;
  std::string port_file;
  int delay_us = 0;
  bool control = false;
  CLI::App app("A TCP proxy on a free loopback port that delays, holds, loses and breaks.");
  app.add_option("--to", to, "the server, IPV4:PORT")->required();
  app.add_option("--port-file", port_file, "where to write the port")->required();
  app.add_option("--delay-us", delay_us, "each way")->check(CLI::Range(0, 10'000'000));
  app.add_flag("--control", control, "obey lines of standard input, and end with it");
  CLI11_PARSE(app, argc, argv);
  Proxy proxy(ParseAddress(to), std::chrono::microseconds(delay_us));
  std::ofstream(port_file + ".tmp") << proxy.port() << "\n";
  std::rename((port_file + ".tmp").c_str(), port_file.c_str());
  proxy.Run(control);
  std::cout << AsJson(proxy) << std::endl;
  return 0;
}

}  // namespace
}  // namespace h5mirror::fault_proxy

int main(int argc, char** argv) {
  try {
    return h5mirror::fault_proxy::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fault_proxy: %s\n", error.what());
    return 1;
  }
}
