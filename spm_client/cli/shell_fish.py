"""The completion script for fish. Knows no parser."""

from collections.abc import Iterator, Sequence

from spm_client.cli.shell_words import FILES, FOLDERS, Option, Place, valued

_HEAD = r"""# Completion of spm for fish, written by `spm completion fish`.
function __spm_place
    # Print the commands typed so far: options and their values are passed over.
    set -l place
    set -l is_value 0
    for word in (commandline -opc)[2..-1]
        if test $is_value = 1
            set is_value 0
        else if string match -q -- '-*' $word
            contains -- $word (__spm_valued "$place"); and set is_value 1
        else if contains -- $word (__spm_words "$place")
            set -a place $word
        end
    end
    echo "$place"
end

function __spm_at
    test (__spm_place) = "$argv[1]"
end

function __spm_names
    set -l words (commandline -opc)
    set -l given
    for place in (seq 2 (math (count $words) - 1))
        contains -- $words[$place] --root --project; and set -a given $words[$place] $words[(math $place + 1)]
    end
    spm completion $argv[1] $given 2>/dev/null
end
"""


def script(places: Sequence[Place]) -> str:
    """Return the script."""
    words = {place.path: list(place.words) for place in places}
    options = {place.path: valued(place) for place in places}
    lines = ["complete -c spm -f"]
    for place in places:
        lines += _lines(place)
    return _HEAD + "\n".join((_table("__spm_words", words), _table("__spm_valued", options), *lines))


def _lines(place: Place) -> Iterator[str]:
    begin = f"complete -c spm -n {_quoted(f'__spm_at {_inner(place.path)}')}"
    for name, about in place.words.items():
        yield f"{begin} -a {name} -d {_quoted(about)}"
    if place.argument:
        yield f"{begin} {_candidates(place.argument)}"
    for option in place.options:
        yield f"{begin} {_named(option)} -d {_quoted(' '.join(option.about.split()))}{_valued(option)}"


def _named(option: Option) -> str:
    return f"-l {option.name[2:]}" if option.name.startswith("--") else f"-s {option.name[1:]}"


def _valued(option: Option) -> str:
    if option.value is None:
        return ""
    return f" -r {_candidates(option.value)}" if option.value else " -x"


def _candidates(value: str) -> str:
    signs = {FILES: "-F", FOLDERS: "-f -a '(__fish_complete_directories)'"}
    names = f"-f -a '(__spm_names {value[1:]})'" if value.startswith("@") else ""
    return signs.get(value) or names or f"-f -a {_quoted(value)}"


def _table(name: str, told: dict[str, list[str]]) -> str:
    cases = "\n".join(
        f"        case {_quoted(path)}\n            printf '%s\\n' {' '.join(words)}"
        for path, words in told.items()
        if words
    )
    return f'function {name}\n    switch "$argv[1]"\n{cases}\n    end\nend\n'


def _inner(path: str) -> str:
    return f'"{path}"'


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
