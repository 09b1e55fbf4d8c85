"""Perfect metal on a mesh."""

import numpy as np
import pytest

from physax import em
from tests.em.test_metal import lit
from tests.sharding.test_em_sharding import cut


pytestmark = pytest.mark.x64


@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_metal_on_a_mesh_agrees_with_one_device():
    sim = lit()
    want = em.simulate(sim)
    found = em.simulate(sim, layout=cut((4, 2)))
    for name, field in want.fields.items():
        scale = float(np.max(np.abs(field)))
        assert scale > 0
        assert np.allclose(found.fields[name], field, rtol=0, atol=1e-12 * scale)
