"""What an error message should be: words for a person, and nothing from the inside of the program."""

import re


def plain(message: str) -> bool:
    """One or two sentences, with what to do next."""
    inside = re.search(r"Traceback|Error\b|/tmp|/home|/root|site-packages|0x[0-9a-f]{6}", message)
    advice = re.search(
        r"\b(use|choose|open|save|send|make|give|cut|check|ask|draw|get|put|download|set|add|scale)\b",
        message,
        re.IGNORECASE,
    )
    fine = 20 < len(message) < 500 and message.endswith(".") and "\n" not in message
    return fine and bool(advice) and not inside
