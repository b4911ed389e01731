"""The client: fetches, decides, installs, and the `spm` command. Stores nothing for others and serves nothing."""

__version__ = "0.1.0"
