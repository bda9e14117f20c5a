"""The page in Chromium: what a user types, clicks and drops, and what the page then shows."""

import contextlib
import io
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("uvicorn", reason="the group serve is not installed")

playwright = pytest.importorskip("playwright.sync_api", reason="the group browser is not installed")
from serving import serving

from pipeline_lib.contract.tables import read_pairs
from pipeline_lib.models.embedder import Embedder
from pipeline_lib.search.captions import load_captions, study_captions
from pipeline_lib.search.index import update_index
from pipeline_lib.search.searcher import Searcher
from pipeline_lib.search.server import MAX_UPLOAD, build_app

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium")
WORLD = ROOT / "data/models/mule/seed-1"
PHOTOS = ROOT / "data/raw/world/images"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium")


PATIENCE = 300_000
"""Milliseconds: the machine may be busy."""
playwright.expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        # Without a sandbox: a container's root has none. The page is our own.
        chromium = started.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE
        )
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser, port):
    yield from _opened(browser, port)


def new_page(browser, **options):
    page = browser.new_page(**options)
    page.set_default_timeout(PATIENCE)
    return page


def _opened(browser, port, **options):
    """Yield the page; at the end no error and no request to elsewhere may have been seen."""
    page = new_page(browser, **options)
    seen, errors = [], []
    page.on("request", lambda request: seen.append(request.url))
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"http://127.0.0.1:{port}/")
    page.get_by_text("photos of").wait_for()
    yield page
    assert errors == []
    outside = [url for url in seen if not url.startswith((f"http://127.0.0.1:{port}/", "data:"))]
    assert (len(seen) > 1, outside) == (True, [])
    page.close()


def expect_first(page, photo):
    """Wait until a photo, named by its path, is the best one and can be seen."""
    first = page.locator("[data-photo]").first
    playwright.expect(first).to_have_attribute("title", photo)
    playwright.expect(first.locator("img")).to_have_js_property("complete", True)
    assert first.locator("img").evaluate("image => image.naturalWidth") > 0


def type_query(page, text):
    page.get_by_label("Search your photos").fill(text)
    page.get_by_label("Search your photos").press("Enter")
    page.get_by_text(f"“{text}” read as").wait_for()


def leave_out_the_last(page):
    page.locator("[data-photo]").last.click()
    page.get_by_role("button", name="Not like this").click()
    page.locator("#large").wait_for(state="hidden")


def test_words_in_two_languages_whose_language_is_shown_and_switched(opened):
    for text, language, photo in (
        ("a red photo", "en", "red.png"), ("ein grün Foto", "de", "green.png"),
    ):  # fmt: skip
        type_query(opened, text)
        assert f"read as {language}" in opened.locator("#said").inner_text()
        expect_first(opened, photo)
    opened.get_by_label("Language of the words").select_option("en")
    opened.get_by_text("unknown words: ein, grün, foto").wait_for()
    opened.get_by_label("Language of the words").select_option("")
    type_query(opened, "a perro")
    opened.get_by_text("read as en, a guess: the model has de, en").wait_for()


def test_what_was_searched_for_stays_beside_what_is_taken_away(opened):
    type_query(opened, "a red photo")
    opened.get_by_label("Search your photos").fill("a blue photo")
    opened.get_by_role("button", name="Without").click()
    opened.get_by_role("button", name="Remove − a blue photo").wait_for()
    opened.get_by_label("Language of the words").select_option("en")
    opened.wait_for_load_state("networkidle")
    playwright.expect(opened.locator("#terms button")).to_have_text(
        ["+ a red photo ×", "− a blue photo ×"]
    )
    expect_first(opened, "red.png")


def test_what_is_taken_away_in_a_chosen_language_leaves_the_query(opened):
    type_query(opened, "a red photo")
    opened.get_by_label("Search your photos").fill("blau")
    opened.get_by_label("Language of the words").select_option("de")
    opened.get_by_text("“blau” read as de").wait_for()
    opened.get_by_role("button", name="Without").click()
    playwright.expect(opened.locator("#terms button")).to_have_text(["+ a red photo ×", "− blau ×"])
    playwright.expect(opened.get_by_label("Search your photos")).to_have_value("a red photo")
    playwright.expect(opened.get_by_label("Language of the words")).to_have_value("")
    opened.get_by_text("“blau” read as de").wait_for()
    expect_first(opened, "red.png")


