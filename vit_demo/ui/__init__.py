"""The Gradio page: layout, events, and the explorer component."""

import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # before anybody imports gradio
