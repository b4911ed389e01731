"""What people may write for a plugin on the command line, and what they are told otherwise."""

import pytest

from manifests.errors import UsageError
from spm_client.resolve import parse_spec

FORMS = "write `NAME`, `NAME==1.2.3`, `NAME@^1.2`, `NAME>=1.2,<2` or `NAME-v1.2.3`"


@pytest.mark.parametrize(
    ("text", "name", "wanted"),
    [
        ("log-mel", "log-mel", "*"),
        ("log-mel==1.2.0", "log-mel", "==1.2.0"),
        ("log-mel@^1.2", "log-mel", "^1.2"),
        ("log-mel@1.2.x", "log-mel", "1.2.x"),
        ("log-mel@1.0.0 - 2.0.0", "log-mel", "1.0.0 - 2.0.0"),
        ("log-mel@^1 || ^3", "log-mel", "^1 || ^3"),
        ("log-mel>=1.2,<2", "log-mel", ">=1.2,<2"),
        ("log-mel>1.2", "log-mel", ">1.2"),
        ("log-mel<2", "log-mel", "<2"),
        ("log-mel!=1.2.0", "log-mel", "!=1.2.0"),
        ("log-mel~=1.2.3", "log-mel", "~=1.2.3"),
        ("log-mel^1.2", "log-mel", "^1.2"),
        ("log-mel >=1.2, <2", "log-mel", ">=1.2, <2"),
        ("audio-encoder-v2.0.5", "audio-encoder", "==2.0.5"),
        ("audio-encoder-v2.1.0-rc.1", "audio-encoder", "==2.1.0-rc.1"),
        ("Audio_Encoder", "audio-encoder", "*"),
        ("audio.encoder==2.0.5", "audio-encoder", "==2.0.5"),
        ("  log-mel  ", "log-mel", "*"),
        ("silero-v5", "silero-v5", "*"),
    ],
)
def test_spec_reads_as_name_and_range(text: str, name: str, wanted: str) -> None:
    requirement = parse_spec(text)

    assert (requirement.name, requirement.range.text, requirement.source) == (name, wanted, "you")


def test_handbook_form_is_exactly_that_version() -> None:
    requirement = parse_spec("audio-encoder-v2.0.5")

    assert str(requirement.range.exact) == "2.0.5"


def test_source_says_who_wants_it() -> None:
    assert parse_spec("log-mel", source="spm.toml").source == "spm.toml"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "'' is not a plugin specifier", FORMS),
        ("a b", "'a b' is not a plugin specifier", FORMS),
        ("==1.0.0", "'==1.0.0' is not a plugin specifier", FORMS),
        ("a/b/log-mel", "'a/b/log-mel' is not a plugin specifier", FORMS),
        ("Team/log-mel", "'Team/log-mel' is not a plugin specifier", FORMS),
        ("team/", "'team/' is not a plugin specifier", FORMS),
        ("log-mel@", "'log-mel@' is not a plugin specifier: no range follows `@`", FORMS),
        (
            "-log",
            "'-log' is not a plugin specifier: '-log' is not a plugin name: names are lower-case words of a-z and 0-9 "
            "joined by single hyphens, 64 characters at most",
            FORMS,
        ),
        (
            "log-mel@2.0.5",
            "'log-mel@2.0.5' is not a plugin specifier: the range '2.0.5' has the bare number `2.0.5`, which would "
            "have to be interpreted",
            "write `==2.0.5`, `~2.0` or `>=2.0,<3`",
        ),
        (
            "log-mel>=",
            "'log-mel>=' is not a plugin specifier: '>=' is not a range: '>=' is not a comparator such as "
            "`>=1.2,<2`, `^1.2`, `~1.2`, `==1.2.3` or `1.2.x`",
            FORMS,
        ),
    ],
)
def test_other_spellings_are_refused_with_what_to_write(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_spec(text)

    assert (refused.value.message, refused.value.hint, refused.value.exit_code) == (message, hint, 2)


def test_endless_spec_is_refused_and_shown_shortened() -> None:
    with pytest.raises(UsageError) as refused:
        parse_spec("a" * 10_000)

    assert refused.value.message == f"'{'a' * 80}' is not a plugin specifier"