def test_the_language_beside_the_box_is_that_of_its_words(browser, port):
    page = new_page(browser)  # which notes the refusal as an error
    page.goto(f"http://127.0.0.1:{port}/")
    label = page.locator("#language option").first
    type_query(page, "ein rot Foto")
    playwright.expect(label).to_have_text("language: de (detected)")
    page.get_by_label("Search your photos").fill("a blue photo")
    page.get_by_role("button", name="Without").click()
    page.get_by_text("“a blue photo” read as en").wait_for()
    playwright.expect(label).to_have_text("language: de (detected)")
    page.get_by_label("Search your photos").fill("?")
    page.get_by_label("Search your photos").press("Enter")
    page.locator("#said.bad").wait_for()
    playwright.expect(label).to_have_text("language: detect")
    type_query(page, "ein rot Foto")
    playwright.expect(label).to_have_text("language: de (detected)")
    page.get_by_role("button", name="Remove − a blue photo").click()
    page.get_by_role("button", name="Remove + ein rot Foto").click()
    page.get_by_text("photos of").wait_for()
    playwright.expect(label).to_have_text("language: detect")
    page.close()


def test_a_query_too_large_is_not_called_a_photo(browser, port):
    page = new_page(browser)  # which notes the refusal as an error
    page.goto(f"http://127.0.0.1:{port}/")
    page.route("**/search", lambda route: route.fulfill(status=413, body="too large"))
    page.get_by_label("Search your photos").fill("a red photo")
    page.get_by_label("Search your photos").press("Enter")
    page.get_by_text("the query is too large").wait_for()
    page.close()


def test_a_photo_too_large_is_refused_before_it_is_sent(opened):
    opened.set_input_files(
        "#file", {"name": "big.jpg", "mimeType": "image/jpeg", "buffer": bytes(MAX_UPLOAD + 1)}
    )
    opened.get_by_text("the photo is too large").wait_for()


def test_a_part_too_many_is_refused_in_words_and_the_others_stay(opened):
    type_query(opened, "a red photo")
    for _ in range(7):
        opened.locator("#said").evaluate("said => said.textContent = ''")
        with opened.expect_response("**/search"):
            leave_out_the_last(opened)
        playwright.expect(opened.locator("#said")).not_to_be_empty()
    leave_out_the_last(opened)
    opened.get_by_text("A query has at most 8 parts: remove one first.").wait_for()
    assert opened.locator("#terms button").count() == 8


def test_a_late_answer_does_not_replace_a_later_one(opened):
    held = []
    opened.route("**/search", lambda route: held.append(route) if not held else route.continue_())
    opened.get_by_label("Search your photos").fill("a blue photo")
    with opened.expect_request("**/search"):
        opened.get_by_label("Search your photos").press("Enter")
    type_query(opened, "a red photo")
    with contextlib.suppress(playwright.Error):  # the page may have given it up
        held[0].continue_()
        held[0].request.response()
    assert opened.locator("#said").inner_text() == "“a red photo” read as en"
    expect_first(opened, "red.png")


def test_by_a_result_and_by_a_dropped_photo(opened, colours):
    type_query(opened, "a blue photo")
    opened.locator("[data-photo]").first.click()
    opened.get_by_text("en: a blue photo").wait_for()
    assert "de: ein blau foto" in opened.locator("#why").inner_text()
    opened.get_by_role("button", name="Photos like this").click()
    opened.get_by_role("button", name="Remove + blue.png").wait_for()
    expect_first(opened, "blue.png")
    opened.locator("#file").set_input_files(colours / "photos/white.png")
    opened.get_by_role("button", name="Remove + white.png").wait_for()
    expect_first(opened, "white.png")
    opened.evaluate(
        """async () => {
          const content = await (await fetch("photos/0/large")).blob();
          const data = new DataTransfer();
          data.items.add(new File([content], "dropped.jpg"));
          document.dispatchEvent(new DragEvent("drop", {dataTransfer: data, cancelable: true}));
        }"""
    )
    opened.get_by_role("button", name="Remove + dropped.jpg").wait_for()
    playwright.expect(opened.locator("[data-photo]")).to_have_count(4)


