"""Stages the documentation site: `build/docs` holds its pages, `build/mkdocs.yml` its settings and its navigation.

    python -m tools.documentation [--to build]

The program needs onnxsmith and no library beside it. `make docs` builds the site from the staged pages with MkDocs.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tools.documentation import staging


def main() -> None:
    """Stages the site in the folder that the command line names."""
    parser = argparse.ArgumentParser(description="stage the pages of the documentation site")
    parser.add_argument("--to", type=Path, default=staging.ROOT / "build", help="folder for docs/ and mkdocs.yml")
    folder = parser.parse_args().to
    files = staging.files()
    staging.write(files, folder)
    print(f"{folder / 'docs'}: {sum(path.endswith('.md') for path in files)} pages, {len(files)} files")


if __name__ == "__main__":
    main()
