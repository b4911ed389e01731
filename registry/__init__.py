"""The private registry: takes signed plugins in, serves them as immutable objects. Does not install or run them."""

__version__ = "0.1.0"
