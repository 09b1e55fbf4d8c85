import os
import signal
import threading

import pytest

from physax.runtime._signals import catch_signals


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGUSR1"])
def test_first_signal_is_recorded_and_handlers_are_back(name):
    number = signal.Signals[name]
    before = signal.getsignal(number)
    with catch_signals() as interruption:
        assert not interruption
        os.kill(os.getpid(), number)
        assert interruption.received == number
        assert signal.getsignal(number) == before
    assert signal.getsignal(number) == before


def test_second_signal_does_what_it_always_did():
    # A process in the background of a shell is born with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with catch_signals() as interruption:
            os.kill(os.getpid(), signal.SIGTERM)
            assert interruption
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_handlers_are_back_after_an_error():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyError), catch_signals():
        raise KeyError
    assert signal.getsignal(signal.SIGTERM) == before


def test_other_threads_install_nothing():
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def work():
        with catch_signals() as interruption:
            seen.append((bool(interruption), signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(False, before)]
