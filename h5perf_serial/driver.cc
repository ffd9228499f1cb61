#include "h5perf_serial/driver.h"

#include <H5FDh5mirror.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/process/install_dirs.h"

namespace h5mirror::perf {
namespace {

namespace fs = std::filesystem;

constexpr std::array kStock = {"sec2",   "stdio",  "core",     "split", "multi",
                               "family", "direct", "splitter", "onion"};
constexpr size_t kGrowthBytes = 1 << 20;  // of core, and of a member of family
constexpr char kMultiLetters[] = "sbrglo";

bool IsStock(const std::string& name) {
  return std::find(kStock.begin(), kStock.end(), name) != kStock.end();
}

bool Mirrors(const Driver& driver) {
  return driver.name == kMirrorDriver && driver.config.find("mode=off") == std::string::npos;
}

std::string CopyName(const std::string& base) { return base + "-copy.h5"; }

absl::Status SetSplitter(hid_t fapl, const std::string& base) {
  H5FD_splitter_vfd_config_t config = {};
  config.magic = H5FD_SPLITTER_MAGIC;
  config.version = H5FD_CURR_SPLITTER_VFD_CONFIG_VERSION;
  config.rw_fapl_id = H5P_DEFAULT;
  config.wo_fapl_id = H5P_DEFAULT;
  const std::string copy = CopyName(base);
  if (copy.size() >= sizeof config.wo_path) {
    return absl::InvalidArgumentError(StrCat("too long for the splitter: ", copy));
  }
  copy.copy(config.wo_path, copy.size());
  return hdf5::Check(H5Pset_fapl_splitter(fapl, &config), "driver splitter");
}

absl::Status SetOnion(hid_t fapl) {
  H5FD_onion_fapl_info_t info = {};
  info.version = H5FD_ONION_FAPL_INFO_VERSION_CURR;
  info.backing_fapl_id = H5P_FILE_ACCESS_DEFAULT;
  info.page_size = 4096;
  info.store_target = H5FD_ONION_STORE_TARGET_ONION;
  info.revision_num = H5FD_ONION_FAPL_INFO_REVISION_ID_LATEST;
  return hdf5::Check(H5Pset_fapl_onion(fapl, &info), "driver onion");
}

#ifdef H5_HAVE_DIRECT
constexpr bool kHaveDirect = true;
herr_t SetDirect(hid_t fapl) { return H5Pset_fapl_direct(fapl, 1024, 4096, 8 * 4096); }
#else
constexpr bool kHaveDirect = false;
herr_t SetDirect(hid_t) { return -1; }
#endif

herr_t SetStock(const std::string& name, hid_t fapl) {
  if (name == "sec2") return H5Pset_fapl_sec2(fapl);
  if (name == "stdio") return H5Pset_fapl_stdio(fapl);
  if (name == "core") return H5Pset_fapl_core(fapl, kGrowthBytes, true);
  if (name == "split") return H5Pset_fapl_split(fapl, "-m.h5", H5P_DEFAULT, "-r.h5", H5P_DEFAULT);
  if (name == "multi") return H5Pset_fapl_multi(fapl, nullptr, nullptr, nullptr, nullptr, false);
  if (name == "family") return H5Pset_fapl_family(fapl, kGrowthBytes, H5P_DEFAULT);
  return SetDirect(fapl);
}

// All names that the driver may make, in order; of a family as many as there are.
std::vector<std::string> PossibleFiles(const Driver& driver, const std::string& base) {
  const std::string plain = base + ".h5";
  if (driver.name == "split") return {plain + "-m.h5", plain + "-r.h5"};
  if (driver.name == "splitter") return {plain, CopyName(base)};
  if (driver.name == "onion") return {plain, plain + ".onion"};
  std::vector<std::string> files;
  if (driver.name == "multi") {
    for (const char* letter = kMultiLetters; *letter != '\0'; ++letter) {
      files.push_back(StrCat(base, "-", std::string(1, *letter), ".h5"));
    }
  } else if (driver.name == "family") {
    std::error_code error;
    for (int member = 0;; ++member) {
      char number[16];
      snprintf(number, sizeof number, "%05d", member);
      files.push_back(StrCat(base, number, ".h5"));
      if (!fs::exists(files.back(), error)) break;
    }
  } else {
    files.push_back(plain);
  }
  return files;
}

}  // namespace

absl::StatusOr<Driver> ParseDriver(std::string_view text) {
  const std::string whole = absl::AsciiStrToLower(ToAbsl(text));
  if (whole == "mig" || whole == "metadata=memory") {
    return Driver{kMirrorDriver, "mode=off;metadata=memory", whole};
  }
  H5M_ASSIGN_OR_RETURN(Driver driver, ParseDriverName(text));
  const std::string lower = absl::AsciiStrToLower(driver.name);
  if (!IsStock(lower)) return driver;
  if (text.size() > driver.name.size()) {
    return absl::InvalidArgumentError(
        StrCat("driver ", lower, " takes no configuration: -v ", text));
  }
  driver.name = driver.label = lower;
  if (driver.name == "direct" && !kHaveDirect) {
    return absl::InvalidArgumentError(
        "this HDF5 was built without the direct driver (HDF5_ENABLE_DIRECT_VFD)");
  }
  return driver;
}

void AddPluginDir() {
  if (const auto dir = tools::FindPluginDir(""); dir.ok()) H5PLappend(dir->c_str());
  H5Eclear2(H5E_DEFAULT);
}

absl::Status SetDriver(const Driver& driver, const std::string& base, hid_t fapl) {
  if (driver.name == "splitter") return SetSplitter(fapl, base);
  if (driver.name == "onion") return SetOnion(fapl);
  if (IsStock(driver.name)) {
    return hdf5::Check(SetStock(driver.name, fapl), StrCat("driver ", driver.name));
  }
  if (H5Pset_driver_by_name(fapl, driver.name.c_str(), driver.config.c_str()) >= 0) {
    return absl::OkStatus();
  }
  const absl::Status why = hdf5::ErrorOf(StrCat("there is no file driver ", driver.name));
  return absl::InvalidArgumentError(
      StrCat(ToStd(why.message()),
             "; stock ones are sec2, stdio, core, split, multi, family, direct, "
             "splitter and onion, plugins are looked for in HDF5_PLUGIN_PATH"));
}

std::string Hdf5Name(const Driver& driver, const std::string& base) {
  if (driver.name == "multi") return base;
  if (driver.name == "family") return base + "%05d.h5";
  return base + ".h5";
}

std::vector<std::string> DataFiles(const Driver& driver, const std::string& base) {
  std::vector<std::string> files = PossibleFiles(driver, base);
  std::erase_if(files, [](const std::string& file) {
    std::error_code error;
    return !fs::exists(file, error);
  });
  return files;
}

void RemoveDataFiles(const Driver& driver, const std::string& base) {
  std::error_code error;
  for (const std::string& file : DataFiles(driver, base)) {
    fs::remove(file, error);
    fs::remove(file + ".recovery", error);  // Onion's, where a write was cut short.
    if (driver.name == kMirrorDriver) fs::remove_all(file + ".h5m", error);
  }
}

std::string MirrorComplaint(const Driver& driver, hid_t file) {
  if (!Mirrors(driver)) return "";
  H5FDh5mirror_status_t status = {};
  if (H5FDh5mirror_status(file, &status) < 0) {
    H5Eclear2(H5E_DEFAULT);
    return "";
  }
  switch (status.state) {
    case H5FD_H5MIRROR_OFF:
    case H5FD_H5MIRROR_BEHIND:
    case H5FD_H5MIRROR_DIVERGED:
      return StrCat(H5FDh5mirror_state_name(status.state), *status.message ? ": " : "",
                    status.message);
    default:
      return "";
  }
}

std::string ClosedMirrorComplaint(const Driver& driver, const std::string& base) {
  std::error_code error;
  if (!Mirrors(driver) || !fs::exists(Hdf5Name(driver, base) + ".h5m/dirty", error)) return "";
  return "degraded: the server lacks what is noted in its .h5m/dirty";
}

}  // namespace h5mirror::perf
