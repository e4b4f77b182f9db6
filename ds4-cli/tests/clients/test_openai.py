"""The official OpenAI client for Python against ds4-server with the demo model."""

import json
import time
from typing import Literal

import openai
import pytest
from conftest import WEATHER
from pydantic import BaseModel, Field

QUESTION = "What is the capital of France?"
ANSWER = "The capital of France is Paris."
MODEL = "ds4-demo"
AT_ONCE = {"thinking": {"type": "disabled"}}


@pytest.fixture(scope="module")
def client(url, key):
    return openai.OpenAI(base_url=url + "/v1", api_key=key, max_retries=0)


def ask(client, messages=None, **fields):
    fields.setdefault("temperature", 0)
    fields.setdefault("extra_body", AT_ONCE)
    messages = messages or [{"role": "user", "content": QUESTION}]
    return client.chat.completions.create(model=MODEL, messages=messages, **fields)


def test_models(client):
    ids = [model.id for model in client.models.list()]
    assert ids == [MODEL]
    assert client.models.retrieve(MODEL).id == MODEL
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("another")


def test_chat(client):
    reply = ask(client)
    assert reply.object == "chat.completion" and reply.model == MODEL
    assert reply.choices[0].message.content == ANSWER
    assert reply.choices[0].finish_reason == "stop"
    usage = reply.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert usage.completion_tokens == 9


def test_chat_stream(client):
    chunks = list(ask(client, stream=True, stream_options={"include_usage": True}))
    texts = [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content]
    assert "".join(texts) == ANSWER
    # Token by token, not in one piece.
    assert len(texts) == 8
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 9


def test_reasoning(client):
    reply = ask(client, extra_body={"thinking": {"type": "enabled"}})
    message = reply.choices[0].message
    assert "Paris" in message.content and "France" in message.reasoning_content
    assert reply.usage.completion_tokens_details.reasoning_tokens > 0
    chunks = list(ask(client, extra_body={"thinking": {"type": "enabled"}}, stream=True))
    thought = [getattr(c.choices[0].delta, "reasoning_content", None) or "" for c in chunks]
    assert "".join(thought) == message.reasoning_content
    quiet = ask(client, extra_body={}, reasoning_effort="none").choices[0].message
    assert quiet.content == ANSWER and not getattr(quiet, "reasoning_content", None)


def test_tools_round_trip(client):
    tools = [{"type": "function", "function": WEATHER}]
    messages = [{"role": "user", "content": "Tell me the weather in Tashkent."}]
    reply = ask(client, messages, tools=tools).choices[0]
    assert reply.finish_reason == "tool_calls"
    (call,) = reply.message.tool_calls
    assert call.function.name == "get_weather" and call.id.startswith("call_")
    assert json.loads(call.function.arguments) == {"city": "Tashkent"}
    messages += [
        reply.message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "14 degrees, cloudy"},
    ]
    second = ask(client, messages, tools=tools)
    assert second.choices[0].message.content == "The weather in Tashkent is cloudy with 14 degrees."
    # The call went back as the model wrote it, so the prompt was known up to there.
    assert second.usage.prompt_tokens_details.cached_tokens > 300


def test_tools_stream(client):
    tools = [{"type": "function", "function": WEATHER}]
    messages = [{"role": "user", "content": "Tell me the weather in Tashkent."}]
    name, arguments, ids, finish = "", "", set(), None
    for chunk in ask(client, messages, tools=tools, stream=True):
        choice = chunk.choices[0]
        assert "DSML" not in (choice.delta.content or "")
        for call in choice.delta.tool_calls or []:
            assert call.index == 0
            name += call.function.name or ""
            arguments += call.function.arguments or ""
            ids |= {call.id} - {None}
        finish = choice.finish_reason or finish
    assert (name, json.loads(arguments), finish) == ("get_weather", {"city": "Tashkent"}, "tool_calls")
    assert len(ids) == 1


def test_tool_choice_none(client):
    tools = [{"type": "function", "function": WEATHER}]
    reply = ask(client, tools=tools, tool_choice="none").choices[0]
    assert reply.message.tool_calls is None and reply.message.content == ANSWER


class City(BaseModel):
    # Bounded: the demo model would fill an open text or number to the limit.
    city: Literal["Paris", "Tokyo"]
    population: int = Field(ge=0, le=99_999_999)


def test_structured_output(client):
    messages = [{"role": "user", "content": QUESTION}]
    reply = client.chat.completions.parse(
        model=MODEL, messages=messages, response_format=City, temperature=0, max_tokens=200, extra_body=AT_ONCE
    )
    assert isinstance(reply.choices[0].message.parsed, City)
    schema = {"type": "object", "properties": {"answer": {"enum": ["yes", "no"]}}, "required": ["answer"],
              "additionalProperties": False}
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    for temperature in [0, 1]:
        content = ask(client, response_format=form, temperature=temperature, seed=3).choices[0].message.content
        assert json.loads(content)["answer"] in ["yes", "no"]


@pytest.mark.parametrize("thinking", ["enabled", "disabled"])
def test_json_object(client, thinking):
    """The demo model knows no JSON: it says whatever the grammar allows, and often no end. Some seeds come to one."""
    ended = 0
    for seed in range(1, 31):
        choice = ask(client, response_format={"type": "json_object"}, max_tokens=200, temperature=2, seed=seed,
                     extra_body={"thinking": {"type": thinking}, "min_p": 0}).choices[0]
        if choice.finish_reason == "stop":
            assert isinstance(json.loads(choice.message.content), dict)
            ended += 1
        else:
            assert choice.finish_reason == "length" and choice.message.content.lstrip()[:1] in ("", "{")
        if ended == 2:
            return
    pytest.fail(f"{ended} of 30 answers came to an end")


