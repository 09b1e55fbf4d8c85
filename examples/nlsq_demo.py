"""A tour of `physax.fit`: curves, plans, outliers, linear parameters, the posterior.

`python -m examples.nlsq_demo [--points N] [--sample] [--profile FOLDER]
[--output FOLDER]` fits two exponentials and a constant to noisy points in several ways,
prints the results, and saves `fit.png`. With `--sample` it draws from the posterior
(needs the extra `bayes`); with `--profile` it records a trace of the work.
"""

import argparse
from contextlib import nullcontext
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from physax import fit, runtime


NOISE = 0.02
TRUTH = {"fast": 1.3, "slow": 0.25}
START = {"fast": 1.0, "slow": 0.1}


def basis(rates, x):
    """Evaluates the two decays, whose amplitudes are linear."""
    return jnp.stack([jnp.exp(-rates[name] * x) for name in ("fast", "slow")], axis=-1)


def points(count: int, outliers: int = 0):
    """Returns positions and noisy values, some of them outliers."""
    rng = np.random.default_rng(0)
    x = np.linspace(0, 10, count)
    y = np.asarray(basis(TRUTH, jnp.asarray(x))) @ [2.0, 0.7] + 0.1
    y += NOISE * rng.standard_normal(count)
    y[rng.choice(count, outliers, replace=False)] += 3
    return x, y


def curve(x, a, b, c, d, e):
    """Evaluates the whole model, in the form for `curve_fit`."""
    return a * jnp.exp(-b * x) + c * jnp.exp(-d * x) + e


def residual(p, data):
    """Returns the residuals, in standard deviations."""
    x, y = data
    return (curve(x, *p) - y) / NOISE


def separable(x, y) -> fit.Separable:
    """Sets up the problem with the amplitudes eliminated: two parameters remain."""
    return fit.Separable(
        basis,
        START,
        x,
        y,
        functions=["a", "c"],
        offset=True,
        sigma=NOISE,
        absolute_sigma=True,
    )


def tour(count: int) -> tuple[fit.Separable, fit.FitResult]:
    """Fits in several ways and prints the results."""
    x, y = points(count)
    start = [1.0, 1.0, 1.0, 0.1, 0.0]
    print("curve_fit, as SciPy's:")
    print(fit.curve_fit(curve, x, y, p0=start))

    print("\nWith 1 % outliers, squares and a robust loss:")
    far = points(count, outliers=count // 100)
    for loss in (fit.Squared(), fit.SoftL1(3.0)):
        found = fit.least_squares(
            fit.LeastSquares(residual, np.array(start), far, loss=loss)
        )
        print(f"  {type(loss).__name__:8}", np.asarray(found.values).round(3))

    print("\nLinear parameters eliminated, so that two are left:")
    problem = separable(x, y)
    found = fit.least_squares(problem)
    print(found)
    for name, value, error in zip(
        found.linear_names, found.linear, found.linear_errors, strict=True
    ):
        print(f"  {name}  {value:.4f} ± {error:.4f}")
    print(fit.identifiability(found))

    print("\nHow larger fits would be done:")
    for size in (500_000, 5_000_000, 50_000_000, 200_000_000):
        print(" ", str(fit.plan(size, 5)).splitlines()[0])
    return problem, found


def sample(problem: fit.Separable, found: fit.FitResult) -> None:
    """Draws from the posterior of the rates."""
    drawn = fit.sample_posterior(problem, found, key=jax.random.key(0), progress=False)
    print("\nPosterior:")
    print(drawn)


def draw(problem: fit.Separable, found: fit.FitResult, folder: Path) -> None:
    """Saves a picture of points and fit."""
    x, y = problem.data[:2]
    fitted = basis(found.parameters, x) @ found.linear[:2] + found.linear[2]
    figure, axes = plt.subplots(figsize=(6, 3.5))
    axes.plot(x, y, ".", ms=2, label="values")
    axes.plot(x, fitted, label="fit")
    axes.set_xlabel("x")
    axes.set_ylabel("y")
    axes.legend()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "fit.png", dpi=150)
    plt.close(figure)
    print(f"\nwrote {folder / 'fit.png'}")


def main(arguments=None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--profile", type=Path, help="where a trace of it goes")
    parser.add_argument("--output", type=Path, default=Path("output"))
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    recorded = nullcontext()
    if options.profile is not None:
        recorded = runtime.profile(options.profile)
    with recorded:
        problem, found = tour(options.points)
        if options.sample:
            sample(problem, found)
    draw(problem, found, options.output)


if __name__ == "__main__":
    main()
