r"""Models of the two-time correlation: the part that the contrast multiplies."""

from abc import abstractmethod
from math import pi, sqrt
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from .._checks import ArgumentError, instance, positive, real
from ._quotients import sinc_of_difference
from ._transport import AbstractTransport, Shear


Prepared = TypeVar("Prepared")


def check_model(model: Any) -> None:
    """Raises if `model` is not a model of the correlation."""
    instance(model, "model", AbstractCorrelation, "Take `Static` or `LaminarFlow`.")


def _transport(x):
    if isinstance(x, Shear):
        raise ArgumentError(
            "`diffusion` must be a rate of diffusion, but is a Shear. Write "
            "`Diffusion(12000.0)`; for flow, `LaminarFlow(diffusion, shear)`."
        )
    return instance(x, "diffusion", AbstractTransport, "Write `Diffusion(12000.0)`.")


def _shear(x):
    return instance(x, "shear", Shear, "Write `Shear(0.002)`.")


class AbstractCorrelation(eqx.Module, Generic[Prepared]):
    r"""A model of $f$ in $c_2(t_1, t_2) = o + b\,f(t_1, t_2; q, \phi)$.

    It is evaluated in two parts, so that all pairs of $n$ frames cost $n$ integrals:
    `prepare` makes arrays with one entry for each frame, and `factor` combines the
    entries of two frames. Models of your own define both.
    """

    @abstractmethod
    def prepare(self, times: Float[Array, " frames"]) -> Prepared:
        """Returns arrays whose first axis counts frames, such as integrals up to them.

        Args:
            times: Times in seconds, in increasing order.
        """

    @abstractmethod
    def factor(
        self,
        first: Prepared,
        second: Prepared,
        q: Float[Array, "..."],
        phi: Float[Array, "..."],
    ) -> Float[Array, "..."]:
        """Returns the squared modulus of the field correlation, 1 at equal times.

        Elementwise, so that shapes that broadcast give all pairs.

        Args:
            first: Entries of what `prepare` returned, at the first times.
            second: Likewise, at the second times.
            q: Wavevectors in 1/angstrom.
            phi: Their directions in radians.
        """


class Static(AbstractCorrelation[Float[Array, "..."]]):
    r"""Particles that spread in a liquid at rest.

    $f = \exp(-q^2 |S|)$ with $S = \int_{t_1}^{t_2} J\,dt$. The same in all directions:
    whether angles have contrasts of their own (anisotropic) or share one (isotropic) is
    a matter of the scaling.

    Attributes:
        diffusion: The transport coefficient $J$ in angstrom^2/s.
    """

    diffusion: AbstractTransport = eqx.field(converter=_transport)

    def prepare(self, times):
        return self.diffusion.cumulative(times)

    def factor(self, first, second, q, phi):
        del phi
        return jnp.exp(-(q**2) * jnp.abs(second - first))


CONVENTIONS = {"physical": (2.0, 2), "homodyne": (2 * pi, 4)}
"""What divides the argument of the shear factor, and its power, by convention."""


def check_convention(convention: Any, name: str, remedy: str = "") -> None:
    """Raises if `convention` is not one of the shear factor.

    Args:
        convention: The convention.
        name: What the caller calls it.
        remedy: A sentence that says what to do.
    """
    if not isinstance(convention, str) or convention not in CONVENTIONS:
        raise ArgumentError(
            f'`{name}` must be "physical" or "homodyne", but is {convention!r}. '
            f"{remedy}".rstrip()
        )


class FlowIntegrals(NamedTuple):
    """What `LaminarFlow` prepares for each frame.

    Attributes:
        diffusion: Integral of $J$ up to the frame, in angstrom^2.
        shear: Integral of the shear rate, dimensionless.
    """

    diffusion: Float[Array, "..."]
    shear: Float[Array, "..."]


class LaminarFlow(AbstractCorrelation[FlowIntegrals]):
    r"""Particles that spread in a liquid sheared between two plates.

    $f = \exp(-q^2 |S|)\,M$ with $S = \int_{t_1}^{t_2} J\,dt$ and the strain
    $G = \int_{t_1}^{t_2} \dot\gamma\,dt$. **Two conventions** exist for $M$, and a rate
    fitted in one is not a rate of the other:

    - `"physical"`: $M = (\sin X / X)^2$, $X = q L \cos(\phi - \phi_0)\,G / 2$, the
      squared modulus of the mean of $\exp(i q \cos(\phi - \phi_0)\,G z)$ over the gap.
      Particles simulated in Couette flow give this.
    - `"homodyne"`: $M = (\sin Y / Y)^4$, $Y = q L \cos(\phi_0 - \phi)\,G / 2 \pi$, what
      the program homodyne evaluates.

    Reference: He et al., PNAS 122, e2514216122 (2025).

    Attributes:
        diffusion: The transport coefficient $J$ in angstrom^2/s.
        shear: The shear rate in 1/s, with the direction of the flow.
        gap: Distance $L$ between the plates in angstrom.
        convention: `"physical"` or `"homodyne"`.

    Raises:
        ArgumentError: If `gap` is not positive or `convention` is unknown.
    """

    diffusion: AbstractTransport = eqx.field(converter=_transport)
    shear: Shear = eqx.field(converter=_shear)
    gap: Float[Array, ""] = eqx.field(
        converter=lambda x: positive(x, "gap"), default=2e6
    )
    convention: str = eqx.field(static=True, default="physical")

    def __check_init__(self):
        remedy = "Rates of one are not those of the other."
        check_convention(self.convention, "convention", remedy)

    def prepare(self, times):
        return FlowIntegrals(
            self.diffusion.cumulative(times), self.shear.cumulative(times)
        )

    def factor(self, first, second, q, phi):
        spread = jnp.exp(-(q**2) * jnp.abs(second.diffusion - first.diffusion))
        divisor, power = CONVENTIONS[self.convention]
        scale = q * self.gap * jnp.cos(phi - self.shear.phi0) / divisor
        quotient = sinc_of_difference(scale * first.shear, scale * second.shear)
        return spread * quotient**power


def convert_rate(
    rate: Float[ArrayLike, "*shape"], source: str, target: str
) -> Float[Array, "*shape"]:
    r"""Estimates what a fit in the other convention would have given for a shear rate.

    **An approximation**, exact only in the limit of small arguments: there
    $M = 1 - X^2/3$ in the physical and $1 - 2 Y^2/3$ in the homodyne convention, equal
    if $\dot\gamma_\mathrm{homodyne} = (\pi / \sqrt 2)\,\dot\gamma_\mathrm{physical}$.
    Fits of real maps also weight larger arguments, so that the ratio depends on the
    range of the data: fit again where the number matters.

    Args:
        rate: Shear rate in 1/s.
        source: The convention it belongs to.
        target: The convention to convert to.

    Returns:
        The rate in 1/s.

    Raises:
        ArgumentError: If a convention is unknown.
    """
    check_convention(source, "source")
    check_convention(target, "target")
    scale = {"physical": 1.0, "homodyne": pi / sqrt(2)}
    return real(rate, "rate") * (scale[target] / scale[source])