def test_logprobs(client):
    reply = ask(client, logprobs=True, top_logprobs=3)
    content = reply.choices[0].logprobs.content
    assert "".join(t.token for t in content) == ANSWER
    for token in content:
        assert token.logprob <= 0 and len(token.top_logprobs) == 3
        assert token.top_logprobs[0].token == token.token
        assert [t.logprob for t in token.top_logprobs] == sorted((t.logprob for t in token.top_logprobs), reverse=True)


def test_stop_and_limit(client):
    reply = ask(client, stop=[" France"]).choices[0]
    assert reply.message.content == "The capital of" and reply.finish_reason == "stop"
    reply = ask(client, max_tokens=3).choices[0]
    assert reply.message.content == "The capital of" and reply.finish_reason == "length"


def test_seed(client):
    messages = [{"role": "user", "content": "Tell me something."}]
    same = [ask(client, messages, temperature=1.5, seed=11, max_tokens=24).choices[0].message.content for _ in range(2)]
    assert same[0] == same[1]


def test_completions(client):
    reply = client.completions.create(model=MODEL, prompt="The capital of France is", temperature=0, max_tokens=3)
    assert "Paris" in reply.choices[0].text and reply.choices[0].finish_reason == "length"
    chunks = list(
        client.completions.create(model=MODEL, prompt="The capital of France is", temperature=0, max_tokens=3,
                                  logprobs=2, stream=True)
    )
    assert "".join(c.choices[0].text for c in chunks) == reply.choices[0].text
    assert sum(len(c.choices[0].logprobs.tokens) for c in chunks) == 3


def test_responses(client):
    reply = client.responses.create(model=MODEL, input=QUESTION, temperature=0)
    assert reply.output_text == ANSWER and reply.status == "completed"
    assert [item.type for item in reply.output] == ["reasoning", "message"]
    assert reply.usage.input_tokens_details.cached_tokens >= 0


def test_responses_stream(client):
    text, summary, kinds, numbers = "", "", [], []
    with client.responses.stream(model=MODEL, input=QUESTION, temperature=0, reasoning={"summary": "auto"}) as stream:
        for event in stream:
            kinds.append(event.type)
            numbers.append(event.sequence_number)
            if event.type == "response.output_text.delta":
                text += event.delta
            if event.type == "response.reasoning_summary_text.delta":
                summary += event.delta
        final = stream.get_final_response()
    assert text == ANSWER == final.output_text and "Paris" in summary
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    assert numbers == list(range(len(numbers)))


def test_responses_tools(client):
    tools = [{"type": "function", **WEATHER, "strict": False}]
    items = [{"role": "user", "content": "Tell me the weather in Tashkent."}]
    first = client.responses.create(model=MODEL, input=items, tools=tools, temperature=0, reasoning={"effort": "none"})
    (call,) = [item for item in first.output if item.type == "function_call"]
    assert call.name == "get_weather" and json.loads(call.arguments) == {"city": "Tashkent"}
    items += [item.model_dump(exclude_none=True) for item in first.output]
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": "14 degrees, cloudy"})
    second = client.responses.create(model=MODEL, input=items, tools=tools, temperature=0, reasoning={"effort": "none"})
    assert second.output_text == "The weather in Tashkent is cloudy with 14 degrees."


def test_responses_structured(client):
    reply = client.responses.parse(model=MODEL, input=QUESTION, text_format=City, temperature=0, max_output_tokens=300,
                                   reasoning={"effort": "none"})
    assert isinstance(reply.output_parsed, City)


@pytest.mark.parametrize(
    "fields, param",
    [
        ({"n": 2}, "n"),
        ({"presence_penalty": 0.5}, "presence_penalty"),
        ({"logit_bias": {"5": 1}}, "logit_bias"),
        ({"tool_choice": "required", "tools": [{"type": "function", "function": WEATHER}]}, "tool_choice"),
        ({"extra_body": {"no_such_field": 1}}, "no_such_field"),
        ({"temperature": -1}, "temperature"),
        ({"top_p": 2}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"response_format": {"type": "xml"}}, "response_format"),
        ({"messages": [{"role": "nobody", "content": "x"}]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "messages[0]"),
    ],
)
def test_bad_requests(client, fields, param):
    with pytest.raises(openai.BadRequestError) as error:
        ask(client, **fields)
    assert error.value.param == param


def test_context_length(client):
    with pytest.raises(openai.BadRequestError) as error:
        ask(client, [{"role": "user", "content": "word " * 5000}])
    assert error.value.code == "context_length_exceeded" and error.value.param == "messages"


def test_wrong_key(url):
    stranger = openai.OpenAI(base_url=url + "/v1", api_key="wrong", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        stranger.models.list()


def test_a_stream_can_be_left(client):
    stream = ask(client, [{"role": "user", "content": "Count."}], stream=True, temperature=2, max_tokens=2000)
    next(iter(stream))
    stream.close()
    before = time.monotonic()
    assert ask(client).choices[0].message.content == ANSWER
    assert time.monotonic() - before < 20
