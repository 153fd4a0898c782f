"""The command line as a stranger uses it: real processes for the way in, main() for the rest."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from support.commands import run
from support.models import noise, small_classifier
from support.paths import ROOT

from vit_demo import faithful, knockout
from vit_demo.checkpoints import save_checkpoint
from vit_demo.cli import main
from vit_demo.map_settings import FITS


@pytest.fixture
def picture(tmp_path) -> str:
    noise().save(tmp_path / "noise.png")
    return str(tmp_path / "noise.png")


def test_a_fresh_process_classifies_and_fails_politely(model, picture):
    command = [sys.executable, "-m", "vit_demo", "classify", picture, "--model", model, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)
    assert len(result["labels"]) == 5
    done = subprocess.run(
        [*command[:4], "no.png", "--model", "nonsense"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 2
    assert done.stdout == "" and done.stderr.count("\n") == 1
    assert "closest names" in done.stderr


def test_classify_prints_labels_and_goes_on_after_a_bad_picture(capsys, model, picture, tmp_path):
    bad = tmp_path / "bad.png"
    bad.write_text("not a picture")
    code, out, err = run(capsys, "classify", picture, bad, picture, "--model", model, "--top", 3)
    assert code == 2
    assert out.count("  label ") == 6 and out.count("%") == 6
    assert "bad.png" in err and err.count("\n") == 1
    code, out, err = run(capsys, "classify", picture, bad, "--model", model, "--json")
    assert code == 2
    good, failed = json.loads(out)
    assert good["labels"][0].keys() == {"label", "probability", "index"}
    assert sum(p["probability"] for p in good["labels"]) == pytest.approx(1)
    assert failed["image"] == str(bad) and failed["error"]


@pytest.mark.parametrize("fit", FITS)
def test_explain_writes_all_its_files(capsys, model, picture, tmp_path, fit):
    out_dir = tmp_path / "out" / "here"
    code, out, err = run(
        capsys, "explain", picture, "--model", model, "--out", out_dir, "--fit", fit, "--json"
    )
    assert code == 0, err
    about = json.loads(out)
    assert about == json.loads((out_dir / "explanation.json").read_text())
    assert about["image"] == "noise.png" and about["fit"] == fit and about["model"] == "small"
    assert about["settings"]["layer"] == 2 and about["settings"]["head"] == "mean"
    rows, cols = about["grid"]
    maps = np.load(out_dir / "maps.npz")
    assert maps["rollout"].shape == (rows, cols)
    assert maps["head_rollouts"].shape == (3, 3, rows, cols)
    assert maps["logits"].shape == (5,)
    explanation = small_classifier().explain(picture, fit)
    np.testing.assert_allclose(maps["rollout"], explanation.rollout(), atol=1e-6)
    np.testing.assert_allclose(maps["head_rollouts"], explanation.head_rollouts(None), atol=1e-6)
    assert maps["prefix_mass"] == pytest.approx(explanation.prefix_mass, abs=1e-6)
    assert about["prefix_mass"] == pytest.approx(explanation.prefix_mass, abs=1e-6)
    assert maps["rollout"].sum() + maps["prefix_mass"] == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(about["crop_box"], explanation.view.box)
    for name in ("overview.png", "heads.png", "rollout.png"):
        with Image.open(out_dir / name) as image:
            image.load()
            assert min(image.size) > 100


def test_explain_answers_for_a_patch_a_layer_and_a_head(capsys, model, picture, tmp_path):
    options = ("--layer", 0, "--head", 1, "--query", "2,3", "--residual", 0.3, "--below", "same")
    code, out, err = run(
        capsys, "explain", picture, "--model", model, "--out", tmp_path, *options, "--json"
    )
    assert code == 0, err
    expected = small_classifier().explain(picture)
    maps = np.load(tmp_path / "maps.npz")
    rollout = expected.rollout(query=(2, 3), residual=0.3)
    np.testing.assert_allclose(maps["rollout"], rollout, atol=1e-6)
    heads = expected.head_rollouts(None, query=(2, 3), residual=0.3, below="same")
    np.testing.assert_allclose(maps["head_rollouts"], heads, atol=1e-6)
    settings = json.loads(out)["settings"]
    assert (settings["layer"], settings["head"], settings["query"]) == (0, 1, [2, 3])


SPECIAL = "what is special about this head: its rollout minus the mean of its layer"


def test_explain_draws_any_map_of_the_page(capsys, model, picture, tmp_path):
    """--map and what goes with it: `map` in maps.npz, map.png, and their words."""
    expected = small_classifier().explain(picture)
    views = {
        "attention": (
            ("--layer", 1, "--head", 2, "--query", "2,3", "--direction", "to"),
            expected.attention(1, 2, (2, 3), direction="to"),
            "raw attention · layer 2 · head 3 · to patch row 3, column 4",
        ),
        "head_rollout": (
            ("--head", 0, "--part", "special", "--opacity", 0.9),
            expected.head_rollouts(part="special")[0],
            f"{SPECIAL} · layer 3 · head 1",
        ),
        "rollout": (
            ("--fusion", "max", "--discard", 0.2),
            expected.rollout(fusion="max", discard=0.2),
            "rollout · layer 3 · strongest · discard 0.2",
        ),
    }
    for map, (options, heat, words) in views.items():
        out = tmp_path / map
        code, text, err = run(
            capsys, "explain", picture, "--model", model, "--out", out, "--map", map, *options,
            "--json",
        )  # fmt: skip
        assert code == 0, err
        np.testing.assert_allclose(np.load(out / "maps.npz")["map"], heat, atol=1e-6)
        about = json.loads(text)
        assert about["shows"] == words and about["settings"]["map"] == map
        assert Image.open(out / "map.png").width >= 400


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--layer", "9"), "no layer 9"),
        (("--head", "7"), "no head 7"),
        (("--query", "9,9"), "no row 9"),
        (("--query", "nine"), "--query"),
        (("--residual", "2"), "0 to 1"),
        (("--discard", "1"), "below, 1"),
        (("--fit", "squeeze"), "crop"),
        (("--colours", "jet"), "inferno"),
        (("--direction", "to"), "--map attention"),
        (("--map", "rollout", "--part", "special"), "--map head_rollout"),
        (("--device", "toaster"), "auto, cpu"),
        (("--labels", "missing.txt"), "labels file"),
        (("--model", "deit_tyni"), "closest names"),
        (("--nonsense",), "--nonsense"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, model, picture, tmp_path, options, words):
    code, out, err = run(
        capsys, "explain", picture, "--model", model, "--out", tmp_path / "out", *options
    )
    assert code == 2
    assert words in err
    assert out == "" and err.count("\n") == 1


@pytest.mark.parametrize("content", [b"", b"hello", b"\x89PNG\r\n\x1a\nbroken"])
def test_a_bad_picture_is_one_line_and_exit_code_2(capsys, model, tmp_path, content):
    path = tmp_path / "bad.png"
    path.write_bytes(content)
    code, out, err = run(capsys, "explain", path, "--model", model, "--out", tmp_path / "out")
    assert code == 2 and out == "" and err.count("\n") == 1
    assert "bad.png" in err
    assert not (tmp_path / "out").exists()


def test_a_method_without_a_label_asks_about_the_answer(capsys, model, picture, tmp_path):
    flags = ("--model", model, "--method", "relevance")
    for opacity in (0.1, 0.9):
        out = tmp_path / str(opacity)
        code, _, err = run(capsys, "explain", picture, *flags, "--out", out, "--opacity", opacity)
        assert code == 0, err
    expected = small_classifier().explain(picture).relevance()
    np.testing.assert_allclose(np.load(out / "maps.npz")["relevance"], expected, atol=1e-6)
    faint, strong = (np.asarray(Image.open(tmp_path / o / "relevance.png")) for o in ("0.1", "0.9"))
    assert (faint != strong).any()


def test_a_headless_model_explains_but_does_not_classify(capsys, picture, tmp_path):
    classifier = small_classifier(num_classes=0)
    path = tmp_path / "headless.safetensors"
    save_checkpoint(path, classifier.model, classifier.labels, classifier.preprocess)
    code, _, err = run(capsys, "explain", picture, "--model", path, "--out", tmp_path / "out")
    assert code == 0, err
    assert np.load(tmp_path / "out" / "maps.npz")["logits"].shape == (0,)
    code, _, err = run(capsys, "classify", picture, "--model", path)
    assert code == 2 and "maps only" in err


def test_models_lists_every_name(capsys):
    code, out, _ = run(capsys, "models", "--json")
    models = {model["name"]: model for model in json.loads(out)}
    assert code == 0 and models["deit_tiny_patch16_224.fb_in1k"]["labels"] == 1000
    assert models["vit_small_patch16_224.dino"]["labels"] == 0
    code, out, _ = run(capsys, "models")
    assert code == 0 and len(out.splitlines()) == len(models)


def test_summary_counts_every_parameter(capsys, model):
    code, out, _ = run(capsys, "summary", "--model", model)
    count = sum(p.numel() for p in small_classifier().model.parameters())
    assert code == 0
    for words in ("PatchEmbed", "Attention", "MLP", f"{count:,}", "[1, 17, 24]"):
        assert words in out


def test_an_unexpected_error_shows_no_stack_trace(capsys, monkeypatch, model, picture):
    monkeypatch.setattr("vit_demo.cli.flags.load_classifier", lambda args: 1 / 0)
    code, _, err = run(capsys, "classify", picture, "--model", model)
    assert code == 1 and "Traceback" not in err
    code, _, debugged = run(capsys, "classify", picture, "--model", model, "--debug")
    assert code == 1 and "Traceback" in debugged and debugged.endswith(err)
    assert "ZeroDivisionError" in err and "Traceback" not in err


def test_explain_shows_what_speaks_for_a_label(capsys, model, picture, tmp_path):
    out = tmp_path / "out"
    code, text, _ = run(
        capsys, "explain", picture, "--model", model, "--out", out, "--label", "Label 3"
    )
    assert code == 0 and "contribution.png" in text and "relevance.png" not in text
    about = json.loads((out / "explanation.json").read_text())
    explanation = small_classifier().explain(picture)
    tokens = explanation.contribution(3, tokens=True)
    of = about["contribution_of"]
    assert (of["label"], of["index"]) == ("label 3", 3)
    assert of["prefix"] == pytest.approx(float(tokens[0]), abs=1e-6)
    expected = explanation.contribution(3).numpy()
    np.testing.assert_allclose(np.load(out / "maps.npz")["contribution"], expected, atol=1e-6)
    assert Image.open(out / "contribution.png").size[0] >= 32
    for method in ("relevance", "gradient_rollout", "grad_cam"):
        other = tmp_path / method
        given = ("--out", other, "--label", "Label 3", "--method", method)
        code, text, _ = run(capsys, "explain", picture, "--model", model, *given)
        assert code == 0 and f"{method}.png" in text
        about = json.loads((other / "explanation.json").read_text())
        assert about[f"{method}_of"] == {"label": "label 3", "index": 3}
        expected = getattr(explanation, method)(3).numpy()
        np.testing.assert_allclose(np.load(other / "maps.npz")[method], expected, atol=1e-6)
        assert Image.open(other / f"{method}.png").size[0] >= 32
    code, _, err = run(
        capsys, "explain", picture, "--model", model, "--out", out, "--label", "lable 3"
    )
    assert code == 2 and "closest" in err and "label 3" in err


def test_explain_shows_what_speaks_for_one_label_rather_than_another(
    capsys, model, picture, tmp_path
):
    out = tmp_path / "out"
    options = ("--label", "label 3", "--minus", 1, "--method", "relevance")
    code, text, err = run(capsys, "explain", picture, "--model", model, "--out", out, *options)
    assert code == 0, err
    assert "relevance.png, difference.png" in text
    about = json.loads((out / "explanation.json").read_text())
    assert about["minus"] == {"label": "label 1", "index": 1}
    explanation = small_classifier().explain(picture)
    expected = (explanation.relevance(3) - explanation.relevance(1)).numpy()
    np.testing.assert_allclose(np.load(out / "maps.npz")["difference"], expected, atol=1e-6)
    shown, alone = (Image.open(out / name) for name in ("difference.png", "relevance.png"))
    assert shown.width == alone.width and shown.height > alone.height  # the scale is below
    code, text, err = run(capsys, "explain", picture, "--model", model, "--out", out, *options[:4])
    assert code == 0 and "contribution.png, difference.png" in text, err
    expected = (explanation.contribution(3) - explanation.contribution(1)).numpy()
    np.testing.assert_allclose(np.load(out / "maps.npz")["difference"], expected, atol=1e-5)
    for options, words in (
        (("--minus", "label 1"), "--minus needs --label"),
        (("--label", "label 3", "--minus", "lable 1"), "closest"),
        (("--label", "label 3", "--minus", 9), "no label 9"),
        (("--label", "label 3", "--minus", 3), "the same label"),
    ):
        new = tmp_path / "new"
        code, text, err = run(capsys, "explain", picture, "--model", model, "--out", new, *options)
        assert code == 2 and words in err and text == "" and err.count("\n") == 1
        assert not new.exists()


# Trust


@pytest.mark.parametrize("remove", faithful.REMOVALS)
def test_trust_prints_and_writes_the_numbers_of_the_library(
    capsys, model, picture, tmp_path, remove
):
    given = ["trust", picture, "--model", model, "--label", "Label 2", "--remove", remove]
    given += ["--methods", "relevance, rollout,random", "--device", "cpu"]
    code, text, err = run(capsys, *given, "--out", tmp_path / "a")
    assert code == 0 and err == ""
    explanation = small_classifier().explain(picture)
    maps = {"relevance": explanation.relevance(2), "rollout": explanation.rollout()}
    maps["random"] = faithful.random_map(explanation)
    expected = faithful.trust_all(explanation, maps, 2, remove=remove)
    about = json.loads((tmp_path / "a" / "trust.json").read_text())
    assert list(about["methods"]) == list(expected)
    for name, result in expected.items():
        got = about["methods"][name]
        assert got["score"] == pytest.approx(result.score, abs=1e-6)
        assert got["band"] == pytest.approx(result.band, abs=1e-6)
        assert (got["verdict"], got["sentence"]) == (result.verdict, result.sentence)
        for curve in ("kept", "deletion", "insertion", "random"):
            np.testing.assert_allclose(got[curve], getattr(result, curve), atol=1e-6)
        line = next(line for line in text.splitlines() if line.startswith(f"  {name} "))
        assert line.split()[1:3] == [f"{result.score:+.3f}", f"\u00b1{result.band:.3f}"]
        assert line.endswith(result.sentence)
    probability = explanation.logits.softmax(0)[2].item()
    assert about["label"]["probability"] == pytest.approx(probability)
    assert text.startswith(f"label 2: {probability:.2%}")
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"trust.png", "trust.json"}
    assert Image.open(tmp_path / "a" / "trust.png").width > 1000
    code, text, _ = run(capsys, *given, "--out", tmp_path / "b", "--json")
    assert code == 0 and json.loads(text) == about


def test_a_thorough_trust_removes_patches_in_both_ways(capsys, model, picture, tmp_path):
    given = ["trust", picture, "--model", model, "--label", 2, "--methods", "rollout,contribution"]
    code, text, err = run(capsys, *given, "--thorough", "--out", tmp_path)
    assert code == 0, err
    about = json.loads((tmp_path / "trust.json").read_text())
    explanation = small_classifier().explain(picture)
    maps = {"rollout": explanation.rollout(), "contribution": explanation.contribution(2)}
    expected = faithful.trust_thoroughly(explanation, maps, 2)
    assert (about["remove"], about["also"]["remove"]) == ("tokens", "black")
    for found, way in ((about, "tokens"), (about["also"], "black")):
        for name, result in expected[way].items():
            assert found["methods"][name]["score"] == pytest.approx(result.score, abs=1e-5)
            assert len(found["methods"][name]["random"]) == 30
    best = faithful.best_method(*expected.values())
    assert (about["best"]["method"], about["best"]["sentence"]) == (best.method, best.sentence)
    assert best.sentence in text and "their tokens dropped" in text and "painted black" in text
    assert Image.open(tmp_path / "trust-black.png").width > 500


def test_trust_with_random_weights(capsys, model, picture, tmp_path):
    given = ["trust", picture, "--model", model, "--out", tmp_path, "--random-weights"]
    code, text, err = run(capsys, *given, "--methods", "relevance,random")
    assert code == 0, err
    about = json.loads((tmp_path / "trust.json").read_text())
    explanation = small_classifier().explain(picture)
    for name in ("relevance", "random"):
        expected, got = faithful.random_weights(explanation, name), about["random_weights"][name]
        np.testing.assert_allclose(got["correlations"], expected.correlations, atol=1e-6)
        assert (got["passed"], got["sentence"]) == (expected.passed, expected.sentence)
        assert f"{'passes' if expected.passed else 'fails ':6}   {expected.sentence}" in text
    assert about["random_weights"]["random"]["passed"] is False  # chance does not know the weights
    assert Image.open(tmp_path / "random-weights.png").width > 500


def test_trust_without_heads_and_layers(capsys, model, picture, tmp_path):
    given = ["trust", picture, "--model", model, "--out", tmp_path, "--methods", "rollout"]
    code, text, err = run(
        capsys, *given, "--without-head", "0.2", "-1.1", "--without-layer", 1, "--heads"
    )
    assert code == 0, err
    explanation = small_classifier().explain(picture)
    expected = knockout.without(explanation, heads=[(0, 2), (2, 1)], layers=[1])
    about = json.loads((tmp_path / "trust.json").read_text())
    assert about["without"]["heads"] == [[0, 2], [2, 1]] and about["without"]["layers"] == [1]
    for which in ("before", "after"):
        for got, change in zip(about["without"][which], getattr(expected, which), strict=True):
            assert (got["label"], got["index"]) == (change.label, change.index)
            assert got["before"] == pytest.approx(change.before, abs=1e-6)
            assert got["after"] == pytest.approx(change.after, abs=1e-6)
    assert "Without head 0.2, head 2.1, the attention of layer 1:" in text
    for was, now in zip(expected.before, expected.after, strict=True):
        row = f"{was.before:7.2%}  {was.label:26}   {now.after:7.2%}  {now.label}"
        assert row.split() in [line.split() for line in text.splitlines()]
    wall = knockout.knockout_wall(explanation)
    np.testing.assert_allclose(about["heads"]["changes"], wall, atol=1e-6)
    order = sorted(((l, h) for l in range(3) for h in range(3)), key=lambda at: -abs(wall[at]))
    assert [(of["layer"], of["head"]) for of in about["heads"]["most"]] == order[:3]
    for layer, head in order[:3]:
        assert f"{100 * wall[layer, head]:+7.2f} points   --without-head {layer}.{head}" in text
    assert Image.open(tmp_path / "heads.png").width > 400


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--methods", "raw,magic"), "no method 'magic'"),
        (("--methods", ","), "--methods names none"),
        (("--label", "lable 3"), "closest"),
        (("--remove", "acid"), "tokens"),
        (("--without-head", "5"), "'5' is not LAYER.HEAD"),
        (("--without-head", "0.9"), "no head 9"),
        (("--without-head", "7.0"), "no layer 7"),
        (("--without-layer", "3"), "no layer 3"),
        (("--without-layer", "top"), "--without-layer"),
    ],
)
def test_bad_input_for_trust(capsys, model, picture, tmp_path, options, words):
    out = tmp_path / "out"
    code, text, err = run(capsys, "trust", picture, "--model", model, "--out", out, *options)
    assert code == 2 and words in err
    assert text == "" and err.count("\n") == 1 and not out.exists()


def test_trust_of_a_headless_model_says_that_it_has_no_classes(capsys, picture, tmp_path):
    classifier = small_classifier(num_classes=0)
    path = tmp_path / "headless.safetensors"
    save_checkpoint(path, classifier.model, classifier.labels, classifier.preprocess)
    code, text, err = run(capsys, "trust", picture, "--model", path, "--out", tmp_path / "out")
    assert code == 2 and "no label head" in err and text == ""
    assert not (tmp_path / "out").exists()


# Ctrl-C


@pytest.mark.parametrize("instead", [TypeError, ValueError, OSError, KeyboardInterrupt])
def test_ctrl_c_is_no_error_whatever_a_library_makes_of_it(capsys, monkeypatch, instead):
    def interrupted(args) -> None:
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise instead("expected a message argument")  # with no trace of what caused it

    monkeypatch.setattr("vit_demo.cli.models.run", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main(["models"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr() == ("", "")
