#!/usr/bin/env python3
"""Draws the text of a terminal, as `tmux capture-pane -p` prints it, as an SVG picture: terminal-svg.py < text > picture.svg"""

import sys
from html import escape

LETTER_WIDTH, LINE_HEIGHT, MARGIN = 8.4, 18, 14
STYLE = """
  .back { fill: #16181d }
  .bar circle { fill: #3a3f4b }
  text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, Liberation Mono, monospace; fill: #d7dae0; white-space: pre }
  .typed { fill: #8fd19e }
  .said { fill: #e0b96a }
"""


def style_of(line):
    if line.startswith(("zenobe>", "     ->", "     '>", "$ ")):
        return ' class="typed"'
    if line.startswith(("zenobe: ", "(")):
        return ' class="said"'
    return ""


def main():
    lines = sys.stdin.read().rstrip("\n").split("\n")
    columns = max(len(line) for line in lines)
    width = round(columns * LETTER_WIDTH + 2 * MARGIN)
    top = MARGIN + 2 * LINE_HEIGHT
    height = round(top + len(lines) * LINE_HEIGHT)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">')
    print(f"<style>{STYLE}</style>")
    print(f'<rect class="back" width="{width}" height="{height}" rx="8"/>')
    print('<g class="bar"><circle cx="20" cy="18" r="6"/><circle cx="40" cy="18" r="6"/><circle cx="60" cy="18" r="6"/></g>')
    for number, line in enumerate(lines):
        if line.strip():
            # The length keeps columns aligned in whatever font there is.
            length = round(len(line) * LETTER_WIDTH, 1)
            place = f'x="{MARGIN}" y="{top + number * LINE_HEIGHT}" textLength="{length}" xml:space="preserve"'
            print(f"<text {place}{style_of(line)}>{escape(line)}</text>")
    print("</svg>")


main()
