"""The recipes of the talk of 2002 on HDF5's performance that a serial machine can run: rows of bench/tuning.py."""

from dataclasses import dataclass

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Row:
    """One recipe with one setting."""

    recipe: str             # its title; rows of one are side by side
    label: str              # the setting
    program: str            # of bench_tuning
    count: int
    flags: tuple = ()       # of bench_tuning
    config: tuple = ()      # keys of the driver, where it is ours; without it sec2 has the row alone
    rounds_max: int = 99    # of rows that take a minute
    size_mb: float | None = None  # as published, of the whole file: 10^6 bytes


def _slab(recipe: str, label: str, count: int, size_mb: float, *flags, **more) -> Row:
    """`size_mb`: with 256 rows."""
    return Row(recipe, label, "slab", count, flags, size_mb=size_mb * count / 256, **more)


def rows(*, objects: int, slab_rows: int, deflate_rows: int, mib: int) -> tuple[Row, ...]:
    """`slab_rows`, `deflate_rows`: of the dataset of 256 x rows x 1024, 256 in the talk; the second where chunks are deflated
    without a shuffle, which takes a minute. Sizes shrink with them."""
    latest = ("--libver", "latest")
    metadata = "4.1 metadata block, pages, format"
    cache = [(f"{mb} MB", ("--chunk-cache", mb * MIB)) for mb in (16, 128, 256)]
    deflate, shuffle = ("--deflate", 6), ("--shuffle", "--deflate", 6)
    return (
        *(Row(metadata, label, "attributes", objects, flags) for label, flags in (
            ("default (2 KiB)", ()), ("block 0", ("--meta-block", 0)), ("block 64 KiB", ("--meta-block", 64 * KIB)),
            ("block 1 MiB", ("--meta-block", MIB)), ("libver latest", latest),
            ("pages 4 KiB", ("--page", 4 * KIB)), ("pages 4 KiB, buffer 4 MiB", ("--page", 4 * KIB, "--page-buffer", 4 * MIB)),
            ("pages 64 KiB, buffer 16 MiB", ("--page", 64 * KIB, "--page-buffer", 16 * MIB)),
            ("latest, pages 4 KiB, buffer 4 MiB", (*latest, "--page", 4 * KIB, "--page-buffer", 4 * MIB)),
            ("latest, block 64 KiB", (*latest, "--meta-block", 64 * KIB)))),
        Row(metadata, "default, metadata=memory", "attributes", objects, (), (("metadata", "memory"),)),
        _slab("4.2 chunk write", "cache 1 MB, earliest", slab_rows, 268.4),
        _slab("4.2 chunk write", "cache 1 MB, latest", slab_rows, 268.4, *latest),
        *(_slab("4.3 chunk cache", label, slab_rows, 268.4, *flags) for label, flags in (cache[0], cache[2])),
        *(_slab("4.4 chunk cache, deflate", label, deflate_rows, 102.94, *flags, *deflate,
                rounds_max=1) for label, flags in (cache[0], cache[2])),
        *(_slab("4.5, 4.6 shuffle, deflate", label, slab_rows, 67.34, *flags, *shuffle) for label, flags in cache),
        *(Row("4.7 preemption of the chunk cache", f"w0 {w0:g}", "reread", max(2, objects // 100),
              ("--deflate", 1, "--chunk-cache", MIB, "--preemption", w0)) for w0 in (0, 0.75, 1)),
        *(Row(f"4.8 {objects:,} datasets of 4 KB", label, "small", objects, flags)
          for label, flags in (("contiguous", ()), ("compact", ("--compact",)))),
        *(Row("4.9 transfer buffer, converting write", f"{kib} KiB", "convert", mib, ("--transfer", kib * KIB))
          for kib in (64, 1024, 16384)),
        *(Row("4.10 sieve buffer, each 2nd element", f"{kib} KiB", "sieve", mib // 2, ("--sieve", kib * KIB))
          for kib in (4, 64, 1024)),
        *(Row("4.11 fill and allocation", f"{layout}, {when}, {fill}", "fill", mib,
              ("--allocate", when, *(("--chunked",) if layout == "chunked" else ()),
               *(("--never-fill",) if fill == "never" else ())))
          for layout in ("contiguous", "chunked") for when in ("early", "late") for fill in ("filled", "never")),
        *(Row("4.12 alignment", label, "aligned", objects, flags) for label, flags in (
            ("none", ()), ("1 KiB at 4 KiB", ("--threshold", KIB, "--alignment", 4 * KIB)))),
        Row("4.18 H5garbage_collect", "never", "kept", objects), Row("4.18 H5garbage_collect", "each 1,000 objects",
                                                                   "collected", objects))


FULL = dict(objects=10_000, slab_rows=256, deflate_rows=256, mib=64)
QUICK = dict(objects=300, slab_rows=16, deflate_rows=16, mib=4)


def first_and_last(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """Two of each recipe, one of those that deflate for seconds."""
    recipes = {}
    for row in rows:
        recipes.setdefault(row.recipe, []).append(row)
    return tuple(dict.fromkeys(row for those in recipes.values()
                               for row in (those[:1] if those[0].rounds_max == 1 else (those[0], those[-1]))))
