"""Where the server is: `cargo xtask clients` starts one and says so in DS4_URL."""

import os

import pytest

WEATHER = {
    "name": "get_weather",
    "description": "Get the current weather for a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "The name of the city"}},
        "required": ["city"],
    },
}


@pytest.fixture(scope="session")
def url():
    return os.environ["DS4_URL"]


@pytest.fixture(scope="session")
def key():
    return os.environ["DS4_KEY"]
