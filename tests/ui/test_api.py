"""The interface for programs, called as programs call it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image
from support.models import noise
from support.page import DEIT, MODEL

from vit_demo import faithful
from vit_demo.compare import compare
from vit_demo.map_settings import MapSettings


@pytest.fixture
def client(site, shared):
    from gradio_client import Client

    return Client(site.url, verbose=False, httpx_kwargs={"timeout": 300})


PARAMETERS = {
    "/classify": ["image", "model", "fit", "top"],
    "/explain": ["image", "model", "fit", "row", "column", "residual", "discard", "below"],
    "/why": ["image", "model", "fit", "label", "minus", "method"],
    "/trust": ["image", "model", "fit", "label", "methods", "remove", "thorough"],
    "/compare": [
        *("image", "model", "other_image", "other_model", "fit", "method", "layer", "head", "row"),
        *("column", "label", "minus"),
    ],
}  # fmt: skip


def test_the_public_interface(client):
    api = client.view_api(return_format="dict", print_info=False)
    named = api["named_endpoints"]
    assert api["unnamed_endpoints"] == {}
    found = {
        path: [p["parameter_name"] for p in about["parameters"]] for path, about in named.items()
    }
    assert found == PARAMETERS
    for path, about in named.items():
        needed = [
            p["parameter_name"] for p in about["parameters"] if not p["parameter_has_default"]
        ]
        assert needed == ["image"], path
    counts = {path: len(about["returns"]) for path, about in named.items()}
    assert counts == {"/classify": 1, "/explain": 2, "/why": 3, "/trust": 2, "/compare": 3}


def test_every_endpoint_and_parameter_is_described(site):
    """What programs read of an endpoint is its docstring."""
    from gradio.utils import get_function_description

    public = [fn for fn in site.demo.fns.values() if fn.api_visibility == "public"]
    assert {f"/{fn.api_name}" for fn in public} == set(PARAMETERS)
    for fn in public:
        about, parameters, returns = get_function_description(fn.fn)
        assert about.endswith((".", "?")) and returns
        assert [name for name in parameters if parameters[name]] == PARAMETERS[f"/{fn.api_name}"]


def test_classify_gives_the_librarys_labels(client, lion, deit_tiny):
    from gradio_client import handle_file

    answer = client.predict(handle_file(lion), DEIT, "crop", 3, api_name="/classify")
    assert answer["model"] == DEIT
    expected = deit_tiny.classify(lion, 3)
    assert [label["label"] for label in answer["labels"]] == [p.label for p in expected]
    assert answer["labels"][0]["probability"] == pytest.approx(expected[0].probability, rel=1e-4)


def test_explain_gives_the_librarys_maps(client, lion, deit_tiny):
    from gradio_client import handle_file

    about, file = client.predict(
        image=handle_file(lion), model=DEIT, fit="pad", row=2, column=5, residual=0.3, discard=0.5,
        below="mean", api_name="/explain",
    )  # fmt: skip
    expected = deit_tiny.explain(lion, "pad").arrays((2, 5), residual=0.3, discard=0.5)
    with np.load(file) as maps:
        assert sorted(maps) == sorted([*expected, "map", "map_prefix"])
        np.testing.assert_allclose(maps["map"], expected["rollout"], rtol=1e-4, atol=1e-6)
        for name, array in expected.items():
            np.testing.assert_allclose(maps[name], array, rtol=1e-4, atol=1e-6)
    assert about["settings"]["query"] == [2, 5] and about["settings"]["residual"] == 0.3
    assert about["prefix_mass"] == pytest.approx(float(expected["prefix_mass"]), rel=1e-4)


@pytest.fixture
def noise_file(tmp_path):
    noise().save(tmp_path / "noise.png")
    return tmp_path / "noise.png"


def is_png(path: str) -> bool:
    with Image.open(path) as drawn:
        drawn.load()
        return drawn.format == "PNG" and min(drawn.size) > 100


def test_why_gives_the_librarys_class_map(client, site, noise_file):
    from gradio_client import handle_file

    e = site.server.models.get("many").explain(noise_file)
    about, drawn, file = client.predict(
        image=handle_file(noise_file), model="many", label="label 3", minus="5", api_name="/why"
    )
    assert about["why"]["index"] == 3 and about["minus"]["label"] == "label 5"
    assert about["settings"]["map"] == "contribution" and is_png(drawn)
    with np.load(file) as maps:
        np.testing.assert_allclose(maps["map"], e.contribution(3, minus=5), atol=1e-5)
    about, drawn, file = client.predict(
        handle_file(noise_file), "many", method="grad_cam", api_name="/why"
    )
    assert about["why"]["index"] == e.label_index() and "minus" not in about
    with np.load(file) as maps:
        np.testing.assert_allclose(maps["map"], e.grad_cam(), atol=1e-5)


@pytest.mark.parametrize("thorough", [False, True])
def test_trust_gives_the_librarys_check(client, site, noise_file, thorough):
    from gradio_client import handle_file

    about, drawn = client.predict(
        handle_file(noise_file),
        "many",
        methods="contribution, rollout,contribution",
        label="2",
        remove="black",
        thorough=thorough,
        api_name="/trust",
    )
    e = site.server.models.get("many").explain(noise_file)
    expected = faithful.check(
        e, ["contribution", "rollout"], 2, remove="black", thorough=thorough
    ).describe()
    assert about["best"] == expected["best"] and is_png(drawn)
    assert ("also" in about) is thorough
    for name, of in expected["methods"].items():
        assert about["methods"][name]["score"] == pytest.approx(of["score"], abs=1e-5)


def test_compare_gives_the_librarys_comparison(client, site, noise_file, tmp_path):
    from gradio_client import handle_file

    first = site.server.models.get("many").explain(noise_file)
    second = site.server.models.get(MODEL).explain(noise_file)
    about, drawn, file = client.predict(
        image=handle_file(noise_file),
        model="many",
        other_model=MODEL,
        method="attention",
        layer=1,
        head=2,
        row=2,
        column=1,
        api_name="/compare",
    )
    settings = MapSettings(map="attention", layer=1, head=2, query=(2, 1))
    expected = compare(first, second, settings)
    assert about["correlation"] == pytest.approx(expected.correlation, abs=1e-4) and is_png(drawn)
    assert about["second"]["settings"]["query"] == list(expected.settings[1].query)
    assert [row["label"] for row in about["labels"]] == [row.label for row in expected.labels]
    with np.load(file) as maps:
        np.testing.assert_allclose(maps["difference"], expected.difference, atol=1e-5)
    noise(1).save(tmp_path / "other.png")
    about, *_ = client.predict(
        handle_file(noise_file),
        "many",
        handle_file(tmp_path / "other.png"),
        method="contribution",
        api_name="/compare",
    )
    assert not about["same_picture"] and about["second"]["model"] == about["first"]["model"]


def test_a_trust_that_takes_too_long_is_stopped(client, noise_file, monkeypatch):
    from gradio_client import handle_file
    from gradio_client.exceptions import AppError

    monkeypatch.setattr("vit_demo.ui.api.SECONDS", -1)
    with pytest.raises(AppError, match="Stopped after -1 s; choose a smaller model"):
        client.predict(handle_file(noise_file), "many", api_name="/trust")


@pytest.mark.parametrize(
    ("endpoint", "inputs", "words"),
    [
        ("/why", {"label": "no such thing"}, "There is no label 'no such thing'"),
        ("/why", {"label": "1", "minus": "label 1"}, "give two different ones"),
        ("/why", {"method": "rollout"}, "not in the list of choices"),
        ("/why", {"model": "headless"}, "no label head"),
        ("/trust", {"methods": "raw,nonsense"}, "There is no method 'nonsense'"),
        ("/compare", {}, "Give a second picture"),
        ("/compare", {"other_model": "no_such_model"}, "There is no model"),
        ("/compare", {"other_model": "headless", "head": 1}, "A head goes with the method"),
        ("/compare", {"other_model": "headless", "label": "1"}, "A label goes with a class map"),
    ],
)
def test_what_an_endpoint_refuses(client, noise_file, endpoint, inputs, words):
    from gradio_client import handle_file
    from gradio_client.exceptions import AppError

    with pytest.raises(AppError, match=words) as caught:
        client.predict(
            image=handle_file(noise_file), **{"model": "many"} | inputs, api_name=endpoint
        )
    assert "Traceback" not in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"model": "no_such_model"}, "There is no model"),
        ({"model": "/etc/passwd"}, "There is no model"),
        ({"model": "../../weights.safetensors"}, "There is no model"),
        ({"model": "swin_tiny_patch4_window7_224"}, "Swin"),
        ({"image": "text"}, "not a picture"),
        ({"top": 0}, "ask for 1 label or more"),
    ],
)
def test_errors_are_one_plain_sentence(client, lion, tmp_path, inputs, words):
    from gradio_client import handle_file
    from gradio_client.exceptions import AppError

    if inputs.get("image"):
        lion = tmp_path / "notes.png"
        lion.write_text("no picture at all")
    with pytest.raises(AppError, match=words) as caught:
        client.predict(
            handle_file(lion), inputs.get("model", DEIT), "crop", inputs.get("top", 10),
            api_name="/classify",
        )  # fmt: skip
    message = str(caught.value)
    assert "Traceback" not in message and "\n" not in message
    assert str(tmp_path) not in message and "gradio" not in message


def test_private_events_are_refused(client):
    with pytest.raises(ValueError, match="api_name"):
        client.predict("example koala", api_name="/look")


def test_eight_visitors_are_not_mixed_up(site, tmp_path):
    """Eight visitors, five pictures each, all at once: everybody gets the answer to his picture."""
    from gradio_client import Client, handle_file

    import vit_demo

    model = "vit-photos"
    rng = np.random.default_rng(0)
    paths, expected = [], []
    for number in range(40):
        noise = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        path = tmp_path / f"{number}.png"
        Image.fromarray(noise).resize((64, 64), Image.Resampling.NEAREST).save(path)
        paths.append(path)
    classifier = vit_demo.load(model, device="cpu")
    for path in paths:
        expected.append(classifier.explain(path).describe())
    patient = {"timeout": 300}
    clients = [Client(site.url, verbose=False, httpx_kwargs=patient) for _ in range(8)]

    def visit(visitor: int) -> list:
        mine = range(visitor * 5, visitor * 5 + 5)
        jobs = [
            clients[visitor].submit(handle_file(paths[i]), model, api_name="/explain") for i in mine
        ]
        return [(i, job.result(timeout=300)[0]) for i, job in zip(mine, jobs, strict=True)]

    with ThreadPoolExecutor(8) as pool:
        answers = [pair for pairs in pool.map(visit, range(8)) for pair in pairs]
    assert len(answers) == 40
    for i, about in answers:
        for got, wanted in zip(about["labels"], expected[i]["labels"], strict=True):
            assert got["probability"] == pytest.approx(wanted["probability"], abs=1e-4)
    first = {round(about["labels"][0]["probability"], 5) for _, about in answers}
    assert len(first) > 30  # the pictures can be told apart by their answers
