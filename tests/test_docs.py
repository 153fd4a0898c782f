"""The documentation is true: links lead somewhere, snippets and commands run, lists are complete."""

import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest
from support.commands import run
from support.documents import HUB_MODEL, PAGES, SERVER, read, words_of
from support.paths import ROOT
from support.runs import CALM, FAST, SHAPE
from support.shared import missing

from vit_demo.cli import COMMANDS, Parser, add_command
from vit_demo.training.config import DATASETS

ARCHITECTURE = ROOT / "docs" / "architecture.md"
PACKAGE = ROOT / "vit_demo"
pytestmark = pytest.mark.usefixtures("one_thread")
DOCUMENTS = {path.relative_to(ROOT).as_posix(): read(path) for path in PAGES}


@pytest.fixture
def folder(tmp_path, monkeypatch, colours) -> Path:
    """A folder with everything that the documentation names, and the place where its code runs."""
    monkeypatch.chdir(tmp_path)
    for name in ("cat.jpg", "dog.jpg", "coffee.jpg", "pictures/cat.jpg"):
        Path(name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "assets" / "examples" / "koala.jpg", name)
    Path("FOLDER").symlink_to(colours)
    for name in ("views", "short"):  # two runs whose weights are averaged
        Path("runs", name).mkdir(parents=True)
        shutil.copy(ROOT / "assets" / "vit-photos.safetensors", f"runs/{name}/last.safetensors")
    return tmp_path


@pytest.fixture
def deit_tiny_weights(shared, monkeypatch) -> None:
    """The hub model that the documentation names, found without the hub."""
    path = shared / "weights" / "deit_tiny_patch16_224.fb_in1k.safetensors"
    if not path.is_file():
        missing(f"no ../shared/weights/{path.name}: CONTRIBUTING.md says where it can be had")
    monkeypatch.setenv("VIT_DEMO_WEIGHTS", str(path.parent))


# Links


@pytest.mark.parametrize("page", DOCUMENTS)
def test_every_link_and_picture_is_there(page):
    for link in DOCUMENTS[page].links:
        if re.match(r"https?://", link):
            continue
        path, _, wanted = link.partition("#")
        target = ((ROOT / page).parent / unquote(path)).resolve() if path else ROOT / page
        assert target.exists(), f"{page} links to {link}"
        if wanted:
            assert wanted in DOCUMENTS[target.relative_to(ROOT).as_posix()].anchors, link


