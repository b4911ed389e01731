"""`spm completion`."""

import argparse
import importlib

from spm_client.cli.project_options import add_project, find_folder, require_folder
from spm_client.cli.session import Session

SHELLS = ("bash", "zsh", "fish")
INSTALLED, LOCKED, REQUIRED, TARGETS = NAMES = ("installed", "locked", "required", "targets")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        'bash: `eval "$(spm completion bash)"` in ~/.bashrc. zsh: `eval "$(spm completion zsh)"` in ~/.zshrc, after '
        "`compinit`. fish: `spm completion fish > ~/.config/fish/completions/spm.fish`."
    )
    parser.add_argument(
        "shell",
        choices=(*SHELLS, *NAMES),
        metavar="SHELL",
        help="bash, zsh or fish; `installed`, `locked`, `required` and `targets` print the names that the scripts "
        "ask for",
    )
    add_project(parser)


def run(options: argparse.Namespace, session: Session) -> int:
    if options.shell in NAMES:
        names = _names(options, session)
        session.emit({"targets" if options.shell == TARGETS else "names": names})
        text = "\n".join(names)
    else:
        from spm_client.cli.main import COMMANDS
        from spm_client.cli.shell_words import places

        module = importlib.import_module(f"spm_client.cli.shell_{options.shell}")
        text = module.script(places(COMMANDS))
        session.emit({"shell": options.shell, "script": text})
    if text and not session.is_json:
        print(text)
    return 0


def _names(options: argparse.Namespace, session: Session) -> list[str]:
    if options.shell == REQUIRED:
        return [str(one.name) for one in require_folder(options).project.requirements]
    if options.shell == TARGETS:
        return [name for name, _ in require_folder(options).project.targets]
    folder = find_folder(options) if options.shell == LOCKED else None
    if folder is None:  # without a project, what is locked is what is installed
        return [str(entry.name) for entry in session.generation("").plugins]
    return sorted({str(one.name) for one in folder.require_lock().plugins})
