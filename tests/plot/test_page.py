import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


PAGE = Path(__file__).parents[2] / "docs" / "pictures-and-files.md"

# What a result and its copy have in common, asked at the end of the page's script.
CHECK = """
import jax
import numpy as np

equal = jax.tree.map(lambda a, b: np.asarray(a).tobytes() == np.asarray(b).tobytes(),
                     result, again)
assert jax.tree.all(equal)
back = io.read_csv("device.csv")
assert np.array_equal(back.values, s.values)
counts = {name: len(io.to_xarray(part).data_vars) for name, part in seen.items()}
assert counts == {"west": 3, "east": 3, "fields": 2, "film": 1, "energy": 1}
"""


@pytest.mark.slow
def test_the_code_of_the_page_runs_from_top_to_bottom(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    command = [sys.executable, "-W", "error", "-c", "\n".join([*blocks, CHECK])]
    done = subprocess.run(
        command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=200
    )
    assert done.stdout == "{'frequency': 11, 'x': 120} V s/m\n"
    pictures = sorted(path.name for path in tmp_path.glob("*.png"))
    assert pictures == ["energy.png", "field.png", "simulation.png", "spectrum.png"]
    for name in pictures:
        with Image.open(tmp_path / name) as picture:
            pixels = np.asarray(picture.convert("RGB"))
        # Something is drawn, and the margins are narrow.
        ink = np.any(pixels != 255, axis=2)
        rows, columns = np.any(ink, 1), np.any(ink, 0)
        assert rows.nonzero()[0][0] < 30
        assert columns.nonzero()[0][0] < 30
