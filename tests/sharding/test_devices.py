import jax


def test_session_has_eight_devices():
    assert len(jax.devices()) == 8
