from cwbench.cli import main

if __name__ == "__main__":
    main()
