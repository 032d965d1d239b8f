"""Builds the documentation site and holds it to its targets: time, size, dead links, and what a browser says of it.

    make bench   or   python benchmarks/site.py [--built]

The program runs `make docs`, unless `--built`. It reads every link of the built pages. Then Chromium opens every page
from disk, without a network. It counts each request for anything but a file of the site, and times the first paint of
each page. One page searches. axe-core looks at one page of each kind, in light and in dark colours. Playwright and
axe-playwright-python are needed.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "site"
SECONDS, MEGABYTES, PAINT = 90.0, 25.0, 1.0
"""The targets of the build, of the site, and of the first paint of a page in seconds."""
PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
WORD = "BatchNormalization"
KINDS = (
    "index", "exporting", "architecture", "benchmarks", "contributing", "examples/index",
    "examples/02_linear_layer/index", "reference/commands/index", "reference/commands/quantize",
    "how_to/keep_batch_open", "reference/problems/model", "reference/rules/fuse", "reference/targets",
    "reference/python",
)  # fmt: skip
"""A page of each kind, for axe-core, which takes seconds for each."""


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.links += [named[name] for name in ("href", "src") if name in named]
        self.anchors |= {named[name] for name in ("id", "name") if name in named}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--built", action="store_true", help="take the site that is there")
    missed = [] if parser.parse_args().built else list(built())
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(SITE.rglob("*.html"))}
    missed += [*sized(len(pages)), *linked(pages), *browsed(list(pages))]
    for what in missed:
        print(f"MISSED: {what}")
    return 1 if missed else 0


def built() -> Iterator[str]:
    """Builds the site. The environment is made before the clock starts."""
    subprocess.run(["make", "--silent", ".venv-docs/.installed"], cwd=ROOT, check=True)
    start = time.monotonic()
    subprocess.run(["make", "--silent", "docs"], cwd=ROOT, check=True)
    seconds = time.monotonic() - start
    print(f"build: {seconds:.1f} s (target {SECONDS:.0f} s)")
    if seconds > SECONDS:
        yield "the time of the build"


def sized(pages: int) -> Iterator[str]:
    """Counts pages, files and bytes."""
    sizes = [path.stat().st_size for path in SITE.rglob("*") if path.is_file()]
    print(f"site: {pages} pages, {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB (target {MEGABYTES:.0f} MB)")
    if not pages or sum(sizes) > MEGABYTES * 1e6:
        yield "the size of the site"


def linked(pages: dict[Path, Page]) -> Iterator[str]:
    """Follows each link to a file of the site, and to its anchor."""
    followed, dead = 0, []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            followed += 1
            # The page for addresses without a page has links from the root of a server.
            base = SITE if parts.path.startswith("/") else path.parent
            target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].anchors):
                dead.append(f"{path.relative_to(SITE)}: {link}")
    print(f"links: {followed} inside of the site, {len(dead)} dead (target 0)")
    if dead:
        yield f"dead links, the first is {dead[0]}"


def browsed(pages: list[Path]) -> Iterator[str]:
    """Opens the pages from disk in Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield from requested(browser, [one for one in pages if one.name != "404.html"])
        yield from searched(browser)
        yield from accessible(browser)
        browser.close()


def requested(browser: Any, pages: list[Path]) -> Iterator[str]:
    """Counts requests for what is no file of the site, and errors of the pages' scripts."""
    page = browser.new_page()
    outside: list[str] = []
    errors: list[str] = []
    page.on("request", lambda one: outside.append(one.url) if not one.url.startswith(SITE.as_uri()) else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    paints: dict[Path, float] = {}
    for path in pages:
        page.goto(path.as_uri(), wait_until="load")
        page.wait_for_function(f"{PAINTED[6:]} !== undefined")
        paints[path] = page.evaluate(PAINTED) / 1000
    page.close()
    print(f"opened from disk: {len(pages)} pages, {len(outside)} requests outside of the site, {len(errors)} errors")
    slowest = max(paints, key=lambda one: paints[one])
    print(
        f"first paint: {statistics.median(paints.values()):.2f} s in the median, {paints[slowest]:.2f} s at most, "
        f"{slowest.relative_to(SITE)} (target {PAINT:.0f} s)"
    )
    if paints[slowest] > PAINT:
        yield f"the first paint of {slowest.relative_to(SITE)}"
    if outside or errors:
        yield f"a request or an error, the first is {(outside + errors)[0]}"


def searched(browser: Any) -> Iterator[str]:
    """Searches for a word on a page that was opened from disk, without a network."""
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto((SITE / "index.html").as_uri())
    page.click("label.md-search__icon, .md-search__input")
    page.locator(".md-search__input").press_sequentially(WORD)  # the page listens to keys
    results = page.locator(".md-search-result__item")
    try:
        results.first.wait_for(timeout=20_000)
        first = results.first.locator("h1, h2").first.inner_text()
        print(f"search from disk: {WORD} is on {results.count()} pages, the first is {first!r}")
    except Exception as error:  # noqa: BLE001  # whatever keeps the result away
        yield f"the search from disk: {str(error).splitlines()[0]}"
    context.close()


def accessible(browser: Any) -> Iterator[str]:
    """Asks axe-core about a page of each kind."""
    from axe_playwright_python.sync_playwright import Axe

    counts: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], str] = {}
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme, reduced_motion="reduce")
        page = context.new_page()
        for kind in KINDS:
            page.goto((SITE / f"{kind}.html").as_uri())
            for one in Axe().run(page).response["violations"]:
                key = (one["impact"] or "none", one["id"])
                counts[key] += len(one["nodes"])
                examples.setdefault(key, f"{kind}, {scheme}: {one['nodes'][0]['html'][:120]}")
        context.close()
    serious = {key: count for key, count in counts.items() if key[0] in ("serious", "critical")}
    print(f"axe-core: {2 * len(KINDS)} pages, {sum(serious.values())} serious findings of {sum(counts.values())}")
    for (impact, rule), count in sorted(counts.items()):
        print(f"  {impact}: {rule}, {count} times, first on {examples[impact, rule]}")
    if serious:
        yield f"accessibility: {', '.join(rule for _, rule in serious)}"


if __name__ == "__main__":
    sys.exit(main())
