"""Explain every picture of a folder: one report, one table, and the maps as numbers."""

from vit_demo.folders.report import Summary
from vit_demo.folders.run import MAPS, explain_folder

__all__ = ["MAPS", "Summary", "explain_folder"]
