"""One story a module: pack, sign, publish, install, verify, uninstall. Prints nothing and asks nobody."""