def test_the_best_of_a_new_query_can_be_seen_wherever_the_page_was_scrolled_to(browser, port):
    for page in _opened(browser, port, viewport={"width": 360, "height": 500}):
        type_query(page, "a blue photo")
        for again in ("query", "photo"):
            page.locator("[data-photo]").last.scroll_into_view_if_needed()
            page.evaluate("scrollTo(0, document.body.scrollHeight)")
            assert page.evaluate("scrollY") > 0
            if again == "query":
                page.get_by_label("Search your photos").evaluate("box => box.value = 'a red photo'")
                page.evaluate("document.getElementById('form').requestSubmit()")
            else:
                page.locator("[data-photo]").last.click()
                page.get_by_role("button", name="Photos like this").click()
            playwright.expect(page.locator("html")).to_have_js_property("scrollTop", 0)


def test_an_enlarged_photo_does_not_show_the_one_before(opened):
    type_query(opened, "a blue photo")
    opened.locator("[data-photo]").first.click()
    photo = opened.locator("#photo")
    playwright.expect(photo).to_have_js_property("complete", True)
    assert _shows_blue(opened)
    opened.keyboard.press("Escape")
    held = []
    opened.route("**/large*", lambda route: held.append(route))
    opened.locator("[data-photo]").nth(1).click()
    opened.get_by_text("Why:").wait_for()
    assert not _shows_blue(opened)
    held[0].continue_()
    playwright.expect(photo).not_to_have_js_property("naturalWidth", 0)


def _shows_blue(page):
    pixels = np.asarray(Image.open(io.BytesIO(page.locator("#large").screenshot())).convert("RGB"))
    red, green, blue = np.moveaxis(pixels.astype(int), -1, 0)
    return ((blue > 150) & (red < 80) & (green < 80)).sum() > 20


