"""One of several processes that simulate and train together."""

import json

import jax


jax.config.update("jax_enable_x64", True)

from physax import runtime  # noqa: E402


me = runtime.initialize()

from tests.sharding.solvers import results  # noqa: E402


print(json.dumps(results(me.count)))
