"""Judges requests and answers by the types of the providers' own SDKs, with further fields forbidden.

Reads a JSON object from each line of the input: {"type", "name", "body"}. Each body is read by the type and written again; both have to
be the same. Writes a JSON object for each body that is refused or changes, {"name", "problem"}, and then the number of bodies.
"""

import json
import sys
import typing

import pydantic
import typing_extensions

# The SDKs let a list be any iterable, which pydantic reads only when somebody iterates.
typing.Iterable = typing.List

import anthropic.types as anthropic
import google.genai.types as google
import openai.types.chat as chat
import openai.types.responses as responses
from anthropic.types import message_count_tokens_params, message_create_params
from openai.types import embedding_create_params
from openai.types.chat import completion_create_params
from openai.types.responses import input_token_count_params, response_create_params

STRICT = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True)


def close(package):
    """Forbids further fields in all types of a package. Its models are built when they are used, which is later."""
    modules = [module for name, module in sys.modules.items() if name.startswith(package)]
    for value in [value for module in modules for value in vars(module).values()]:
        if typing_extensions.is_typeddict(value):
            value.__pydantic_config__ = STRICT
        elif isinstance(value, type) and issubclass(value, pydantic.BaseModel):
            value.model_config["extra"] = "forbid"


close("anthropic.types")
close("openai.types")


def typed(*types):
    return pydantic.TypeAdapter(typing.Union[types])


class Body(pydantic.BaseModel):
    """Gemini's SDK has types for the parts of a body only."""

    model_config = pydantic.ConfigDict(extra="forbid")


class GenerateContent(Body):
    model: typing.Optional[str] = None
    contents: list[google.Content]
    systemInstruction: typing.Optional[google.Content] = None
    tools: typing.Optional[list[google.Tool]] = None
    toolConfig: typing.Optional[google.ToolConfig] = None
    safetySettings: typing.Optional[list[google.SafetySetting]] = None
    generationConfig: typing.Optional[google.GenerationConfig] = None
    cachedContent: typing.Optional[str] = None


class CountTokens(Body):
    generateContentRequest: GenerateContent


class EmbedContent(Body):
    model: str
    content: google.Content
    outputDimensionality: typing.Optional[int] = None
    taskType: typing.Optional[str] = None
    title: typing.Optional[str] = None


class BatchEmbedContents(Body):
    requests: list[EmbedContent]


TYPES = {
    "anthropic": typed(
        message_create_params.MessageCreateParamsNonStreaming, message_create_params.MessageCreateParamsStreaming
    ),
    "anthropic count": typed(message_count_tokens_params.MessageCountTokensParams),
    "chat": typed(
        completion_create_params.CompletionCreateParamsNonStreaming,
        completion_create_params.CompletionCreateParamsStreaming,
    ),
    "responses": typed(
        response_create_params.ResponseCreateParamsNonStreaming, response_create_params.ResponseCreateParamsStreaming
    ),
    "responses count": typed(input_token_count_params.InputTokenCountParams),
    "gemini": typed(GenerateContent),
    "gemini count": typed(CountTokens),
    "gemini vectors": typed(BatchEmbedContents),
    "openai vectors": typed(embedding_create_params.EmbeddingCreateParams),
    "anthropic answer": typed(anthropic.Message),
    "chat answer": typed(chat.ChatCompletion),
    "responses answer": typed(responses.Response),
    "gemini answer": typed(google.GenerateContentResponse),
    "anthropic event": typed(anthropic.RawMessageStreamEvent),
    "chat event": typed(chat.ChatCompletionChunk),
    "responses event": typed(responses.ResponseStreamEvent),
    "gemini event": typed(google.GenerateContentResponse),
}


def problem(kind, body):
    adapter = TYPES[kind]
    try:
        read = adapter.validate_python(body)
    except pydantic.ValidationError as error:
        # A union has an error for each of its types: those of the type that fits best are the deepest.
        errors = sorted(error.errors(), key=lambda error: -len(error["loc"]))
        return "\n".join(f"  {' . '.join(str(part)[:40] for part in error['loc'])}: {error['msg']}" for error in errors[:4])
    written = json.loads(adapter.dump_json(read, warnings=False, by_alias=True, exclude_unset=True))
    if written != body:
        return f"  written again it is {json.dumps(written)}"


count = 0
for line in sys.stdin:
    case = json.loads(line)
    count += 1
    if found := problem(case["type"], case["body"]):
        problem_of_case = f"{case['type']}: {case['name']}\n{found}\n  {json.dumps(case['body'])}"
        print(json.dumps({"name": case["name"], "problem": problem_of_case}))
print(count)
