# SPDX-License-Identifier: Apache-2.0
"""Draws what a command printed as an SVG picture of a terminal.

    tools/terminal_picture.py 'stoker check data' 'stoker pack data packed' > docs/demo.svg

Runs the commands through the shell in the current directory and draws their real output.
"""

import html
import subprocess
import sys

CHARACTER, LINE, MARGIN = 8.4, 19, 16


def main():
    lines = []
    for command in sys.argv[1:]:
        if lines:
            lines.append(("", False))
        lines.append(("$ " + command, True))
        output = subprocess.run(command, shell=True, check=True, capture_output=True, text=True)
        lines += [(line, False) for line in (output.stdout + output.stderr).splitlines()]
    width = max(len(line) for line, _ in lines) * CHARACTER + 2 * MARGIN
    height = len(lines) * LINE + 2 * MARGIN
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
          'font-family="ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14">')
    print('<rect width="100%" height="100%" rx="8" fill="#15191e"/>')
    for number, (line, typed) in enumerate(lines):
        y = MARGIN + (number + 1) * LINE - 5
        colour = "#7fd1ae" if typed else "#d7dde4"
        print(f'<text x="{MARGIN}" y="{y}" fill="{colour}" xml:space="preserve">{html.escape(line)}</text>')
    print("</svg>")


if __name__ == "__main__":
    main()
