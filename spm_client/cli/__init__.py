"""The `spm` command: one file a subcommand, imported only when it is asked for."""
