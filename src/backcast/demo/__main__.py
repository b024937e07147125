"""`python -m backcast.demo`: tells the story, and exits with 1 when one of its claims does not hold."""

from __future__ import annotations

import sys
from pathlib import Path

from backcast.demo.narrator import ClaimBroken, Narrator
from backcast.errors import BackcastError


def main() -> int:
    from backcast.cli.dispatch import INTERRUPTED
    from backcast.demo.story import tell

    narrator = Narrator()
    try:
        tell(Path.cwd(), narrator)
    except ClaimBroken as broken:
        print(f"\n  [BROKEN] {broken}", flush=True)
        return 1
    except BackcastError as error:
        print(f"\nerror[{error.code}]: {error.message}\n  hint: {error.hint}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("\nInterrupted. Everything that the story had started is stopped.", file=sys.stderr)
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
