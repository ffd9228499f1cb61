"""granules.py FILE MB: a file of chunked, compressed granules with hundreds of objects, of about so many megabytes; the
same bytes each time."""

import sys
import zlib

import h5py
import numpy as np

CHUNK = (64, 512)
CHUNKS = 8             # of a dataset
DATASETS = 12          # of a granule


def main(path: str, megabytes: int) -> None:
    random = np.random.default_rng(2014)
    # Radiances: smooth, with noise in the low bits. Compressed once; each dataset takes them in its own order.
    lines = np.add.outer(np.arange(CHUNK[0]) * 40, np.arange(CHUNK[1]) * 9)
    packed = [zlib.compress((lines + 100 * n + random.integers(0, 900, CHUNK)).astype("<u2").tobytes(), 4) for n in range(32)]
    bytes_wanted = megabytes * 1_000_000
    bytes_each = DATASETS * CHUNKS * sum(map(len, packed)) / len(packed)
    with h5py.File(path, "w") as f:
        f.attrs["Mission_Name"] = "NPP"
        f.attrs["N_GEO_Ref"] = "GMODO"
        for g in range(max(1, round(bytes_wanted / bytes_each))):
            granule = f.create_group(f"All_Data/Granule_{g:05d}")
            granule.attrs["AggregateBeginningDate"] = np.array([[b"20130727"]])
            granule.attrs["N_Beginning_Orbit_Number"] = np.array([[g]], "u8")
            for d in range(DATASETS):
                dataset = granule.create_dataset(f"Radiance_{d}", (CHUNK[0] * CHUNKS, CHUNK[1]), "<u2", chunks=CHUNK,
                                                 compression="gzip", compression_opts=4)
                for c in range(CHUNKS):
                    dataset.id.write_direct_chunk((c * CHUNK[0], 0), packed[(g + 5 * d + c) % len(packed)])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
