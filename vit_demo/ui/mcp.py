"""The endpoints of `api.py` as tools for assistants: `python app.py --mcp`.

Gradio makes a tool of the Model Context Protocol out of every public endpoint. By itself it asks for
addresses of pictures, which this server never fetches. Here a picture is a data URI, no larger than an
upload may be; tools take no model that is not on this disk (`check_model` in `api.py`).
"""

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING, Any

from gradio_client import handle_file
from gradio_client.utils import is_file_obj_with_meta

from vit_demo.ui.folder import saved
from vit_demo.ui.limits import FILE_BYTES

if TYPE_CHECKING:
    from gradio.mcp import GradioMCPServer

PATH = "gradio_api/mcp/"  # below the page's own address
FORMAT = f"data URI of a picture (data:image/jpeg;base64,...), at most {FILE_BYTES // 2**20} MB"
DATA_URI = re.compile(r"data:image/[\w.+-]+;base64,", re.IGNORECASE)


def adapt(tools: "GradioMCPServer", folder: str) -> None:
    """Change what Gradio's server says and does about files: data URIs come in, written to `folder`;
    JSON and pictures go out."""
    simplify, describe = tools.simplify_filedata_schema, tools.get_fn_description
    answer, about_files = tools.postprocess_output_data, tools._file_data_tool_description

    def simplified(schema: dict) -> tuple[dict, list]:
        schema, places = simplify(schema)
        for name, *_ in places:
            schema["properties"][name]["format"] = FORMAT
        return schema, places

    def described(function: Any, name: str) -> tuple[str, dict]:
        description, parameters = describe(function, name)
        return description.replace(about_files, f" A picture is a {FORMAT}"), parameters

    def converted(arguments: dict, places: list) -> dict:
        names = {name for name, *_ in places}
        return {
            name: picture_file(value, folder) if name in names and value is not None else value
            for name, value in arguments.items()
        }

    def answered(results: list, address: str) -> list:
        if len(results) == 1 and isinstance(
            results[0], list | tuple
        ):  # several, handed over as one
            results = list(results[0])
        return answer([in_words(result) for result in results], address)

    tools.simplify_filedata_schema = simplified
    tools.get_fn_description = described
    tools.convert_strings_to_filedata = converted
    tools.postprocess_output_data = answered


def in_words(result: object) -> object:
    """What is no file is JSON: Python's own way to write it is no language that others know."""
    if isinstance(result, dict) and not is_file_obj_with_meta(result):
        return json.dumps(result, ensure_ascii=False)
    return result


def picture_file(text: object, folder: str) -> dict:
    """A data URI as a file that can be sent like any other."""
    return handle_file(saved(picture_bytes(text), "picture", folder))


def picture_bytes(text: object) -> bytes:
    start = DATA_URI.match(text) if isinstance(text, str) else None
    if not start:
        raise ValueError(f"Send the picture itself, as a {FORMAT}; addresses are not fetched.")
    if (len(text) - start.end()) * 3 // 4 > FILE_BYTES + 2:
        raise ValueError(f"The picture is too large; send at most {FILE_BYTES // 2**20} MB.")
    try:
        return base64.b64decode(text[start.end() :], validate=True)
    except binascii.Error:
        raise ValueError(
            "The picture is not base64 after its comma; encode the file again."
        ) from None
