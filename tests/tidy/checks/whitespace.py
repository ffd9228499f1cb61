"""Text files end in one newline, and have no tabs or spaces at line ends (Markdown may)."""


def check(tree):
    for path in tree.text_files():
        data = (tree.root / path).read_bytes()
        if data and (not data.endswith(b"\n") or data.endswith(b"\n\n")):
            yield f"{path}: must end in exactly one newline"
        if path.endswith(".md"):
            continue
        for number, line in tree.lines(path):
            if line != line.rstrip():
                yield f"{path}:{number}: white space at the end of the line"
