"""The API as tools for assistants. What Gradio's server says of our endpoints needs no extra packages; a
conversation with it does, and those tests are deselected where the packages are not installed."""

import asyncio
import base64
import importlib.util
import io
import json
from types import SimpleNamespace

import gradio.mcp
import pytest
from PIL import Image
from support.app import App
from support.commands import run
from support.corpus import picture as corpus_picture
from support.corpus import saved

from vit_demo.embedded import DEFAULT
from vit_demo.ui import limits, mcp
from vit_demo.ui.api import check_model

PNG = "data:image/png;base64," + base64.b64encode(saved(corpus_picture(), "PNG")).decode()


# Without the extra


@pytest.fixture
def tools(site, tmp_path):
    """Gradio's server around our page, without the part that speaks to others."""
    server = object.__new__(gradio.mcp.GradioMCPServer)
    server.blocks, server.api_info, server.tool_prefix = site.demo, site.demo.get_api_info(), ""
    server.tool_to_endpoint = server.get_tool_to_endpoint()
    mcp.adapt(server, str(tmp_path))
    return server


def test_every_endpoint_is_a_tool_that_takes_pictures_inside_of_the_call(tools):
    assert list(tools.tool_to_endpoint) == ["classify", "explain", "why", "trust", "compare"]
    for name, endpoint in tools.tool_to_endpoint.items():
        function = tools.get_block_fn_from_endpoint_name(endpoint)
        description, parameters = tools.get_fn_description(function, name)
        schema, places = tools.get_input_schema(name, parameters)
        pictures = {"image", "other_image"} & set(schema["properties"])
        assert {place for (place,) in places} == pictures
        for place in pictures:
            assert schema["properties"][place]["format"].startswith("data URI")
        assert schema["required"] == ["image"]
        assert all(of.get("description") for of in schema["properties"].values())
        assert "http" not in json.dumps(schema) + description and "upload_file" not in description
        assert "data URI" in description and "Returns: " in description


def test_a_data_uri_becomes_a_file(tools, tmp_path):
    given = {"image": PNG, "model": "vit-mnist", "other_image": None}
    found = tools.convert_strings_to_filedata(given, [["image"], ["other_image"]])
    assert found["model"] == "vit-mnist" and found["other_image"] is None
    assert found["image"]["path"].startswith(str(tmp_path))
    with Image.open(found["image"]["path"]) as image:
        assert image.size == corpus_picture().size


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("http://127.0.0.1/cat.jpg", "addresses are not fetched"),
        ("https://example.com/cat.jpg", "addresses are not fetched"),
        ("file:///etc/passwd", "addresses are not fetched"),
        ("/etc/passwd", "addresses are not fetched"),
        ("data:text/plain;base64,aGFsbG8=", "addresses are not fetched"),
        ({"path": "/etc/passwd"}, "addresses are not fetched"),
        ("data:image/png;base64,@@@@", "not base64"),
        ("data:image/png;base64,abc", "not base64"),
        pytest.param(
            "data:image/png;base64," + "A" * (limits.FILE_BYTES * 4 // 3 + 8),
            "at most 20 MB",
            id="too large",
        ),
    ],
)
def test_anything_else_is_refused(tools, value, words):
    with pytest.raises(ValueError, match=words):
        tools.convert_strings_to_filedata({"image": value}, [["image"]])


def test_a_picture_as_large_as_an_upload_may_be_fits_into_a_call():
    largest = "data:image/png;base64," + base64.b64encode(bytes(limits.FILE_BYTES)).decode()
    assert len(mcp.picture_bytes(largest)) == limits.FILE_BYTES
    limit = limits.BodyLimit(None, tools=mcp.PATH)
    for path in ("/gradio_api/mcp", "/gradio_api/mcp/", "/vit/gradio_api/mcp/http"):
        assert len(largest) + 1000 < limit.most(path) < 2 * limits.FILE_BYTES
        assert limits.BodyLimit(None).most(path) == limits.TEXT_BYTES  # without --mcp
    assert limit.most("/gradio_api/queue/join") == limits.TEXT_BYTES


def test_tools_take_only_models_that_are_on_the_disk(site):
    assistant = SimpleNamespace(headers={"x-gradio-user": "mcp"})
    program = SimpleNamespace(headers={"x-gradio-user": "api"})
    away = "vit_large_patch16_224.augreg_in21k_ft_in1k"
    for name in ("vit-mnist", "many", DEFAULT):
        check_model(site.server, name, assistant)
    for request in (program, None):
        check_model(site.server, away, request)
    for name in (away, "../../etc/passwd", "x" * 500):
        with pytest.raises(ValueError, match="not on this server's disk") as caught:
            check_model(site.server, name, assistant)
        assert len(str(caught.value)) < 400


def test_without_the_extra_a_sentence_says_what_to_install(capsys, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "vit_demo.ui.launch.find_spec", lambda name: None if name == "mcp" else find(name)
    )
    code, out, err = run(capsys, "app", "--mcp")
    assert code == 2 and out == "" and err.count("\n") == 1
    assert "pip install -r requirements-mcp.txt" in err


# With it


@pytest.fixture(scope="module")
def assistants(tmp_path_factory):
    app = App(tmp_path_factory.mktemp("app"), "--mcp")
    yield app
    app.stop()


def talk(app: App, *calls: tuple[str, dict]) -> tuple[list, list]:
    """The tools that an assistant sees, and what its calls give."""
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async def conversation():
        async with (
            streamablehttp_client(f"{app.url}/{mcp.PATH}") as (read, write, _),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            tools = (await session.list_tools()).tools
            return tools, [await session.call_tool(name, given) for name, given in calls]

    return asyncio.run(asyncio.wait_for(conversation(), 300))


@pytest.mark.mcp
def test_an_assistant_asks_every_tool(assistants):
    calls = [
        ("classify", {"image": PNG, "top": 2}),
        ("explain", {"image": PNG}),
        ("why", {"image": PNG}),
        ("trust", {"image": PNG, "methods": "rollout,random"}),
        ("compare", {"image": PNG, "other_model": "vit-mnist"}),
    ]
    tools, answers = talk(assistants, *calls)
    assert [tool.name for tool in tools] == [name for name, _ in calls]
    kinds = {}
    for (name, _), answer in zip(calls, answers, strict=True):
        assert not answer.isError, answer.content
        kinds[name] = [part.type for part in answer.content]
        about = json.loads(answer.content[0].text)
        assert about.get("model", about.get("first", {}).get("model")) == DEFAULT
        for part in answer.content:
            if part.type == "image":
                Image.open(io.BytesIO(base64.b64decode(part.data))).load()
    assert kinds["classify"] == ["text"] and kinds["explain"] == ["text", "text"]
    assert kinds["trust"] == ["text", "image", "text"]  # a picture, and where it lies
    assert kinds["why"] == kinds["compare"] == ["text", "image", "text", "text"]


@pytest.mark.mcp
def test_an_assistant_is_refused_in_words(assistants):
    calls = [
        ("classify", {"image": "http://127.0.0.1:9/cat.jpg"}),
        ("classify", {"image": PNG, "model": "deit_base_patch16_224.fb_in1k"}),
        ("compare", {"image": PNG, "other_image": "https://127.0.0.1:9/cat.jpg"}),
        ("classify", {"image": "data:image/png;base64,aGFsbG8="}),
    ]
    _, answers = talk(assistants, *calls)
    words = ("not fetched", "not on this server's disk", "not fetched", "not a picture")
    for answer, sentence in zip(answers, words, strict=True):
        assert answer.isError and sentence in answer.content[0].text
    assert "Traceback" not in assistants.log.read_text()
