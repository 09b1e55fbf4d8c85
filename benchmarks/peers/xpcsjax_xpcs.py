"""xpcsjax, homodyne's successor, which has functions of the same names."""

from .homodyne_xpcs import serve_package


if __name__ == "__main__":
    serve_package("xpcsjax")
