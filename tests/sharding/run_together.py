"""One of some processes that simulate together: FOLDER STEPS EVERY [SIGNAL STEP].

Checkpoints are written every so many steps. The last process sends itself the signal
once it is at that step.
"""

import json
import os
import signal
import sys
from pathlib import Path

import jax


jax.config.update("jax_enable_x64", True)

from physax import runtime  # noqa: E402


me = runtime.initialize()

from tests.sharding.solvers import driven  # noqa: E402


folder, (steps, every, *told) = Path(sys.argv[1]), sys.argv[2:]


def at_step(step, state, info):
    if told and me.index == me.count - 1 and step >= int(told[1]):
        os.kill(os.getpid(), signal.Signals[told[0]])


print(json.dumps(driven(me.count, folder, at_step, int(steps), int(every))))
