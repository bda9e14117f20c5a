import shutil
import subprocess

import pytest


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """Return a function that opens a page and returns its DOM and what the browser logged."""
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("no Chromium: install the package chromium to see the report in a browser")
    profile = tmp_path_factory.mktemp("profile")

    def open_page(path, *options):
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                   "--enable-logging=stderr", f"--user-data-dir={profile}",
                   "--disable-background-networking", "--disable-dev-shm-usage",
                   # What the page does in its next frame is done before the DOM is printed.
                   "--virtual-time-budget=10000", *options, path.as_uri()]  # fmt: skip
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]

    return open_page
