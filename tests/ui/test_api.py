"""The interface for programs, called as programs call it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image
from support.page import DEIT


@pytest.fixture
def client(site, shared):
    from gradio_client import Client

    return Client(site.url, verbose=False, httpx_kwargs={"timeout": 300})


def test_public_interface_is_two_endpoints(client):
    api = client.view_api(return_format="dict", print_info=False)
    named = api["named_endpoints"]
    assert sorted(named) == ["/classify", "/explain"]
    assert api["unnamed_endpoints"] == {}
    names = {
        path: [p["parameter_name"] for p in about["parameters"]] for path, about in named.items()
    }
    assert names["/classify"] == ["image", "model", "fit", "top"]
    settings = ["row", "column", "residual", "discard", "below"]
    assert names["/explain"] == ["image", "model", "fit", *settings]
    wanted = [
        p["parameter_name"]
        for p in named["/explain"]["parameters"]
        if not p["parameter_has_default"]
    ]
    assert wanted == ["image"]
    assert len(named["/classify"]["returns"]) == 1 and len(named["/explain"]["returns"]) == 2


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
        assert sorted(maps) == sorted(expected)
        for name, array in expected.items():
            np.testing.assert_allclose(maps[name], array, rtol=1e-4, atol=1e-6)
    assert about["settings"]["query"] == [2, 5] and about["settings"]["residual"] == 0.3
    assert about["prefix_mass"] == pytest.approx(float(expected["prefix_mass"]), rel=1e-4)


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

    model = "vit-cifar10"
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
