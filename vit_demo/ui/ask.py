"""What the browser asks for without an event: short questions about one explanation.

Gradio calls these with one argument, without a queue; an answer with `error` is shown to the visitor.
"""

import base64
import logging
from pathlib import Path

from vit_demo.ui import explorer
from vit_demo.ui.store import Server
from vit_demo.ui.texts import one_sentence, words

log = logging.getLogger("vit_demo")


def rows_on_demand(server: Server):
    def rows(request: dict) -> dict:
        """One patch's maps of a large model, for the explorer."""
        try:
            explanation = server.store.get(str(request["id"]))
            if explanation is None:
                return {"error": words(request.get("language"))["gone"]}
            query = request.get("query")
            query = None if query is None else (int(query[0]), int(query[1]))
            return {"data": base64.b64encode(explorer.query_rows(explanation, query)).decode()}
        except (ValueError, KeyError, TypeError, IndexError) as error:
            return {"error": one_sentence(error)}

    return rows


def files_on_demand(server: Server):
    def save_file(request: dict) -> dict:
        """One of the files to take away; the answer says where it is."""
        request = request if isinstance(request, dict) else {}
        text = words(request.get("language"))
        try:
            id, state = str(request["id"]), dict(request.get("state") or {})
            name = server.save(id, request["kind"], state, request.get("language") or "en")
        except Exception:
            log.exception("saving a file")
            return {"error": text["take_failed"]}
        if not name:
            return {"error": text["gone"]}
        return {"url": server.url(id, name), "name": Path(name).name}

    return save_file
