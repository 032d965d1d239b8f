"""`python -m onnxsmith`."""

from onnxsmith.cli import main

if __name__ == "__main__":
    main()