def test_every_page_and_picture_is_reached():
    reached = {"README.md"}
    for page, document in DOCUMENTS.items():
        for link in document.links:
            target = ((ROOT / page).parent / link.partition("#")[0]).resolve()
            if target.is_file():
                reached.add(target.relative_to(ROOT).as_posix())
    pictures = (path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/images").iterdir())
    assert {*DOCUMENTS, *pictures} <= reached


# Python


def snippets(kind: str) -> list[str]:
    return [page for page, document in DOCUMENTS.items() if chosen(document, kind)]


def chosen(document, kind: str) -> list[str]:
    """A page's snippets: those that need a hub model, a page that is running, or neither."""
    kinds = {"hub": HUB_MODEL.search, "server": lambda code: SERVER in code}
    kinds["plain"] = lambda code: not kinds["hub"](code) and not kinds["server"](code)
    return [code for code in document.code("python") if kinds[kind](code)]


def execute(code: str, page: str, names: dict) -> None:
    exec(compile(code, page, "exec"), names)  # noqa: S102 - our own documentation


@pytest.mark.parametrize("page", snippets("plain"))
def test_snippets_run(page, folder):
    names = {}
    for code in chosen(DOCUMENTS[page], "plain"):
        execute(code, page, names)


@pytest.mark.parametrize("page", snippets("hub"))
def test_snippets_with_a_hub_model_say_so_and_run(page, folder, deit_tiny_weights):
    for code in chosen(DOCUMENTS[page], "hub"):
        assert "download" in code
        execute(code, page, {})


@pytest.mark.parametrize("page", snippets("server"))
def test_snippets_that_ask_a_running_page_run(page, folder):
    from vit_demo.ui import page as demo_page

    demo = demo_page.make(device="cpu", say=lambda text: None)
    where = {"server_name": "127.0.0.1", "prevent_thread_lock": True}
    _, address, _ = demo.launch(**where, **demo_page.launch_options())
    try:
        for code in chosen(DOCUMENTS[page], "server"):
            execute(code.replace(SERVER, address), page, {})
    finally:
        demo.close(verbose=False)


# Commands


def pages_with_commands(hub: bool) -> list[str]:
    return [page for page in DOCUMENTS if commands(page, hub)]


def commands(page: str, hub: bool) -> list[str]:
    return [line for line in DOCUMENTS[page].commands() if bool(HUB_MODEL.search(line)) == hub]


@pytest.mark.parametrize("page", pages_with_commands(hub=False))
def test_commands_run(page, folder, capsys):
    if page == "docs/models.md":
        own_weights(folder)
    for line in commands(page, hub=False):
        try_out(line, capsys)


@pytest.mark.parametrize("page", pages_with_commands(hub=True))
def test_commands_with_a_hub_model_say_so_and_run(page, folder, capsys, deit_tiny_weights):
    (folder / "pictures" / "cat.jpg").rename(folder / "pictures" / "n02123045_tabby.JPEG")
    for line in commands(page, hub=True):
        assert "download" in line, f"{page}: say that this downloads a model: {line}"
        try_out(line, capsys)


def try_out(line: str, capsys) -> None:
    """Run a command with small inputs. What trains for hours, serves or downloads a data set is
    only read by its own parser."""
    words = words_of(line)
    command, named_set = words[0], words[1:2] and words[1] in DATASETS
    long = {"--init", "--teacher"} & set(words) or "torchrun" in line
    if command == "app" or named_set or long:
        parsed(words)
        return
    if command == "train":
        words += [*SHAPE, *FAST, *CALM, "--epochs", "1"]
        words += ["--start-size", "8"] if "--start-size" in words else []
    if command in ("trust", "faithfulness"):
        words += ["--methods", "rollout"]
    code, _, err = run(capsys, *words)
    assert code == 0, f"{line}\n{err}"


def parsed(words: list[str]):
    """What the command's own parser makes of the words after it."""
    parser = Parser()
    add_command(parser, words[0])
    args = parser.parse_args(words[1:])
    if words[0] == "train":
        from vit_demo.cli.train import config_of
        from vit_demo.training.config import complete

        complete(config_of(args))
    return args


def own_weights(folder: Path) -> None:
    """A fine-tune of a timm ViT as others save it, and the labels beside it."""
    import timm
    import torch

    model = timm.create_model("vit_tiny_patch16_224", num_classes=3)
    torch.save(model.state_dict(), folder / "tuned.pth")
    (folder / "labels.txt").write_text("red\ngreen\nblue\n")


def test_every_command_has_its_line():
    named = {words_of(line)[0] for line in DOCUMENTS["docs/command-line.md"].commands()}
    assert named == set(COMMANDS)


def test_options_in_tables_exist():
    known = set()
    for name in COMMANDS:
        parser = Parser()
        add_command(parser, name)
        known |= set(parser._option_string_actions)
    pages = [path.read_text(encoding="utf-8") for path in PAGES if path.parent.name == "docs"]
    rows = re.findall(r"^\| (`--.+?) \|", "\n".join(pages), re.MULTILINE)
    named = {flag for row in rows for flag in re.findall(r"--[a-z][a-z-]*", row)}
    assert len(named) > 10
    assert named <= known


def test_the_readme_has_the_two_commands():
    blocks = DOCUMENTS["README.md"].code("")
    assert "pip install -r requirements.txt && python app.py\n" in blocks
    assert "pip install -r requirements-dev.txt && pytest\n" in blocks


# Facts


def test_the_number_of_models():
    from vit_demo.checkpoints.timm_models import supported_timm

    models = supported_timm()
    text = (ROOT / "docs/models.md").read_text(encoding="utf-8")
    counts = re.search(r"all (\d+) timm checkpoints that can be used, (\d+) of them", text)
    assert [int(count) for count in counts.groups()] == [
        len(models),
        sum(labels > 0 for labels in models.values()),
    ]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"{len(models)} timm checkpoints" in readme


def test_the_newest_version_is_the_one_to_cite():
    newest = re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert f"\nversion: {newest[1]}\n" in (ROOT / "CITATION.cff").read_text()


# Architecture


def listed_files() -> set[str]:
    """The paths in the tree of docs/architecture.md: two spaces of indentation a folder."""
    (tree,) = DOCUMENTS["docs/architecture.md"].code("text")
    parents, paths = [], set()
    for line in tree.splitlines():
        depth, name = (len(line) - len(line.lstrip())) // 2, line.split()[0]
        parents[depth:] = [name.rstrip("/")]
        paths.add("/".join(parents) + ("/" if name.endswith("/") else ""))
    return paths


def test_the_tree_lists_every_file_of_the_package_and_no_other():
    listed = listed_files()
    for path in listed:
        assert (ROOT / path).is_dir() if path.endswith("/") else (ROOT / path).is_file(), path
    for path in PACKAGE.rglob("*"):
        name, folder = path.relative_to(ROOT).as_posix(), path.parent.relative_to(ROOT).as_posix()
        if path.suffix == ".py" or path.parent == PACKAGE / "ui/static" and path.is_file():
            assert name in listed
        elif path.suffix in {".js", ".css"}:
            assert f"{folder}/" in listed  # one line a folder


def test_the_picture_of_the_way_names_files_that_are_there():
    text = (ROOT / "docs/images/way-of-a-photograph.svg").read_text(encoding="utf-8")
    named = re.findall(r">([\w/]+\.(?:py|js)(?:, [\w/]+\.(?:py|js))*)", text)
    assert len(named) > 12
    for names in named:
        first, *others = names.split(", ")
        assert (PACKAGE / first).is_file(), first
        for name in others:  # from the package's folder, or beside the first
            assert (PACKAGE / name).is_file() or (PACKAGE / first).with_name(name).is_file(), name