def test_a_refused_photo_leaves_no_photos_under_another_querys_words(browser, port):
    page = new_page(browser)  # which notes the refusal as an error
    page.goto(f"http://127.0.0.1:{port}/")
    type_query(page, "a blue photo")
    held = []
    page.route("**/search", lambda route: held.append(route))
    with page.expect_request("**/search"):
        page.get_by_label("Search your photos").fill("a red photo")
        page.get_by_label("Search your photos").press("Enter")
    page.set_input_files("#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"a"})
    page.locator("#said.bad").wait_for()
    playwright.expect(page.locator("#terms button")).to_have_text(["+ a red photo ×"])
    assert page.locator("[data-photo]").count() == 0
    page.close()


def test_why_a_photo_cannot_be_explained_stands_beside_it(browser, port):
    page = new_page(browser)  # which notes the refusal as an error
    page.goto(f"http://127.0.0.1:{port}/")
    type_query(page, "a blue photo")
    page.route("**/captions*", lambda route: route.abort())
    page.locator("[data-photo]").first.click()
    playwright.expect(page.locator("#why")).to_have_text("polyview serve has stopped")
    page.close()


def test_a_folder_that_is_dropped_is_not_a_server_that_stopped(browser, port):
    page = new_page(browser)
    page.goto(f"http://127.0.0.1:{port}/")
    page.get_by_text("photos of").wait_for()
    # What Chromium does with a folder that was dropped.
    refusal = "Promise.reject(new Error('NotFoundError'))"
    page.evaluate(f"() => {{ File.prototype.arrayBuffer = () => {refusal}; }}")
    page.set_input_files("#file", {"name": "b", "mimeType": "image/png", "buffer": b"b"})
    page.get_by_text("b cannot be read: drop a photo").wait_for()
    page.close()


def test_a_photo_that_was_removed_since_is_named_and_still_searched_with(
    browser, colours, tmp_path
):
    photos = shutil.copytree(colours / "photos", tmp_path / "photos")
    embedder = Embedder.load(colours / "model")
    index = update_index(embedder, photos, tmp_path / "index.parquet")
    with serving(build_app(Searcher(embedder, index), None)) as other:
        page = new_page(browser)  # which notes what is not found as an error
        page.goto(f"http://127.0.0.1:{other}/")
        type_query(page, "a red photo")
        expect_first(page, "red.png")
        (photos / "red.png").unlink()
        page.locator("[data-photo]").first.click()
        page.get_by_text("red.png: the photo is no longer in the folder").wait_for()
        page.get_by_role("button", name="Photos like this").click()
        playwright.expect(page.locator("#terms button")).to_have_text(["+ red.png ×"])
        playwright.expect(page.locator("[data-photo]").first).to_have_attribute("title", "red.png")
        page.close()


def test_photos_like_one_are_found_after_others_were_added(browser, colours, tmp_path):
    """A bookmark of a photo whose number is another one by now, and of one that is gone."""
    photos = shutil.copytree(colours / "photos", tmp_path / "photos")
    embedder = Embedder.load(colours / "model")

    def app():
        index = update_index(embedder, photos, tmp_path / "index.parquet")
        return build_app(Searcher(embedder, index), None)

    page = new_page(browser)
    with serving(app()) as other:
        page.goto(f"http://127.0.0.1:{other}/")
        type_query(page, "a red photo")
        page.locator("[data-photo]").first.click()
        page.get_by_role("button", name="Photos like this").click()
        page.locator("#large").wait_for(state="hidden")
        expect_first(page, "red.png")
        query = page.url.partition("#")[2]
    shutil.copy(photos / "blue.png", photos / "a.png")
    with serving(app()) as other:
        page.goto(f"http://127.0.0.1:{other}/#{query}")
        expect_first(page, "red.png")
    (photos / "red.png").unlink()
    with serving(app()) as other:
        page.goto(f"http://127.0.0.1:{other}/#{query}")
        page.get_by_text("red.png: it is no longer among the photos. Remove it").wait_for()
        page.get_by_role("button", name="Remove + red.png").click()
        type_query(page, "a blue photo")
    page.close()


def test_a_photo_that_was_chosen_and_removed_may_be_chosen_again(opened, colours):
    for _ in range(2):
        opened.locator("#file").set_input_files(colours / "photos/white.png")
        opened.get_by_role("button", name="Remove + white.png").click()
        playwright.expect(opened.locator("#terms button")).to_have_count(0)
        playwright.expect(opened.get_by_label("Search your photos")).to_be_focused()


def test_a_photo_dropped_on_an_enlarged_one_takes_its_place_and_text_is_left_to_the_box(opened):
    type_query(opened, "a blue photo")
    opened.locator("[data-photo]").first.click()
    dropped = """async files => {
      const data = new DataTransfer();
      if (files) data.items.add(new File([await (await fetch("photos/0/large")).blob()], "a.jpg"));
      else data.setData("text/plain", "a dog");
      const event = new DragEvent("drop", {dataTransfer: data, cancelable: true});
      document.dispatchEvent(event);
      return event.defaultPrevented;
    }"""
    assert not opened.evaluate(dropped, False)
    assert opened.evaluate(dropped, True)
    opened.get_by_role("button", name="Remove + a.jpg").wait_for()
    playwright.expect(opened.locator("#large")).not_to_be_visible()


def test_long_queries_leave_room_for_photos_and_names_stay_on_the_page(browser, port):
    for page in _opened(browser, port, viewport={"width": 740, "height": 360}):
        type_query(page, "a red photo" + 230 * " dog")
        height = page.locator("header").bounding_box()["height"]
        assert height <= 0.45 * 360
        page.set_viewport_size({"width": 360, "height": 740})
        type_query(page, "a " + 200 * "x")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_languages_side_by_side(opened):
    opened.get_by_label("Search your photos").fill("a blue photo")
    opened.get_by_role("button", name="All languages").click()
    opened.get_by_role("heading", name="de: ein blau foto").wait_for()
    firsts = opened.locator(".grid li:first-child button")
    assert [each.get_attribute("title") for each in firsts.all()] == ["blue.png"] * 2


def test_what_is_refined_after_all_languages_is_the_query_of_the_box(opened):
    box = opened.get_by_label("Search your photos")
    box.fill("a red photo")
    box.press("Enter")
    opened.get_by_role("button", name="Remove + a red photo").wait_for()
    box.fill("a blue photo")
    opened.get_by_role("button", name="All languages").click()
    opened.get_by_role("heading", name="de: ein blau foto").wait_for()
    opened.get_by_role("button", name="Remove + a blue photo").wait_for()
    playwright.expect(opened.get_by_role("button", name="Remove + a red photo")).to_have_count(0)


def test_a_page_that_is_loaded_again_shows_what_was_asked_and_back_what_was_before(opened):
    type_query(opened, "a red photo")
    opened.get_by_label("Search your photos").fill("a blue photo")
    opened.get_by_label("Language of the words").select_option("en")
    opened.get_by_text("“a blue photo” read as en").wait_for()
    expect_first(opened, "blue.png")
    leave_out_the_last(opened)
    parts = opened.locator("#terms button")
    playwright.expect(parts).to_have_count(2)
    names = parts.all_inner_texts()
    opened.reload()
    playwright.expect(parts).to_have_text(names)
    expect_first(opened, "blue.png")
    playwright.expect(opened.get_by_label("Language of the words")).to_have_value("en")
    assert opened.title() == f"+ a blue photo · {names[1].removesuffix(' ×')} · Polyview"
    opened.go_back()
    playwright.expect(parts).to_have_text(["+ a blue photo ×"])
    opened.go_back()
    playwright.expect(parts).to_have_text(["+ a red photo ×"])
    playwright.expect(opened.get_by_label("Search your photos")).to_have_value("a red photo")
    playwright.expect(opened.get_by_label("Language of the words")).to_have_value("")
    expect_first(opened, "red.png")
    opened.go_forward()
    expect_first(opened, "blue.png")


def test_languages_side_by_side_are_there_again_and_nothing_but_the_page_before_them(opened):
    opened.get_by_label("Search your photos").fill("a blue photo")
    opened.get_by_role("button", name="All languages").click()
    heading = opened.get_by_role("heading", name="de: ein blau foto")
    heading.wait_for()
    opened.reload()
    heading.wait_for()
    opened.go_back()
    playwright.expect(heading).to_have_count(0)
    assert opened.locator("#terms button").count() == 0
    opened.get_by_text("photos of").wait_for()


def test_photos_of_another_query_do_not_stay_beside_languages_that_are_refused(browser, port):
    page = new_page(browser)  # which notes the refusal as an error
    page.goto(f"http://127.0.0.1:{port}/")
    type_query(page, "a red photo")
    page.get_by_label("Search your photos").fill("1234")
    page.get_by_role("button", name="All languages").click()
    page.get_by_role("button", name="Remove + 1234").wait_for()
    playwright.expect(page.locator("[data-photo]")).to_have_count(0)
    assert page.locator("#said.bad").count() == 1
    page.close()


@pytest.mark.parametrize(
    "address", ["#%", "#{}", '#{"terms":[{}]}', '#{"terms":[{"text":"a","sign":9}]}']
)
def test_an_address_that_the_page_did_not_write_is_the_page(browser, port, address):
    page = new_page(browser)
    page.goto(f"http://127.0.0.1:{port}/{address}")
    page.get_by_text("photos of").wait_for()
    assert page.locator("#terms button").count() == 0
    page.close()


def test_a_bookmark_in_a_language_that_the_model_lacks_says_so(browser, port):
    page = new_page(browser)  # which notes the refusal as an error
    page.goto(
        f'http://127.0.0.1:{port}/#{{"terms":[{{"text":"un chat","language":"fr","sign":1}}]}}'
    )
    page.locator("#said.bad").wait_for()
    assert "fr" in page.locator("#said").inner_text()
    assert page.get_by_label("Language of the words").input_value() == ""
    page.close()


def test_languages_of_a_model_whose_captions_are_not_here(browser, colours, tmp_path):
    embedder = Embedder.load(colours / "model")
    file = tmp_path / "index.parquet"
    index = update_index(embedder, colours / "photos", file)
    with serving(build_app(Searcher(embedder, index), None)) as port:
        for page in _opened(browser, port):
            page.get_by_label("Search your photos").fill("a blue photo")
            page.get_by_role("button", name="All languages").click()
            page.get_by_text("The same words, read in each language").wait_for()
            page.get_by_role("heading", name="de: a blue photo").wait_for()


def test_with_the_keyboard_alone(opened):
    opened.get_by_label("Language of the words").focus()
    opened.locator("body").press("Tab")
    opened.keyboard.press("/")
    opened.keyboard.type("a red photo")
    opened.keyboard.press("Enter")
    opened.get_by_text("read as en").wait_for()
    opened.get_by_role("button", name="Without").focus()
    opened.keyboard.press("ArrowRight")
    opened.keyboard.press("ArrowRight")
    second = opened.locator("[data-photo]").nth(1)
    playwright.expect(second).to_be_focused()
    opened.keyboard.press("Enter")
    playwright.expect(opened.locator("#path")).to_have_text(second.get_attribute("title"))
    opened.keyboard.press("Escape")
    playwright.expect(opened.locator("#large")).not_to_be_visible()


def test_a_photo_in_focus_does_not_lie_behind_the_header(browser, colours, tmp_path):
    (tmp_path / "photos").mkdir()
    for number in range(24):
        shutil.copy(colours / "photos/red.png", tmp_path / f"photos/{number}.png")
    embedder = Embedder.load(colours / "model")
    index = update_index(embedder, tmp_path / "photos", tmp_path / "index.parquet")
    size = {"width": 700, "height": 400}
    with serving(build_app(Searcher(embedder, index), None)) as other:
        for page in _opened(browser, other, viewport=size):
            type_query(page, "a red photo" + 230 * " dog")
            page.locator("[data-photo]").first.focus()
            for step in ["ArrowRight"] * 23 + ["ArrowLeft"] * 12:
                page.keyboard.press(step)
            top = page.locator(":focus").evaluate("photo => photo.getBoundingClientRect().top")
            assert top >= page.locator("header").bounding_box()["height"]


def test_on_a_phone_in_the_dark(browser, port):
    options = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}
    for page in _opened(browser, port, has_touch=True, **options):
        type_query(page, "a red photo")
        expect_first(page, "red.png")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == "rgb(20, 23, 27)"
        for button in page.get_by_role("button").all():
            assert button.bounding_box()["height"] >= 35


