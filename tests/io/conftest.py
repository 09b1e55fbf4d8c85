"""Fixtures of the tests of files."""

import builtins

import pytest


@pytest.fixture
def without(monkeypatch):
    """Makes a package one that is not installed."""
    real = builtins.__import__

    def hide(package):
        def load(name, *args, **kwargs):
            if name == package:
                raise ImportError(name)
            return real(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", load)

    return hide
