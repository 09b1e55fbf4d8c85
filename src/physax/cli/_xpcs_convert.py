"""The command `physax xpcs convert`: homodyne's YAML files to ours."""

import argparse
import difflib
import os
from pathlib import Path
from typing import Any

import yaml

from .._whole_file import whole_file
from ..io import YamlNode, check_writable, read_yaml
from ..xpcs import MODES
from ._exit import ExitCode
from ._homodyne_keys import DROPPED, PARAMETERS, SCALINGS, USED
from ._output import check_new
from ._xpcs_settings import LAMINAR, SCALINGS as KINDS, read_settings


_HEAD = """\
# Made by `physax xpcs convert` from a file for homodyne. Angles are in degrees, units
# as there. `physax xpcs config --mode MODE` writes a template with all keys explained.
"""


def run_convert(options: argparse.Namespace) -> ExitCode:
    """Writes our form of an old file, and lists what has no counterpart."""
    root = read_yaml(options.old)
    path = Path(options.output)
    check_new(path)
    old = _Old(root)
    text, notices = _converted(old)
    check_writable(path.parent)
    # Read before it takes its place: what is written here must be valid.
    draft = path.with_name(f".{path.name}.draft-{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        read_settings(str(draft))
    finally:
        draft.unlink(missing_ok=True)
    with whole_file(path) as file:
        file.write(text.encode())
    for line in notices:
        print(f"  {line}")
    print(f"{path}: {len(notices)} notes, see above" if notices else path)
    return ExitCode.DONE


class _Old:
    """An old file by the full names of its entries."""

    def __init__(self, root: YamlNode):
        self.root = root
        self.found: dict[str, YamlNode] = {}
        self.dropped: dict[str, int] = {}
        if not isinstance(root.value, dict):
            raise root.error("must be a mapping, but is not.")
        self._walk(root, "")

    def _walk(self, node: YamlNode, name: str) -> None:
        entries = node.value if isinstance(node.value, dict) else {}
        for key, value in entries.items():
            full = f"{name}.{key}" if name else key
            line = node.key_lines[key]
            if full in USED:
                self.found[full] = value
            elif any(k.startswith(f"{full}.") for k in USED):
                self._walk(value, full)
            elif _reason(full) is not None:
                self.dropped[full] = line
            else:
                known = {k.split(".")[-1]: k for k in (*USED, *DROPPED)}
                near = difflib.get_close_matches(key, list(known), n=1, cutoff=0.5)
                hint = f" The nearest known one is `{known[near[0]]}`." if near else ""
                raise node.error(f"has the unknown key `{key}`.{hint}", line)

    def get(self, *names: str) -> Any:
        """Returns the first value of some entries that is there."""
        for name in names:
            if name in self.found:
                value = self.found[name].plain()
                if value is not None:
                    return value
        return None


def _reason(name: str) -> str | None:
    """Returns why a key has no counterpart; `None` if it is unknown."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        entry = DROPPED.get(".".join(parts[:end]))
        if entry is not None:
            return entry.why
    return None


def _converted(old: _Old) -> tuple[str, list[str]]:
    notices = [
        f"line {line}: {name} is left out: {_reason(name)}"
        for name, line in old.dropped.items()
    ]
    mode = _mode(old, notices)
    new: dict[str, Any] = {"mode": mode}
    if mode == LAMINAR:
        # What the numbers in the old file mean.
        new["convention"] = "homodyne"
        gap = old.get("analyzer_parameters.geometry.stator_rotor_gap")
        new |= {} if gap is None else {"gap": float(gap)}
        notices.append(
            "convention is homodyne, as the old numbers are; the physical one fits the "
            "shear rate of the particles"
        )
    data = _data(old)
    new |= {"data": data} if data else {}
    parameters = _parameters(old, mode)
    new |= {"parameters": parameters} if parameters else {}
    scaling = _scaling(old, notices)
    # The numbers of constants are still to be given.
    new |= {} if scaling in (None, _CONSTANT) else {"scaling": scaling}
    new |= _options(old, notices)
    new |= _scale_bounds(old, scaling, notices)
    text = yaml.safe_dump(new, sort_keys=False, default_flow_style=None)
    return _HEAD + text, notices


def _mode(old: _Old, notices: list[str]) -> str:
    mode = old.get("analysis_mode", "metadata.analysis_mode")
    if mode is None:
        raise old.root.error("must have the key `analysis_mode`, but does not.")
    if mode == "static":
        notices.append("analysis_mode static is taken as static_anisotropic")
        return "static_anisotropic"
    if mode not in MODES:
        name = "analysis_mode"
        node = old.found.get(name) or old.found[f"metadata.{name}"]
        raise node.error(f"must be one of static, {', '.join(MODES)}, but is {mode!r}.")
    return str(mode)


def _data(old: _Old) -> dict[str, Any]:
    at = "analyzer_parameters"
    file = old.get("experimental_data.file_path")
    if file is None:
        name = old.get("experimental_data.data_file_name")
        folder = old.get("experimental_data.data_folder_path")
        file = str(Path(folder or "", name)) if name else folder
    first, last = old.get(f"{at}.start_frame"), old.get(f"{at}.end_frame")
    data: dict[str, Any] = {
        "file": file,
        "q": old.get(f"{at}.scattering.wavevector_q"),
        "dt": old.get(f"{at}.dt"),
        "frames": None if last is None else [1 if first is None else first, last],
    }
    ranges = old.found.get("phi_filtering.target_ranges")
    enabled = old.get("phi_filtering.enabled")
    if ranges is not None and enabled is not False:
        items = ranges.value if isinstance(ranges.value, list) else []
        data["phi_ranges_degrees"] = [_range(item) for item in items] or None
    return {key: value for key, value in data.items() if value is not None}


def _range(node: YamlNode) -> list[float]:
    entry = node.plain()
    known = ("min_angle", "max_angle")
    if not isinstance(entry, dict) or not all(
        isinstance(entry.get(k), int | float) for k in known
    ):
        raise node.error("must have numbers `min_angle` and `max_angle`.")
    return [float(entry[k]) for k in known]


def _parameters(old: _Old, mode: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}

    def entry(node: YamlNode, name: object) -> dict[str, Any] | None:
        if not isinstance(name, str) or name not in PARAMETERS:
            near = difflib.get_close_matches(str(name), list(PARAMETERS), n=1)
            hint = f" The nearest known one is `{near[0]}`." if near else ""
            raise node.error(f"names the unknown parameter {name!r}.{hint}")
        ours = PARAMETERS[name]
        flow = ours not in ("D0", "alpha", "D_offset")
        if flow and mode != LAMINAR:
            return None
        return found.setdefault(ours, {})

    at = "initial_parameters"
    names, values = (old.found.get(f"{at}.{k}") for k in ("parameter_names", "values"))
    if names is not None and values is not None:
        pairs = _same_length(names, values)
        for name, value in pairs:
            place = entry(name, name.value)
            if place is not None and value.value is not None:
                place["start"] = value.value
    for item in _items(old.found.get("parameter_space.bounds")):
        bounds = item.plain()
        if not isinstance(bounds, dict):
            raise item.error("must have `name`, `min` and `max`.")
        if bounds.get("name") in ("contrast", "offset"):
            continue
        place = entry(item, bounds.get("name"))
        if place is not None:
            place["bounds"] = [bounds.get("min"), bounds.get("max")]
    _fix(old, found, entry)
    if "phi0" in found:
        renamed = found["phi0"].items()
        found["phi0"] = {
            key if key == "fixed" else f"{key}_degrees": value for key, value in renamed
        }
    return found


def _items(node: YamlNode | None) -> list[YamlNode]:
    if node is None or not isinstance(node.value, list):
        return []
    return node.value


def _same_length(names: YamlNode, values: YamlNode):
    pairs = (_items(names), _items(values))
    if len(pairs[0]) != len(pairs[1]):
        raise values.error(
            f"must have one number for each of {len(pairs[0])} names, but has "
            f"{len(pairs[1])}."
        )
    return list(zip(*pairs, strict=True))


def _fix(old: _Old, found: dict[str, dict[str, Any]], entry) -> None:
    """Fixes what is fixed, or not active."""
    at = "initial_parameters"
    node = old.found.get(f"{at}.fixed_parameters")
    fixed = node.value if node is not None else None
    named = fixed.items() if isinstance(fixed, dict) else ()
    for name, value in named:
        place = entry(value, name)
        if place is not None:
            place |= {"start": value.value, "fixed": True}
    for item in _items(node):
        place = entry(item, item.value)
        if place is not None:
            place["fixed"] = True
    active = old.found.get(f"{at}.active_parameters")
    moving = {PARAMETERS.get(str(i.value)) for i in _items(active)}
    if moving:
        for name, place in found.items():
            if name not in moving and "start" in place:
                place["fixed"] = True


_CONSTANT = {"type": "Constant"}


def _scaling(old: _Old, notices: list[str]) -> dict[str, Any] | None:
    at = "optimization.nlsq.anti_degeneracy"
    kind = old.get(f"{at}.per_angle_mode")
    if kind is None:
        return None
    if kind == "constant":
        notices.append(
            f"{at}.per_angle_mode constant: give the numbers, as scaling: {{type: "
            "Constant, contrast: 0.3, offset: 1}"
        )
        return _CONSTANT
    if kind not in SCALINGS:
        node = old.found[f"{at}.per_angle_mode"]
        raise node.error(f"must be one of {', '.join(SCALINGS)}, but is {kind!r}.")
    order = old.get(f"{at}.fourier_order")
    if order is not None and not (type(order) is int and order >= 0):
        node = old.found[f"{at}.fourier_order"]
        raise node.error(f"must be an integer of at least 0, but is {order!r}.")
    made = {"type": SCALINGS[kind]}
    return made if kind != "fourier" or order is None else {**made, "order": order}


def _options(old: _Old, notices: list[str]) -> dict[str, Any]:
    nlsq, new = "optimization.nlsq", {}
    method = old.get("optimization.method")
    # Multistart switched off is one start.
    starts = old.get(f"{nlsq}.multi_start.n_starts")
    if old.get(f"{nlsq}.multi_start.enable") is False:
        starts = 1
    search = {
        "method": {"mcmc": "nuts", "cmc": "nuts"}.get(str(method), method),
        "starts": starts,
        "max_evaluations": old.get(f"{nlsq}.max_iterations"),
        "xtol": old.get(f"{nlsq}.xtol", f"{nlsq}.tolerance"),
    }
    new["fit"] = {k: v for k, v in search.items() if v is not None}
    chains = {"num_warmup": "warmup", "num_samples": "samples", "num_chains": "chains"}
    chains |= {"seed": "seed"}
    sampling = {
        ours: old.get(f"optimization.mcmc.{key}", f"optimization.cmc.{key}")
        for key, ours in chains.items()
    }
    new["sampling"] = {k: v for k, v in sampling.items() if v is not None}
    saving = {
        "every": old.get("optimization.streaming.checkpoint_frequency"),
        "keep": old.get("optimization.streaming.keep_last_checkpoints"),
    }
    new["checkpoint"] = {k: v for k, v in saving.items() if v is not None}
    return {key: value for key, value in new.items() if value}


def _scale_bounds(
    old: _Old, scaling: dict[str, Any] | None, notices: list[str]
) -> dict[str, Any]:
    """Returns bounds of contrast and offset, if the scaling takes any."""
    options = dict(scaling or {"type": "PerAngle"})
    kind = options.pop("type")
    constant = scaling == _CONSTANT
    keep, new = not constant and KINDS[kind](**options).takes_bounds, {}
    for item in _items(old.found.get("parameter_space.bounds")):
        bounds: Any = item.plain()
        name = bounds.get("name")
        if name not in ("contrast", "offset"):
            continue
        if keep:
            new[f"{name}_bounds"] = [bounds.get("min"), bounds.get("max")]
            notices.append(f"line {item.line}: bounds of the {name} are kept")
        else:
            notices.append(
                f"line {item.line}: bounds of the {name} are left out: the scaling "
                f"{kind} takes none, PerAngle and Shared do"
            )
    return new
