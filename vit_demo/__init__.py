"""See how a Vision Transformer looks at a picture.

classifier = vit_demo.load()
explanation = classifier.explain("cat.jpg")
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vit_demo.explain import Classifier, Explanation, Prediction, load
    from vit_demo.folders import explain_folder

__all__ = [
    "Classifier",
    "Explanation",
    "Prediction",
    "explain_folder",
    "faithful",
    "knockout",
    "load",
]
OF_EXPLAIN = ("Classifier", "Explanation", "Prediction", "load")
NAMES = {name: ("vit_demo.explain", name) for name in OF_EXPLAIN}
NAMES["explain_folder"] = ("vit_demo.folders", "explain_folder")
MODULES = {"faithful": "vit_demo.trust", "knockout": "vit_demo.trust.knockout"}


def __getattr__(name: str) -> object:
    """Import PyTorch when it is first needed: `vit-demo --help` answers at once."""
    if name in NAMES:
        module, attribute = NAMES[name]
        return getattr(import_module(module), attribute)
    if name in MODULES:
        return import_module(MODULES[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
