"""`atoll down`: end the supervisor, which ends all it started."""

from atoll.embedded.launch import end
from atoll.embedded.layout import Layout
from atoll.embedded.progress import progress
from atoll.embedded.say import say


async def bring_down(layout: Layout) -> int:
    """Return when nothing runs any more; the exit code."""
    with progress() as shown:
        ended = await end(layout, shown)
    if ended:
        say(f"Atoll is down. Its data stay in {layout.data}.")
    else:
        layout.forget()
        say(f"Atoll does not run in {layout.data}.")
    return 0
