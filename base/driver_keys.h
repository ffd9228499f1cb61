// The keys of the driver's configuration; docs/reference/driver-keys.md has their meanings. The
// plugin sets them. The tools read the same client.toml, and must recognise a misspelt key.
#ifndef H5MIRROR_BASE_DRIVER_KEYS_H_
#define H5MIRROR_BASE_DRIVER_KEYS_H_

#include <array>
#include <string_view>

namespace h5mirror {

// In the order in which an error lists them.
inline constexpr auto kDriverKeys = std::to_array<std::string_view>({
    "server",
    "mode",
    "under",
    "root",
    "name",
    "include",
    "exclude",
    "flush",
    "ack",
    "ack_tick",
    "ack_commit",
    "window",
    "timeout",
    "linger",
    "on_outage",
    "on_outside_change",
    "bandwidth",
    "version",
    "cache",
    "agent",
    "ca",
    "token",
    "page_size",
    "comment",
    "version_every",
    "version_min_interval",
    "spool",
    "log",
    "frame_checksum",
    "metadata",
    "metadata_memory",
    "parallel_senders",
});

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_DRIVER_KEYS_H_
