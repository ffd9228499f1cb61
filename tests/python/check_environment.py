"""usage: check_environment.py H5PY HDF5 - exits 1 unless this Python has these versions."""

import sys

import h5py

wanted = tuple(sys.argv[1:3])
found = (h5py.version.version, h5py.version.hdf5_version)
if found != wanted:
    sys.exit(f"h5py {found[0]} with HDF5 {found[1]}, not h5py {wanted[0]} with HDF5 {wanted[1]}: "
             "`./dev setup` makes it again when its requirements file changes")
