"""Tells the API reference that `from ._a import X as X` makes X public."""

import griffe


class Exports(griffe.Extension):
    """Lists what a package offers, as `__all__` would."""

    def on_module_members(self, *, mod, **kwargs):
        del kwargs
        if mod.is_init_module and mod.exports is None:
            inside = mod.path.split(".")[0] + "."
            mod.exports = [
                name
                for name, member in mod.members.items()
                if member.is_alias and member.target_path.startswith(inside)
            ]
