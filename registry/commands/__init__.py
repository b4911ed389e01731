"""The bodies of `spm-registry` commands, one file a command. Argument parsing is in `registry.cli`."""
