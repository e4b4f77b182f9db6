"""The official Anthropic client for Python against ds4-server with the demo model."""

import json

import anthropic
import pytest
from conftest import WEATHER

QUESTION = "What is the capital of France?"
ANSWER = "The capital of France is Paris."
MODEL = "ds4-demo"
TOOL = {"name": WEATHER["name"], "description": WEATHER["description"], "input_schema": WEATHER["parameters"]}
AT_ONCE = {"type": "disabled"}


@pytest.fixture(scope="module")
def client(url, key):
    return anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)


def fields(extra_body=None, **more):
    """A request; the client has no argument for the temperature any more, the API has."""
    base = {"model": MODEL, "max_tokens": 200, "thinking": AT_ONCE}
    base["messages"] = [{"role": "user", "content": QUESTION}]
    return base | more | {"extra_body": {"temperature": 0} | (extra_body or {})}


def test_message(client):
    reply = client.messages.create(**fields())
    assert [block.type for block in reply.content] == ["text"]
    assert reply.content[0].text == ANSWER
    assert reply.stop_reason == "end_turn" and reply.role == "assistant"
    usage = reply.usage
    assert usage.input_tokens + usage.cache_read_input_tokens == 11 and usage.output_tokens == 9


def test_thinking(client):
    reply = client.messages.create(**fields(thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=2000))
    thinking, text = reply.content
    assert thinking.type == "thinking" and "France" in thinking.thinking
    assert text.text == ANSWER
    again = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in reply.content]},
        {"role": "user", "content": "What is the capital of Japan?"},
    ]
    assert "Tokyo" in client.messages.create(**fields(messages=again)).content[0].text


def test_stream(client):
    kinds = []
    with client.messages.stream(**fields(thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=2000)) as stream:
        for event in stream:
            kinds.append(event.type)
        final = stream.get_final_message()
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop"
    assert [block.type for block in final.content] == ["thinking", "text"]
    assert final.content[1].text == ANSWER and final.usage.output_tokens > 9


def test_tools_round_trip(client):
    messages = [{"role": "user", "content": "Tell me the weather in Tashkent."}]
    reply = client.messages.create(**fields(messages=messages, tools=[TOOL]))
    assert reply.stop_reason == "tool_use"
    (call,) = [block for block in reply.content if block.type == "tool_use"]
    assert call.name == "get_weather" and call.input == {"city": "Tashkent"} and call.id.startswith("toolu_")
    messages += [
        {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in reply.content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "14 degrees, cloudy"}]},
    ]
    second = client.messages.create(**fields(messages=messages, tools=[TOOL]))
    assert second.content[0].text == "The weather in Tashkent is cloudy with 14 degrees."
    assert second.usage.cache_read_input_tokens > 300


def test_tools_stream(client):
    messages = [{"role": "user", "content": "Tell me the weather in Tashkent."}]
    with client.messages.stream(**fields(messages=messages, tools=[TOOL])) as stream:
        final = stream.get_final_message()
    (call,) = [block for block in final.content if block.type == "tool_use"]
    assert call.input == {"city": "Tashkent"} and final.stop_reason == "tool_use"


def test_stop_sequence_and_limit(client):
    reply = client.messages.create(**fields(stop_sequences=[" France"]))
    assert (reply.stop_reason, reply.stop_sequence) == ("stop_sequence", " France")
    assert reply.content[0].text == "The capital of"
    reply = client.messages.create(**fields(max_tokens=3))
    assert (reply.stop_reason, reply.content[0].text) == ("max_tokens", "The capital of")


def test_system_and_blocks(client):
    blocks = [{"type": "text", "text": QUESTION}]
    reply = client.messages.create(**fields(system=[{"type": "text", "text": "Be brief."}],
                                            messages=[{"role": "user", "content": blocks}]))
    assert "Paris" in reply.content[0].text


def test_count_tokens(client):
    counted = client.messages.count_tokens(model=MODEL, messages=fields()["messages"], thinking=AT_ONCE)
    assert counted.input_tokens == 11


@pytest.mark.parametrize(
    "more",
    [
        {"extra_body": {"temperature": 200}},
        {"messages": []},
        {"messages": [{"role": "user", "content": [{"type": "document", "source": {}}]}]},
        {"tools": [TOOL], "tool_choice": {"type": "any"}},
        {"tools": [{"type": "bash_20250124", "name": "bash"}]},
        {"extra_body": {"no_such_field": 1}},
    ],
)
def test_bad_requests(client, more):
    with pytest.raises(anthropic.BadRequestError) as error:
        client.messages.create(**fields(**more))
    assert error.value.body["type"] == "error"
    assert error.value.body["error"]["type"] == "invalid_request_error"


def test_structured_output(client):
    schema = {"type": "object", "properties": {"answer": {"enum": ["yes", "no"]}}, "required": ["answer"],
              "additionalProperties": False}
    reply = client.messages.create(**fields(output_config={"format": {"type": "json_schema", "schema": schema}}))
    assert json.loads(reply.content[0].text)["answer"] in ["yes", "no"]


def test_wrong_key(url):
    stranger = anthropic.Anthropic(base_url=url, api_key="wrong", max_retries=0)
    with pytest.raises(anthropic.AuthenticationError):
        stranger.messages.create(**fields())
