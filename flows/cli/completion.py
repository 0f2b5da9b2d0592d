"""``dprelease completion``: print what teaches a shell the commands and options."""

from typing import Annotated, Literal

from cyclopts import Parameter


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="the shell")], /
) -> None:
    """Print a script that completes commands and options in a shell.

    For bash, write into ~/.bashrc: eval "$(dprelease completion bash)"
    """
    from flows.cli import command_line

    print(command_line().generate_completion(shell=shell))
