"""demo: the main job on this machine, with virtual devices."""

from typing import Annotated

import typer


def demo(
    auto: Annotated[bool, typer.Option("--auto", help="Press every button without a person.")] = False,
) -> None:
    """Run the main job end to end on this machine: the platform, three signers, three virtual devices."""
    from signerd.demo import story

    raise typer.Exit(story.main(auto=auto))
