import jax
import jax.numpy as jnp
import pytest

from physax._checks import PhysaxError
from physax._status import RunError, Status, raise_for


@pytest.mark.parametrize("status", list(Status))
def test_every_status_has_a_sentence(status):
    assert status.sentence.endswith(".")


def test_statuses_are_codes_in_compiled_programs():
    run = jax.jit(lambda bad: jnp.where(bad, Status.DIVERGED, Status.SUCCESSFUL))
    codes = run(jnp.array([False, True]))
    assert jnp.issubdtype(codes.dtype, jnp.integer)
    assert codes[1] == Status.DIVERGED


@pytest.mark.parametrize(
    "status", [Status.SUCCESSFUL, Status.CONVERGED, Status.DECAYED]
)
def test_good_ends_raise_nothing(status):
    assert status.ok
    raise_for(status)
    raise_for(jnp.array([status, Status.SUCCESSFUL]))


def test_bad_end_raises_with_its_status():
    with pytest.raises(RunError, match="no longer finite. At step 7") as caught:
        raise_for(Status.DIVERGED, "At step 7.")
    assert caught.value.status == Status.DIVERGED
    assert caught.value.result is None
    assert isinstance(caught.value, PhysaxError)


def test_what_was_reached_is_carried_by_the_exception():
    with pytest.raises(RunError) as caught:
        raise_for(Status.INTERRUPTED, result="tracks")
    assert caught.value.result == "tracks"


def test_a_batch_names_its_first_failure():
    codes = jnp.array([Status.SUCCESSFUL, Status.MAX_STEPS, Status.DIVERGED])
    with pytest.raises(RunError, match="2 of 3 runs failed; number 1: The limit on"):
        raise_for(codes)
