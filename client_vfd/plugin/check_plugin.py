#!/usr/bin/env python3
"""Checks what the built plugin asks of its host: symbols, libraries, flags, time to load.

usage: check_plugin.py PLUGIN.so CONNECTOR.so SESSION.so EMBEDDED.so"""
import pathlib
import subprocess
import sys

EXPORTS = {"H5PLget_plugin_type", "H5PLget_plugin_info"}
NEEDED = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
LOAD_MS_MAX = 2.0


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def dynamic_symbols(path, *flags):
    lines = run("nm", "-D", *flags, path).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line}


def dynamic_entries(path):
    return run("readelf", "-dW", path)


def load_ms(path):
    """The best of a few fresh processes, so that a busy machine does not decide."""
    script = ("import ctypes, time; t = time.perf_counter(); "
              f"ctypes.CDLL({path!r}); print((time.perf_counter() - t) * 1e3)")
    return min(float(run(sys.executable, "-c", script)) for _ in range(9))


def problems_of_plugin(path):
    problems = []
    exports = dynamic_symbols(path, "--defined-only")
    if exports != EXPORTS:
        problems.append(f"{path} exports {sorted(exports)}, not just {sorted(EXPORTS)}")
    undefined = {name for name in dynamic_symbols(path, "--undefined-only") if name.startswith("H5")}
    if undefined:
        problems.append(f"{path} has undefined HDF5 symbols: {sorted(undefined)}")
    needed = {line.split("[")[1].rstrip("]") for line in dynamic_entries(path).splitlines() if "(NEEDED)" in line}
    if not needed <= NEEDED:
        problems.append(f"{path} needs {sorted(needed - NEEDED)}")
    milliseconds = load_ms(path)
    print(f"loading {path} takes {milliseconds:.2f} ms")
    if milliseconds > LOAD_MS_MAX:
        problems.append(f"loading {path} takes {milliseconds:.2f} ms, more than {LOAD_MS_MAX}")
    return problems


def main(plugin, connector, session, embedded):
    problems = problems_of_plugin(plugin) + problems_of_plugin(connector)
    for path in (plugin, connector, session, embedded):
        if "NODELETE" not in dynamic_entries(path):
            problems.append(f"{path} is not linked with -z nodelete")
    if dynamic_symbols(session, "--defined-only") != {"h5mirror_session_api"}:
        problems.append(f"{session} exports {sorted(dynamic_symbols(session, '--defined-only'))}")
    if dynamic_symbols(embedded, "--defined-only") != {"h5mirror_embedded_api"}:
        problems.append(f"{embedded} exports {sorted(dynamic_symbols(embedded, '--defined-only'))}")
    # Another SQLite may be in the program already; gRPC has no place in it.
    foreign = {name for name in dynamic_symbols(embedded, "--undefined-only") if name.startswith("sqlite3")}
    if foreign or any(library in dynamic_entries(embedded) for library in ("libsqlite3", "libgrpc", "libprotobuf")):
        problems.append(f"{embedded} needs {sorted(foreign)} of others, or libraries that it should not:\n"
                        f"{dynamic_entries(embedded)}")
    beside = sorted(path.name for path in pathlib.Path(plugin).parent.glob("lib*.so*"))
    if beside != sorted(pathlib.Path(path).name for path in (plugin, connector)):
        problems.append(f"HDF5 would load each of {beside} while it looks for a plugin")
    print("\n".join(problems) or "the plugins are as they should be")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
