"""What the benchmarks share: processes, drivers, the machine, tables. Standard library only."""
