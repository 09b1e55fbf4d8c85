"""Products of arrays in full precision.

By default JAX rounds the factors of a float32 product on accelerators, to 10 bits on
GPUs (TF32) and to 7 on TPUs: relative errors near 1e-3. All products of arrays in
traced code are of here. An argument and no context, since rules of derivatives are
traced outside of the contexts that a function opens.
"""

from functools import partial

import jax.numpy as jnp


einsum = partial(jnp.einsum, precision="highest")
matmul = partial(jnp.matmul, precision="highest")
tensordot = partial(jnp.tensordot, precision="highest")
vdot = partial(jnp.vdot, precision="highest")
