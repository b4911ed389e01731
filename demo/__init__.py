"""The main job as a narrated session on real input. Part of no package; `make demo` runs it."""
