"""No test hangs: after its limit it fails at once."""

import contextlib
import signal


@contextlib.contextmanager
def limited(request, default: int):
    """For an autouse fixture: the test has `default` seconds, or those of its mark `limit(seconds)`."""
    marker = request.node.get_closest_marker("limit")
    seconds = marker.args[0] if marker else default

    def stop(*_):
        raise TimeoutError(f"the test took longer than its limit of {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
