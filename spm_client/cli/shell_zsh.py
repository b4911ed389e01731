"""The completion script for zsh. Knows no parser."""

from collections.abc import Iterable, Sequence

from spm_client.cli.shell_words import Place, valued

_HEAD = """\
#compdef spm
# Completion of spm for zsh, written by `spm completion zsh`.
typeset -gA _spm_words _spm_options _spm_valued _spm_argument _spm_value
"""
_BODY = r"""
_spm_reply() {
    case $1 in
        @files) _files ;;
        @folders) _files -/ ;;
        @*) compadd -- ${(f)"$(spm completion ${1#@} $given 2>/dev/null)"} ;;
        *) compadd -- ${=1} ;;
    esac
}

_spm() {
    local place= word prev=${words[CURRENT-1]} i
    local -a given described
    for ((i = 2; i < CURRENT; i++)); do
        word=${words[i]}
        if [[ $word == -* ]]; then
            if [[ " ${_spm_valued[.$place]} " == *" $word "* ]]; then
                ((i++))
                [[ $word == --root || $word == --project ]] && ((i < CURRENT)) && given+=($word ${(Q)words[i]})
            fi
        elif [[ $'\n'${_spm_words[.$place]} == *$'\n'$word:* ]]; then
            place="${place:+$place }$word"
        fi
    done
    if [[ $PREFIX == --*=* ]]; then
        prev=${PREFIX%%=*}
        compset -P '*='
    fi
    if [[ $prev == -* && " ${_spm_valued[.$place]} " == *" $prev "* ]]; then
        _spm_reply "${_spm_value[.$place $prev]}"
    elif [[ $PREFIX == -* ]]; then
        described=(${(f)_spm_options[.$place]})
        _describe -o option described
    elif [[ -n ${_spm_words[.$place]} ]]; then
        described=(${(f)_spm_words[.$place]})
        _describe command described
    else
        _spm_reply "${_spm_argument[.$place]}"
    fi
}

if [[ $funcstack[1] == _spm ]]; then
    _spm "$@"
else
    compdef _spm spm
fi"""


def script(places: Sequence[Place]) -> str:
    """Return the script. A key begins with a dot, since zsh has no empty ones."""
    tables = {
        "_spm_words": {place.path: _described(place.words.items()) for place in places},
        "_spm_options": {place.path: _described((one.name, one.about) for one in place.options) for place in places},
        "_spm_valued": {place.path: " ".join(valued(place)) for place in places},
        "_spm_argument": {place.path: place.argument for place in places},
        "_spm_value": {f"{place.path} {one.name}": one.value or "" for place in places for one in place.options},
    }
    return _HEAD + "".join(_table(name, told) for name, told in tables.items()) + _BODY


def _table(name: str, told: dict[str, str]) -> str:
    pairs = "\n".join(f"    {_quoted(f'.{key}')} {_quoted(text)}" for key, text in told.items() if text)
    return f"{name}=(\n{pairs}\n)\n"


def _described(words: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"{name}:{' '.join(about.split())}" for name, about in words)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
