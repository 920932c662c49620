"""Writes a tiny model of random weights as GGUF: two layers, and a vocabulary of bytes.

Its output is noise, but the engine treats it like any model: templates, grammars, sampling and token counts are real.
With a bias, it opens a call of a tool wherever the grammar allows it.

    python3 model.py random.gguf [bias]
"""

import sys

import gguf
import numpy as np

WIDTH, LAYERS, HEADS, FEED, CONTEXT = 64, 2, 4, 128, 1024
# The engine derives the form of a call from the template, which has to show tools.
TEMPLATE = """{%- if tools %}<|im_start|>system
Tools are in <tools></tools>:
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools>
A call is in <tool_call></tool_call>:
<tool_call>{"name": "<name>", "arguments": {}}</tool_call><|im_end|>
{%- endif %}
{%- for message in messages %}
<|im_start|>{{ message.role }}
{%- if message.content %}
{{ message.content }}
{%- endif %}
{%- for call in message.tool_calls or [] %}
<tool_call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</tool_call>
{%- endfor %}<|im_end|>
{%- endfor %}
{%- if add_generation_prompt %}
<|im_start|>assistant
{% endif %}"""


def byte_letters():
    """The letters by which GPT-2 writes bytes that are not printable."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in plain]
    letters = {byte: chr(byte) for byte in plain} | {byte: chr(256 + at) for at, byte in enumerate(rest)}
    return [letters[byte] for byte in range(256)]


# Each is one token.
marks = ["<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"]
tokens = byte_letters() + ["he", "in"] + marks
start, end = tokens.index("<|im_start|>"), tokens.index("<|im_end|>")
types = [gguf.TokenType.NORMAL] * (len(tokens) - 4) + [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.USER_DEFINED] * 2

out = gguf.GGUFWriter(sys.argv[1], "llama")
out.add_name("random")
out.add_context_length(CONTEXT)
out.add_embedding_length(WIDTH)
out.add_block_count(LAYERS)
out.add_feed_forward_length(FEED)
out.add_head_count(HEADS)
out.add_head_count_kv(HEADS)
out.add_layer_norm_rms_eps(1e-5)
out.add_rope_dimension_count(WIDTH // HEADS)
out.add_vocab_size(len(tokens))
out.add_tokenizer_model("gpt2")
out.add_tokenizer_pre("default")
out.add_token_list(tokens)
out.add_token_types(types)
out.add_token_merges(["h e", "i n"])
out.add_eos_token_id(end)
out.add_bos_token_id(start)
out.add_add_bos_token(False)
out.add_chat_template(TEMPLATE)

random = np.random.default_rng(7)


def weights(*shape):
    return (random.standard_normal(shape) * shape[-1] ** -0.5).astype(np.float32)


def without_first(tensor):
    """Leaves the first channel of the state as it is."""
    tensor[0] = 0
    return tensor


# The first channel of the state is constant, so that its weight in the output is a bias of the token.
state, output = weights(len(tokens), WIDTH), weights(len(tokens), WIDTH)
state[:, 0], output[:, 0] = 1, 0
# Grammars allow whitespace between the tokens of JSON, which would fill the answer.
output[[tokens.index(letter) for letter in byte_letters()[:33]], 0] = -30
output[tokens.index("<tool_call>"), 0] = float(sys.argv[2]) if len(sys.argv) > 2 else 0
out.add_tensor("token_embd.weight", state)
out.add_tensor("output.weight", output)
out.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
for layer in range(LAYERS):
    for name in ["attn_norm", "ffn_norm"]:
        out.add_tensor(f"blk.{layer}.{name}.weight", np.ones(WIDTH, np.float32))
    for name in ["attn_q", "attn_k", "attn_v"]:
        out.add_tensor(f"blk.{layer}.{name}.weight", weights(WIDTH, WIDTH))
    out.add_tensor(f"blk.{layer}.attn_output.weight", without_first(weights(WIDTH, WIDTH)))
    out.add_tensor(f"blk.{layer}.ffn_gate.weight", weights(FEED, WIDTH))
    out.add_tensor(f"blk.{layer}.ffn_up.weight", weights(FEED, WIDTH))
    out.add_tensor(f"blk.{layer}.ffn_down.weight", without_first(weights(WIDTH, FEED)))
out.write_header_to_file()
out.write_kv_data_to_file()
out.write_tensors_to_file()
out.close()
