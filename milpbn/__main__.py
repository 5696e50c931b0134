"""``python -m milpbn`` is the command ``milpbn``."""

from milpbn.cli import main

if __name__ == "__main__":
    main()
