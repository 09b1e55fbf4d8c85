import re
import subprocess
import sys
from pathlib import Path

import pytest


PAGE = Path(__file__).parents[2] / "docs" / "runtime.md"


@pytest.mark.slow
def test_the_code_of_the_page_runs_from_top_to_bottom(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    command = [sys.executable, "-W", "error", "-c", "\n".join(blocks)]
    done = subprocess.run(
        command, cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert done.stdout.startswith("CONVERGED 10000 The run converged: the stop rule")
