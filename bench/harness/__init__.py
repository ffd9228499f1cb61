"""The common parts of the benchmarks: processes, drivers, the machine, tables. Standard library only."""
