import contextlib
import math

import numpy as np
import pytest

from physax.io import PhysaxFileError, read_yaml


@pytest.fixture
def read(tmp_path):
    def read(text):
        path = tmp_path / "a.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_yaml(path)

    return read


def test_values_are_those_of_yaml_1_2(read):
    text = """
    numbers: [1, -2, 0.5, 1e5, 1.5E-3, .5, 3., .inf, -.inf]
    flags: [true, false]
    texts: [no, yes, on, 1:30, 2024-01-02, "1", '2', 0x10, nan, 1e]
    nothing: [null, ~, ]
    empty:
    """
    assert read(text).plain() == {
        "numbers": [1, -2, 0.5, 1e5, 1.5e-3, 0.5, 3.0, math.inf, -math.inf],
        "flags": [True, False],
        "texts": "no yes on 1:30 2024-01-02 1 2 0x10 nan 1e".split(),
        "nothing": [None, None],
        "empty": None,
    }
    kinds = [type(item.value) for item in read(text).value["numbers"].value]
    assert kinds[:3] == [int, int, float]


def test_nodes_know_their_lines_and_names(read):
    root = read("a:\n  b:\n  - c: 1\n    d: 2\n")
    inner = root.value["a"].value["b"].value[0]
    assert inner.value["d"].line == 4
    assert inner.value["d"].name == "a.b[0].d"
    assert inner.key_lines == {"c": 3, "d": 4}
    error = inner.value["d"].error("is wrong.")
    assert str(error).endswith("a.yaml: line 4: `a.b[0].d` is wrong.")


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file_is_nothing(read, text):
    assert read(text).value is None


def test_block_texts_are_texts(read):
    assert read("a: |\n  1\n  2\n").plain() == {"a": "1\n2\n"}


BOMB = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + k)}: &{chr(98 + k)} [{', '.join([f'*{chr(97 + k)}'] * 9)}]\n"
    for k in range(9)
)
FAULTS = {
    "tag": ("a:\n  b: !!python/object/apply:os.system ['touch marker']",
            r"line 2: `a.b` must have no tag, but has 'tag:yaml.org,2002:python/"),
    "own tag": ("a: !include b.yaml", "line 1: `a` must have no tag, but has '!inc"),
    "standard tag": ("a: !!str 1", "line 1: `a` must have no tag"),
    "bomb": (BOMB, "line 1: `a` must have no anchor, but has &a"),
    "alias": ("a: 1\nb: *a", "line 2: `b` must be a value, but is the alias \\*a"),
    "merge": ("a: {b: 1}\nc:\n  <<: *a", "line 3: `c.<<` must be a value, but is the"),
    "twice": ("a:\n  b: 1\n  c: 2\n  b: 3",
              "line 4: `a` must have each key once, but has 'b' in line 2 already"),
    "number as key": ("a: {1: 2}", "line 1: `a` must have texts as keys, but has 1"),
    "list as key": ("? [a, b]\n: 1", "It must have texts as keys, but has"),
    "nan": ("a: [1, .nan]", r"line 1: `a\[1\]` must be a number, but is NaN"),
    "two": ("a: 1\n---\nb: 1", "line 2: It must hold one document"),
    "unclosed": ("a: 1\nb: [1, 2", "line 2: It is not valid YAML: expected ',' or ']'"),
    "indent": (
        "a: 1\n  b: 2",
        "line 2: It is not valid YAML: mapping values are not allowed",
    ),
    "tab": ("a:\n\t- 1", "line 2: It is not valid YAML"),
    "deep": ("[" * 30 + "]" * 30, "nests deeper than 20 levels"),
    "very deep": ("[" * 900_000, "nests deeper than 20 levels"),
    "deep blocks": ("".join("  " * k + "a:\n" for k in range(30)), "deeper than 20"),
    "large": (b"#" * 1_000_001, "It must have at most 1000000 bytes"),
    "binary": (b"a: \xff", "It is not text in UTF-8"),
    "control": (b"a: \x01", "It is not valid YAML"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_not_plain_data_is_refused(read, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    text, message = FAULTS[name]
    with pytest.raises(PhysaxFileError, match=message):
        read(text)
    assert not (tmp_path / "marker").exists()


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file '.*nowhere.yaml'"):
        read_yaml(tmp_path / "nowhere.yaml")
    with pytest.raises(PhysaxFileError, match="must be a file, but is a folder"):
        read_yaml(tmp_path)


def test_damaged_files_are_read_or_refused(read):
    text = b"a: {b: [1, 2.5, 'x'], c: |\n  text\n}\nd: [true, null]\n"
    random = np.random.default_rng(0)
    for _ in range(300):
        bad = bytearray(text)
        for _ in range(int(random.integers(1, 4))):
            bad[int(random.integers(len(bad)))] = int(random.integers(256))
        with contextlib.suppress(PhysaxFileError):
            read(bytes(bad)).plain()


def test_the_character_nul_is_refused_with_its_line(read):
    with pytest.raises(PhysaxFileError, match=r"line 2: `b` must not hold .* NUL"):
        read('a: 1\nb: "x\\0y"')
