"""``python -m custody.server`` is the ``custody`` command."""

from custody.cli import main

if __name__ == "__main__":
    main()
