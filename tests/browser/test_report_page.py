# SPDX-License-Identifier: Apache-2.0
"""The page of `stoker report` in a real Chromium without a network."""

import contextlib
import re
import zlib

import pytest
from chromium import Chromium
from run_directory import Step, warming_up, write_run

HOSTILE = [
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "\"><svg onload=document.title='owned'>",
    "'-alert(1)-'",
    "<!--<script>",
    "\u2028document.title='owned'\u2029//",
    "${document.title='owned'}",
    "\u202ereversed",
]

# How many pixels of each chart's canvases are not as the corner is.
PIXELS = """
[...document.querySelectorAll("figure .plot")].map(plot => {
  let drawn = 0;
  for (const canvas of plot.querySelectorAll("canvas")) {
    const data = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    for (const pixel of data) if (pixel !== data[0]) ++drawn;
  }
  return drawn;
})
"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with contextlib.closing(Chromium(tmp_path_factory.mktemp("profile"))) as browser:
        yield browser


@pytest.fixture
def page(stoker_cli, tmp_path):
    """page(run, …): writes their report and says where it is."""

    def make(*runs, options=()):
        stoker_cli("report", *runs, "-o", tmp_path / "report.html", *options)
        return tmp_path / "report.html"

    return make


def test_loads_and_draws_without_a_network(chromium, page, tmp_path):
    path = page(write_run(tmp_path / "run", [warming_up(400)]))
    chromium.open(path)
    assert chromium.complaints() == []
    assert chromium.requests() == [path.as_uri()]
    names = chromium.evaluate("[...document.querySelectorAll('figure')].map(f => f.dataset.series)")
    assert names == ["throughput", "waiting", "cpu", "memory"]
    assert chromium.evaluate("document.querySelectorAll('figure[data-drawn]').length") == 4
    assert min(chromium.evaluate(PIXELS)) > 300
    text = chromium.evaluate("document.body.innerText")
    for word in ("samples/s", "waiting for data", "measured: ", "given: ", "warm-up"):
        assert word in text


def test_the_warm_up_is_shaded(chromium, page, tmp_path):
    """The same steps with and without a slow begin: only the first has grey at the left of its chart."""
    at_the_top_left = """
    [...document.querySelectorAll("#chart-throughput canvas")].map(
      canvas => [...canvas.getContext("2d").getImageData(canvas.width * 0.2, 3, 1, 1).data]).flat()
    """
    chromium.open(page(write_run(tmp_path / "slow", [warming_up(400, warm_up=0.3)])))
    shaded = chromium.evaluate(at_the_top_left)
    chromium.open(page(write_run(tmp_path / "flat", [warming_up(400, warm_up=0)])))
    plain = chromium.evaluate(at_the_top_left)
    assert any(shaded) and not any(plain)


def test_hostile_text_is_shown_and_never_run(chromium, page, tmp_path):
    for i, text in enumerate(HOSTILE):
        name = re.sub("/", "∕", text)
        run = tmp_path / f"{i}" / name
        write_run(run, [[Step(0.04, 0.06, 8)] * 30], command=("python", text), host=text, loader=text)
        path = page(run)
        chromium.open(path)
        assert chromium.complaints() == []
        assert chromium.requests() == [path.as_uri()]
        assert chromium.evaluate("document.title").startswith("Stoker report: ")
        assert chromium.evaluate("document.querySelectorAll('script').length") == 2
        assert chromium.evaluate("document.querySelectorAll('img, textarea, iframe').length") == 0
        assert chromium.evaluate("document.querySelectorAll('figure[data-drawn]').length") == 4
        if text.isprintable() and text.isascii():
            assert text in chromium.evaluate("document.querySelector('.command').textContent")


def test_the_policy_refuses_what_is_not_ours(chromium, page, tmp_path):
    path = page(write_run(tmp_path / "run", [warming_up(100)]))
    added = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"></body>"
    path.write_text(path.read_text().replace("</body>", added))
    chromium.open(path)
    assert chromium.evaluate("document.title").startswith("Stoker report: ")
    assert any("Content Security Policy" in each for each in chromium.complaints())


@pytest.mark.parametrize("dark", [False, True])
def test_readable_on_a_telephone(chromium, page, tmp_path, dark):
    runs = [write_run(tmp_path / ("long-name-" * 8 + str(i)), [warming_up(200, seed=i)]) for i in range(3)]
    chromium.open(page(*runs), width=360, height=740, dark=dark)
    assert chromium.complaints() == []
    assert chromium.evaluate("document.documentElement.scrollWidth") <= 360
    wide = """[...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > 361)
      .map(e => e.tagName + "." + e.getAttribute("class"))"""
    assert chromium.evaluate(wide) == []
    sizes = "[...document.querySelectorAll('main *')].map(e => parseFloat(getComputedStyle(e).fontSize))"
    assert min(chromium.evaluate(sizes)) >= 11
    assert min(chromium.evaluate(PIXELS)) > 300


def pictures_in(pdf: bytes) -> list[int]:
    """Of each picture in it, how many of its bytes are not as the first."""
    found = []
    for about, data in re.findall(
        rb"<<((?:(?!>>\s*stream).)*?/Subtype\s*/Image.*?)>>\s*stream\r?\n(.*?)endstream", pdf, re.S
    ):
        assert b"/FlateDecode" in about, about
        pixels = zlib.decompressobj().decompress(data)
        found.append(len(pixels) - pixels.count(pixels[:1]))
    return found


def test_prints(chromium, page, tmp_path):
    chromium.open(page(write_run(tmp_path / "run", [warming_up(400)])), dark=True)
    pdf = chromium.pdf()
    assert pdf.startswith(b"%PDF") and 1 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 4
    assert sum(drawn > 300 for drawn in pictures_in(pdf)) >= 4, "the charts are blank on paper"
    chromium.send("Emulation.setEmulatedMedia", media="print")
    paper = chromium.evaluate("getComputedStyle(document.body).backgroundColor")
    ink = chromium.evaluate("getComputedStyle(document.body).color")
    assert (paper, ink) == ("rgb(255, 255, 255)", "rgb(0, 0, 0)")


def test_scaling_curve(chromium, page, tmp_path):
    # Amdahl with a serial part of a tenth.
    runs = []
    for count in (1, 2, 4, 8):
        seconds = 0.1 * (0.1 + 0.9 / count) * count
        runs.append(write_run(tmp_path / f"n{count}", [[Step(0, seconds, 8)] * 60 for _ in range(count)]))
    chromium.open(page(*runs))
    assert chromium.complaints() == []
    assert chromium.evaluate("document.querySelector('#chart-scaling').dataset.drawn") == "3"
    legend = chromium.evaluate("document.querySelector('#chart-scaling .legend').textContent")
    assert "measured" in legend and "ideal" in legend and "Amdahl fit" in legend


def test_100000_steps(chromium, page, tmp_path):
    path = page(write_run(tmp_path / "run", [warming_up(100_000, step_s=0.01)]))
    assert path.stat().st_size < 2_000_000
    chromium.open(path)
    assert chromium.complaints() == []
    assert chromium.evaluate("document.querySelectorAll('figure[data-drawn]').length") == 4
