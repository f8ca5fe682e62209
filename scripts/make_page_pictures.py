#!/usr/bin/env python3
"""Takes the pictures of the page in docs/pictures: the bundled volumes in headless Chromium.

    python3 scripts/make_page_pictures.py VOLFS docs/pictures

Needs playwright and Pillow for Python, and Chromium: that of the environment variable CHROMIUM, or of the system.
"""

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

SOURCE = Path(__file__).parent.parent / "tests/data/demo"
PICTURES = {
    "page-survey": ("north.zgy/#at=60,52,80&line=10,10,60,80,118,20", (1280, 860), "light"),
    "page-cells": ("cells/#layer=color&over=segmentation,0.4", (1280, 860), "dark"),
    "page-list": ("", (900, 700), "light"),
    "page-phone": ("north.zgy/", (390, 800), "dark"),
}


def main(volfs: str, folder: str) -> None:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    command = [volfs, "serve", str(SOURCE), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        address = server.stdout.readline().rsplit(" ", 1)[1].strip()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for name, (path, (width, height), scheme) in PICTURES.items():
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                page.goto(address + path)
                while path and not page.evaluate("Boolean(window.volfsStage?.isComplete)"):
                    page.wait_for_timeout(50)
                # until profile, histogram and previews have followed
                page.wait_for_timeout(2500)
                picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
                picture.quantize(128, dither=Image.Dither.NONE).save(Path(folder) / f"{name}.png", optimize=True)
                page.close()
        server.terminate()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