@pytest.mark.skipif(not WORLD.is_dir(), reason="no world: run dvc repro")
def test_worlds_photos_are_found_by_their_captions_in_three_languages(browser, tmp_path_factory):
    """Captions whose own photo is ranked first; POLYVIEW_PICTURES names a folder for views."""
    cache = tmp_path_factory.mktemp("cache")
    embedder = Embedder.load(WORLD)
    index = update_index(embedder, PHOTOS, cache / "index.parquet")
    table = study_captions(WORLD)
    captions = load_captions(embedder, table, cache)
    with serving(build_app(Searcher(embedder, index), captions)) as port:
        for page in _opened(browser, port, viewport={"width": 1100, "height": 760}):
            for language in ("en", "de", "ja"):
                text, photo = _ranked_first(embedder, index, read_pairs(table), language)
                type_query(page, text)
                assert f"read as {language}" in page.locator("#said").inner_text()
                expect_first(page, photo)
            _pictures(page)


def _ranked_first(embedder, index, pairs, language):
    own = pairs[pairs["language"] == language].head(400)
    scores = embedder.embed_sentences([*own["text"]], language) @ index.vectors.T
    names = (f"{image.split(':')[1]}" for image in own["image_id"])
    for text, name, best in zip(own["text"], names, scores.argmax(axis=1), strict=True):
        if name in index.paths[best]:
            return text, index.paths[best]
    raise AssertionError(f"of 400 captions in {language} none finds its photo first")


def _pictures(page):
    folder = os.environ.get("POLYVIEW_PICTURES")
    if not folder:
        return
    type_query(page, "ein Hund am Strand")
    page.wait_for_load_state("networkidle")
    page.screenshot(path=f"{folder}/search.png")
    page.locator("[data-photo]").first.click()
    page.get_by_text("Why:").wait_for()
    page.wait_for_load_state("networkidle")
    page.screenshot(path=f"{folder}/why.png")
    page.keyboard.press("Escape")
    page.emulate_media(color_scheme="dark")
    page.get_by_role("button", name="All languages").click()
    page.get_by_role("heading", name="ja:").wait_for()
    page.wait_for_load_state("networkidle")
    page.screenshot(path=f"{folder}/languages.png")
