"""The completion script for bash, from 3.2 on. Knows no parser."""

from collections.abc import Callable, Sequence

from spm_client.cli.shell_words import Place, valued

_HEAD = """\
# Completion of spm for bash, written by `spm completion bash`.
"""
_BODY = r"""
# Nothing that is offered is ever expanded: a file may have any name.
_spm_reply() {
    local newline=$'\n'
    case $1 in
        @files) compopt -o filenames 2>/dev/null; _spm_offer "$(compgen -f -- "$cur")" ;;
        @folders) compopt -o filenames 2>/dev/null; _spm_offer "$(compgen -d -- "$cur")" ;;
        @*) _spm_offer "$(spm completion "${1#@}" "${given[@]}" 2>/dev/null)" ;;
        *) _spm_offer "${1// /$newline}" ;;
    esac
}

# Offer those of some lines that begin as the word does.
_spm_offer() {
    local line
    while IFS= read -r line; do
        [[ -n $line && $line == "$cur"* ]] && COMPREPLY+=("$line")
    done <<< "$1"
}

_spm() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path= word i
    local -a given=()
    COMPREPLY=()
    # `--device=cuda` comes in three words.
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = && $COMP_CWORD -gt 2 ]]; then
        prev=${COMP_WORDS[COMP_CWORD-2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == -* ]]; then
            if [[ " $(_spm_valued "$path") " == *" $word "* ]]; then
                ((i++))
                [[ ${COMP_WORDS[i]} == = ]] && ((i++))
                [[ $word == --root || $word == --project ]] && ((i < COMP_CWORD)) && given+=("$word" "${COMP_WORDS[i]}")
            fi
        elif [[ " $(_spm_words "$path") " == *" $word "* ]]; then
            path="${path:+$path }$word"
        fi
    done
    if [[ $prev == -* && " $(_spm_valued "$path") " == *" $prev "* ]]; then
        _spm_reply "$(_spm_value "$path" "$prev")"
    elif [[ $cur == -* ]]; then
        _spm_reply "$(_spm_options "$path")"
    elif [[ -n $(_spm_words "$path") ]]; then
        _spm_reply "$(_spm_words "$path")"
    else
        _spm_reply "$(_spm_argument "$path")"
    fi
}

complete -F _spm spm"""


def script(places: Sequence[Place]) -> str:
    """Return the script."""
    tables = (
        _table("_spm_words", places, lambda place: " ".join(place.words)),
        _table("_spm_options", places, lambda place: " ".join(option.name for option in place.options)),
        _table("_spm_valued", places, lambda place: " ".join(valued(place))),
        _table("_spm_argument", places, lambda place: place.argument),
        _values(places),
    )
    return _HEAD + "\n".join(tables) + _BODY


def _table(name: str, places: Sequence[Place], told: Callable[[Place], str]) -> str:
    cases = "\n".join(f'        "{place.path}") echo "{told(place)}" ;;' for place in places if told(place))
    return f"{name}() {{\n    case $1 in\n{cases}\n    esac\n}}\n"


def _values(places: Sequence[Place]) -> str:
    cases = "\n".join(
        f'        "{place.path} {option.name}") echo "{option.value}" ;;'
        for place in places
        for option in place.options
        if option.value
    )
    return f'_spm_value() {{\n    case "$1 $2" in\n{cases}\n    esac\n}}\n'
