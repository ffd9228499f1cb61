"""Asks the main thread to stand aside between two of its calls of h5py."""

import ctypes
import threading
import time

from h5py._objects import phil

# A thread that calls h5py without a pause holds phil, h5py's lock, whenever it gives up the interpreter: after the long
# part of a call, still in the call. Another thread that tries the lock then never gets it. A blocking wait is no way out:
# phil has no deadline and goes to the thread that asks first, not to the one that waits. A waiter that the interpreter's
# end or a fork meets leaves it locked.
#
# So the main thread is asked, as for a signal handler: Python makes a call that Py_AddPendingCall gave it between two
# steps of that thread's code. If the thread holds phil there, the call is put off to the next step. Once it is out of
# h5py, it waits a moment for the thread that asked.

# Steps for which it is put off, of which Python makes up to 32 at one place: as far as out of a call of h5py, not of an
# iteration that calls the program. Takes about a millisecond.
_STEPS = 2048
# Seconds after one that came to nothing in which the thread is not asked again.
_PAUSE = 0.05
# Seconds after which one that was not heard is made again, then twice as many, and so on: the thread may be in a long
# call, or Python lost the request to a KeyboardInterrupt. It has room for 32.
_PATIENCE = 1.0
# Seconds that the main thread waits, where the one that asked gets no processor.
_ASIDE_MAX = 0.2

_add_pending_call = ctypes.pythonapi.Py_AddPendingCall
_add_pending_call.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
_add_pending_call.restype = ctypes.c_int
# Makes the call: __bool__(), without the state that ctypes makes for a callback.
_is_true = ctypes.cast(ctypes.pythonapi.PyObject_IsTrue, ctypes.c_void_p)


class _Turn:
    """The one request of the process. The thread that asks also lets the main thread go on, by tried()."""

    def __init__(self) -> None:
        self.forking = False  # some thread is; then the main thread stands aside for nobody
        self.reset()

    def reset(self) -> None:
        """As nobody had asked."""
        self._asked = False
        self._steps = 0
        self._not_before = 0.0
        self._patience = _PATIENCE
        self._aside = threading.Event()
        self._tried = threading.Event()

    def ask(self) -> None:
        """Asks, unless that was done just now. Does not wait."""
        now = time.monotonic()
        if now < self._not_before:
            return
        self._not_before = now + self._patience
        self._patience *= 2
        self._aside.clear()
        self._tried.clear()
        self._steps = _STEPS
        self._asked = True
        self._put_off()

    def wait(self, seconds: float) -> bool:
        """True: the main thread stands aside, within `seconds`. It stands until tried()."""
        came = self._aside.wait(seconds)
        if came:
            self._aside.clear()
        return came

    def tried(self, taken: bool) -> None:
        """Lets the main thread go on: phil was taken, or tried in vain since it stood aside, or is not wanted any more."""
        self._asked = False
        self._patience = _PATIENCE
        self._not_before = 0.0 if taken else time.monotonic() + _PAUSE
        self._tried.set()

    def _put_off(self) -> bool:
        return bool(_add_pending_call(_is_true, id(self)) == 0)

    def __bool__(self) -> bool:
        """The pending call, in the main thread. True would be an error."""
        if self._asked:
            if not phil._is_owned():
                self._stand_aside()
            elif self._steps > 0 and self._put_off():
                self._steps -= 1
            else:
                self.tried(False)
        return False

    def _stand_aside(self) -> None:
        self._asked = False
        if not self.forking:
            self._aside.set()
            self._tried.wait(_ASIDE_MAX)


turn = _Turn()
# Python may make the call while it clears modules.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(turn))
