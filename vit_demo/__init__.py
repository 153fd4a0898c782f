"""See how a Vision Transformer looks at a picture."""

from vit_demo.explain import Classifier, Explanation, Prediction, load

__all__ = ["Classifier", "Explanation", "Prediction", "load"]
