"""The built page: the files of `static/`, which `npm run build` in web/ writes and the wheel carries."""

import mimetypes
from pathlib import Path

from aiohttp import web

from ._guard import error

DIRECTORY = Path(__file__).resolve().parent / "static"
_FOR_EVER = "public, max-age=31536000, immutable"


class Static:
    """Knows each file from the beginning, so no path leads anywhere else."""

    def __init__(self, directory: Path = DIRECTORY) -> None:
        self._files = {each.relative_to(directory).as_posix(): each for each in directory.rglob("*")
                       if each.is_file()} if directory.is_dir() else {}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """A file; the page itself for every path that it shows something at."""
        path = request.match_info["path"]
        if path in ("", "login") or path.startswith("files/"):
            path = "index.html"
        file = self._files.get(path)
        if file is not None:
            return self._file(file, path)
        if path == "index.html":
            return web.Response(status=503, text="The page was not built: run `npm ci && npm run build` in web/, or install "
                                "a wheel that ./dev wheel built.\n")
        return error(404, "there is no such path", "NOT_FOUND")

    @staticmethod
    def _file(file: Path, path: str) -> web.FileResponse:
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        is_named_by_content = path.startswith("assets/")
        return web.FileResponse(file, headers={"Content-Type": kind, "Cache-Control": _FOR_EVER if is_named_by_content
                                               else "no-cache"})
