"""No two factorisations of a batch of fits can run at once.

Each blocks a thread of XLA's CPU client until the others have done its parts, so as
many as there are threads wait for ever (jax 0.10; two on a machine of two cores).
"""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.fit import Huber, LeastSquares, least_squares


X = np.linspace(0, 3, 20)
Y = np.exp(-np.outer(np.linspace(1, 2, 900), X))


def computations(text):
    """Returns the instructions of each computation of a program, by name."""
    found, name = {}, None
    for line in text.splitlines():
        if head := re.match(r"(?:ENTRY )?%?([\w.\-]+) \(.*\{$", line):
            name = head[1]
        elif one := re.match(r"\s+(?:ROOT )?%([\w.\-]+) = (.*)", line):
            found.setdefault(name, []).append((one[1], one[2]))
    return found


def at_once(text):
    """Returns pairs of calls of LAPACK, or of what calls it, without an order."""
    parts, pairs = computations(text), []

    def calls(body):
        inner = re.findall(
            r"(?:body|condition|calls|to_apply|\w+_computation)=%([\w.\-]+)", body
        )
        for several in re.findall(r"branch_computations=\{([^}]*)\}", body):
            inner += re.findall(r"%([\w.\-]+)", several)
        # The factors of rows are in parts, whose calls block nothing; see below.
        return bool(re.search("lapack_.(?!geqrf|orgqr)", body)) or any(
            calls(b) for name in inner for _, b in parts.get(name, ())
        )

    for instructions in parts.values():
        before, seen = {}, []
        for name, body in instructions:
            used = [x for x in re.findall(r"%([\w.\-]+)", body) if x in before]
            before[name] = set(used).union(*(before[x] for x in used))
            if calls(body):
                pairs += [(one, name) for one in seen if one not in before[name]]
                seen.append(name)
    return pairs


def test_what_is_found_at_once():
    def two(x):
        return jnp.linalg.svd(x)[1] + jnp.linalg.eigh(x)[0]

    def chain(x):
        return jnp.linalg.eigh(x * jnp.linalg.svd(x)[1][..., None])[0]

    x = jnp.ones((3, 2, 2))
    found = [at_once(jax.jit(f).lower(x).compile().as_text()) for f in (two, chain)]
    assert len(found[0]) == 1
    assert found[1] == []


def errors(y, **options):
    made = LeastSquares(
        lambda p, y: p[0] * jnp.exp(-p[1] * X) - y,
        np.ones(2),
        y,
        penalty=lambda p: 0.1 * p,
        **options,
    )
    return least_squares(made).standard_errors


def check_parts(text):
    """Checks that rows are factored in parts, which are not divided over threads."""
    shapes = re.findall(r"= \(?f64\[([\d,]+)\].*lapack_d(?:geqrf|orgqr)", text)
    assert shapes
    for shape in shapes:
        *batch, rows, columns = map(int, shape.split(","))
        assert np.prod(batch) * 2 * rows * columns**2 < 200_000


@pytest.mark.parametrize("options", [{}, {"loss": Huber(0.5)}], ids=["squares", "loss"])
def test_a_batch_of_fits_factors_one_after_another(options):
    one = partial(errors, **options)
    text = jax.jit(jax.vmap(one)).lower(Y).compile().as_text()
    assert text.count("lapack_") >= 4
    assert at_once(text) == []
    check_parts(text)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("options", [{"loss": Huber(0.5)}, {}], ids=["loss", "squares"])
def test_gradients_of_a_batch_of_fits_are_factored_in_parts(options):
    slope = jax.grad(lambda y: jnp.sum(errors(y, **options)))
    check_parts(jax.jit(jax.vmap(slope)).lower(Y).compile().as_text())


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("options", [{"loss": Huber(0.5)}, {}], ids=["loss", "squares"])
def test_second_derivatives_of_a_batch_of_fits_are_factored_in_parts(options):
    slope = jax.grad(lambda y: jnp.sum(errors(y, **options)))
    bent = jax.vmap(lambda y: jax.jvp(slope, (y,), (y,))[1])
    check_parts(jax.jit(bent).lower(Y).compile().as_text())
