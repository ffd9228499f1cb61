"""Bodies of programs that several tests run; format() fills in the parts in braces."""

BIG = """
    with h5py.File("big.h5", "w") as f:
        f["big"] = np.random.default_rng(1).integers(0, 255, 64 << 20, dtype="u1")
"""

TOUCH = """
    with h5py.File("big.h5", "r+") as f:
        f.attrs["touched"] = {n}
"""

CHANGE = """
    with h5py.File("big.h5", "r+") as f:
        f["big"][20 << 20:21 << 20] = {n}
"""

# timed(call), and how long the longest one took.
TIMER = """
    longest = 0
    def timed(call):
        global longest
        began = time.monotonic()
        call()
        longest = max(longest, time.monotonic() - began)
"""

# Flushes that wait, and how long the longest call took.
TIMED = TIMER + """
    f = h5py.File("t.h5", "a")
    for n in range({times}):
        def change():
            f.require_dataset("d", ({mib} << 20,), "u1")[...] = n
        timed(change)
        timed(f.flush)
        print("cut", n, flush=True)
        time.sleep({pause})
    timed(f.close)
    print("longest", longest)
"""

# A file that grows by 5,000 random numbers, with a flush, for each line that the program reads; "end" closes it.
GROWING = """
    os.makedirs(os.path.dirname("{name}"), exist_ok=True)
    with h5py.File("{name}", "w") as f:
        data = f.create_dataset("x", (0,), maxshape=(None,), dtype="i8", chunks=(1000,))
        f.flush()
        print("open", flush=True)
        for line in sys.stdin:
            if line.strip() == "end":
                break
            data.resize(data.shape[0] + 5000, axis=0)
            data[-5000:] = np.random.randint(0, 1 << 40, 5000)
            f.flush()
            print("flushed", flush=True)
    print("closed", flush=True)
"""
