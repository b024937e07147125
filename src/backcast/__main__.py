"""`python -m backcast`: the same as the `backcast` command."""

from backcast.cli.app import main

if __name__ == "__main__":
    main()
