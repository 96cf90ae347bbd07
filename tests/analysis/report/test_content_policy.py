"""A page's own style and script run, by their digests; what others put into it does not."""

import base64
import hashlib
import html
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from analysis.report.report import write_report
from tests.analysis.report.test_report import browser  # noqa: F401
from tests.analysis.support.in_process import analysis
from tests.analysis.support.synthetic import TWICE, Synthetic


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Synthetic(tmp_path_factory.mktemp("policy") / "c", TWICE, rounds=2).write()
    write_report(made, None, None)
    analysis("study", "kearns2003", str(made), "--html", str(made / "study.html"))
    analysis("history", "--runs", str(made.parent), "--html", str(made / "history.html"))
    return made


@pytest.mark.parametrize("page", ["report.html", "study.html", "history.html"])
def test_styles_and_scripts_are_allowed_by_their_digests_alone(folder: Path, page: str) -> None:
    text = (folder / page).read_text()
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    policy = html.unescape(policy)
    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert parts["default-src"] == "'none'" and "unsafe" not in policy
    for tag in ("style", "script"):
        found = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digests = [
            f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'"
            for one in found
        ]
        assert digests == parts[f"{tag}-src"].split() and len(digests[0]) > 50
    # No attribute would be applied, and none is there.
    assert not re.search(r"<[a-z][^>]*\s(?:style|on[a-z]+)=", text)


@pytest.mark.browser
def test_a_script_of_others_does_not_run(browser: Browser, folder: Path) -> None:  # noqa: F811
    page = folder / "attacked.html"
    attack = (
        "<script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">"
    )
    page.write_text((folder / "report.html").read_text().replace("<main>", f"<main>{attack}"))
    opened = browser.new_page()
    refused: list[str] = []
    opened.on("console", lambda message: refused.append(message.text))
    opened.goto(page.as_uri())
    assert opened.title() != "owned" and any("Content Security Policy" in one for one in refused)
    # Its own script still does.
    assert opened.locator("[data-toggle]").first.get_attribute("aria-pressed") is not None
    opened.close()
