"""The site of the documentation: strict, whole, and usable from a folder without any network."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Page, sync_playwright

from documentation import __main__ as site
from documentation import pages, sentences, targets
from records.ailments.table import KNOWN
from records.causes import known_in
from site_configs.site_file import KEYS
from tests.analysis.report.test_report import CHROMIUM, QUIET

PROJECT = Path(__file__).resolve().parents[2]
TOOLS = PROJECT / site.MKDOCS
ADDRESS = re.compile(r"(?:href|src)=\"?([^\" >]+)")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a site that was built as `make docs` does it."""
    folder = tmp_path_factory.mktemp("site") / "docs"
    done = subprocess.run(
        [sys.executable, "-m", "documentation", "--out", folder], cwd=PROJECT, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"docs: {folder / 'index.html'}\n"
    return folder


def lacking(folder: Path) -> list[str]:
    """Return what pages of a site link and it has not, or what is elsewhere and they load."""
    found = []
    for page in folder.rglob("*.html"):
        text = page.read_text()
        for address in ADDRESS.findall(text):
            parts = urlsplit(address)
            if parts.scheme in ("http", "https"):
                loaded = f'src="{address}"' in text or f'stylesheet" href="{address}"' in text
                found += [f"{page.name} loads {address}"] if loaded else []
            elif parts.path and not parts.scheme:
                # The page for a server's errors has addresses from the server's root.
                place = folder if page.name == "404.html" else page.parent
                if not (place / unquote(parts.path).lstrip("/")).exists():
                    found.append(f"{page.name}: {address}")
    return found


def test_a_folder_that_is_no_site_is_not_replaced(tmp_path: Path) -> None:
    """Whoever names the folder of something else keeps it."""
    kept, empty, old = (tmp_path / name for name in ("kept", "empty", "old"))
    for folder in (kept, empty, old):
        folder.mkdir()
    (kept / "letter").write_text("dear")
    (old / site.MARK).touch()
    assert "has other files" in (site.why_kept(kept, False) or "")
    assert "is a file" in (site.why_kept(kept / "letter", False) or "")
    for folder in (empty, old, tmp_path / "new"):
        assert site.why_kept(folder, False) is None
    assert site.why_kept(kept, True) is None


@pytest.mark.real
def test_a_folder_that_cannot_be_written_is_a_sentence() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "documentation", "--out", "/proc/docs"], cwd=PROJECT, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and done.stderr.startswith("docs: /proc/docs cannot be written: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_place_that_cannot_be_written_is_refused_before_pages_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / site.MKDOCS).parent.mkdir(parents=True)
    (tmp_path / site.MKDOCS).touch()
    monkeypatch.setattr(site, "gather", lambda *_: pytest.fail("pages were made"))
    said = site.build(tmp_path, Path("/proc/docs")) or ""
    assert said.startswith("/proc/docs cannot be written: "), said


@pytest.mark.real
def test_all_links_of_the_site_lead_into_it(built: Path) -> None:
    assert lacking(built) == []
    shown = {str(page.relative_to(built)) for page in built.rglob("*.html")} - {"404.html"}
    names = [*pages.listed(PROJECT), *pages.DRAWN]
    made = {re.sub(r"README\.md$", "index.md", name).removesuffix(".md") for name in names}
    assert {name.removesuffix(".html") for name in shown} == made


@pytest.mark.real
def test_a_link_to_nothing_and_a_page_of_no_menu_end_the_build(tmp_path: Path) -> None:
    root = tmp_path / "checkout"
    (root / "documentation").mkdir(parents=True)
    (root / "documentation" / "theme").symlink_to(PROJECT / pages.THEME)
    for name in (".wyeast", "Makefile", "campaign", "docs", "containers", "site_configs", "records",
                 "reframe_checks", "analysis", "cluster", "costs", "benchmarks"):  # fmt: skip
        (root / name).symlink_to(PROJECT / name)
    settings = (PROJECT / pages.SETTINGS).read_text()
    (root / pages.SETTINGS).write_text(
        settings[: settings.index("\nnav:\n")] + "\nnav: [README.md]\n"
    )
    (root / "README.md").write_text("# A\n\n[b](nowhere.md) [c](README.md#no-such)\n")
    subprocess.run(["git", "init", "-q", root], check=True)
    wrong = site.build(root, tmp_path / "site") or ""
    assert "nowhere.md" in wrong and "no-such" in wrong and "not included in the" in wrong
    assert not (tmp_path / "site").exists()


@pytest.fixture(scope="module")
def browser_page(built: Path) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
        page.on("console", lambda message: pytest.fail(f"console: {message.text}"))
        page.on("pageerror", lambda error: pytest.fail(f"page error: {error}"))
        page.on("request", lambda request: only_files(request.url))
        yield page
        browser.close()


def only_files(url: str) -> None:
    assert url.startswith(("file:", "data:", "about:")), f"the site asks for {url}"


@pytest.mark.browser
def test_the_search_finds_words_without_a_server(built: Path, browser_page: Page) -> None:
    page = browser_page
    page.goto((built / "docs" / "tutorial.html").as_uri())
    page.locator("label.md-header__button[for=__search]").click()
    for words, title in (("newuidmap", "Troubleshooting by error text"),
                         ("link_bytes_per_s", "The keys of site.yaml")):  # fmt: skip
        page.fill(".md-search__input", "")
        # Typed: the search listens to keys.
        page.locator(".md-search__input").press_sequentially(words)
        found = page.locator(".md-search-result__article h1", has_text=title)
        found.first.wait_for(timeout=60_000)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1")


@pytest.mark.browser
@pytest.mark.parametrize("name", ["index", "docs/reading-the-report", "docs/reference/site-keys",
                                  "docs/refusals"])  # fmt: skip
def test_no_page_is_wider_than_a_phone(name: str, built: Path, browser_page: Page) -> None:
    browser_page.goto((built / f"{name}.html").as_uri())
    assert browser_page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1")


def test_each_known_cause_has_an_example_that_is_known() -> None:
    page = sentences.troubleshooting(PROJECT)
    for one in KNOWN:
        assert one.examples
        for example in one.examples:
            assert known_in(example) is one and f"    {example}\n" in page


def test_refusals_are_listed_by_their_words() -> None:
    page = sentences.refusals(PROJECT)
    for words in (
        "ROUNDS=…: a campaign has 1 to … rounds; give such a number",
        "submits jobs by `scheduler: …`",
        "is not a valid site name; use letters",
    ):
        assert words in page, words
    assert page.count("\n- ") > 400
    raising = 'raise XError(f"the file {name} is not there: " + why)\n'
    said = sentences.found_in("a.py", ast.parse(raising))
    assert [one.words for one in said] == ["the file … is not there: …"]
    saying_nothing = 'raise XError("too short")\nprint("a" * 30)\n'
    assert not sentences.found_in("a.py", ast.parse(saying_nothing))


def test_every_key_of_a_site_has_a_meaning_and_every_target_a_row() -> None:
    page = pages.DRAWN["docs/reference/site-keys.md"](PROJECT)
    assert set(re.findall(r"(?m)^\| `(\w+)` \| (?:yes|no) \| .+ \| .+ \|$", page)) == set(KEYS)
    told = re.findall(r"(?m)^([a-z-]+):[^=\n]*##", (PROJECT / "Makefile").read_text())
    assert set(re.findall(r"\| `make ([a-z-]+)`", targets.page(PROJECT))) == set(told)


def test_lists_are_set_apart_from_words_before_them() -> None:
    text = "words:\n- a\n- b\n\n```\nwords\n- c\n```\n1. d\n   more\n2. e\n"
    assert pages.with_lists(text) == text.replace("words:\n-", "words:\n\n-").replace(
        "```\n1.", "```\n\n1."
    )


def test_without_its_program_it_says_what_installs_it(tmp_path: Path) -> None:
    assert "make docs installs it" in (site.build(tmp_path, tmp_path / "site") or "")
