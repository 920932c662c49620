"""Serves models by the HTTP server of llama.cpp until its input ends: for texts, for calls of tools and for vectors.

Writes the addresses into a file, a line each.

    python3 serve.py random.gguf calls.gguf addresses
"""

import os
import sys

import xllamacpp


def serve(model, vectors=False):
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {"random"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = ["sk-hunter2-hunter2"]
    params.n_parallel = 2
    params.n_ctx = 2048
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.use_jinja = True
    if vectors:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    return xllamacpp.Server(params)


texts, calls, addresses = sys.argv[1:]
servers = [serve(texts), serve(calls), serve(texts, vectors=True)]
with open(addresses + ".part", "w") as file:
    file.writelines(f"{server.listening_address}\n" for server in servers)
os.rename(addresses + ".part", addresses)
sys.stdin.read()
