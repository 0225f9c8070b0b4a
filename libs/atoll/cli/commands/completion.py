"""`atoll completion`."""

from typing import Annotated, Literal

from cyclopts import Parameter

from atoll.cli import exits


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(name="SHELL")], /) -> int:
    """Print the completions of a shell.

    bash: atoll completion bash > ~/.local/share/bash-completion/completions/atoll
    zsh:  atoll completion zsh > "${fpath[1]}/_atoll"
    fish: atoll completion fish > ~/.config/fish/completions/atoll.fish

    Args:
        shell: The shell.
    """
    from atoll.cli.app import build

    print(build().generate_completion(shell=shell))
    return exits.OK
