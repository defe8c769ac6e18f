import sys


def main() -> None:
    """The command line. Ctrl-C ends it without a traceback, also while it is being imported."""
    try:
        from cwbench.cli import main

        main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
