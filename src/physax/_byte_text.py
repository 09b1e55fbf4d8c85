"""Numbers of bytes as text."""


def byte_text(size: float | int) -> str:
    """Returns a number of bytes with three digits and a decimal unit."""
    units = ["B", "kB", "MB", "GB", "TB"]
    while size >= 999.5 and len(units) > 1:
        size, units = size / 1e3, units[1:]
    return f"{size:.3g} {units[0]}"
