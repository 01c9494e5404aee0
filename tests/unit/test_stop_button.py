"""Stop is heard once, never in the middle of clean-up, and only where it was heard before."""

from __future__ import annotations

import signal
import threading

import pytest

from ddp_lessons.stop_button import heard_once


def press() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def usual():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_first_press_interrupts_and_the_second_does_not():
    with heard_once() as stop:
        with pytest.raises(KeyboardInterrupt):
            press()
        press()
        press()
    assert stop.pressed
    with pytest.raises(KeyboardInterrupt):  # as before the block
        press()


def test_a_press_during_clean_up_is_only_noted():
    with heard_once() as stop:
        assert not stop.pressed
        stop.ignore()
        press()
        assert stop.pressed


def test_a_handler_of_the_programs_own_is_asked_once():
    heard = []
    signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    with heard_once():
        press()
        press()
    assert heard == [signal.SIGINT]


def test_a_program_that_ignores_stop_still_does():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with heard_once() as stop:
        press()
    assert not stop.pressed
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_off_the_main_thread_nothing_changes():
    found = []

    def work() -> None:
        with heard_once():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]
