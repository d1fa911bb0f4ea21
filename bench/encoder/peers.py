"""One peer, measured in a process of its own: peers.py NAME MODEL_FOLDER WORK_FOLDER THREADS SECONDS

Prints one JSON object: sentences per second for each workload (the better of batch 1, padded batch 32 in the
order of arrival, and padded batch 32 sorted by length) and the latency of one 16-token prompt. Texts are
tokenized beforehand for everyone: this measures encoders, not tokenizers.
"""
import json
import os
import statistics
import sys
import time
from pathlib import Path

NAME, MODEL, WORK, THREADS, SECONDS = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
os.environ["OMP_NUM_THREADS"] = str(THREADS)
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np  # noqa: E402


def pad(sequences):
    width = max(map(len, sequences))
    ids = np.zeros((len(sequences), width), np.int64)
    mask = np.zeros((len(sequences), width), np.int64)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    return ids, mask


def sentence_module():
    import torch
    from transformers import AutoModel

    class Sentence(torch.nn.Module):
        def __init__(self, attention):
            super().__init__()
            self.model = AutoModel.from_pretrained(MODEL, attn_implementation=attention)

        def forward(self, input_ids, attention_mask):
            hidden = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            weight = attention_mask.unsqueeze(-1).to(hidden.dtype)
            return torch.nn.functional.normalize((hidden * weight).sum(1) / weight.sum(1), dim=1)

    return Sentence


def torch_peer(dtype):
    import torch

    torch.set_num_threads(THREADS)
    module = sentence_module()("sdpa").eval().to(getattr(torch, dtype))

    def run(ids, mask):
        with torch.inference_mode():
            return module(torch.from_numpy(ids), torch.from_numpy(mask)).float().numpy()

    return run


def export(path):
    import torch

    if path.exists():
        return
    module = sentence_module()("eager").eval()
    sample = (torch.ones(2, 8, dtype=torch.int64), torch.ones(2, 8, dtype=torch.int64))
    torch.onnx.export(module, sample, str(path), input_names=["input_ids", "attention_mask"], output_names=["embedding"],
                      dynamic_axes={name: {0: "batch", 1: "tokens"} for name in ("input_ids", "attention_mask")},
                      opset_version=17, dynamo=False)


def ort_file(int8):
    plain, fused, quantized = WORK / "minilm.onnx", WORK / "minilm-fused.onnx", WORK / "minilm-int8.onnx"
    export(plain)
    if not fused.exists():
        from onnxruntime.transformers import optimizer
        optimizer.optimize_model(str(plain), model_type="bert", num_heads=12, hidden_size=384).save_model_to_file(str(fused))
    if int8 and not quantized.exists():
        from onnx import TensorProto
        from onnxruntime.quantization import QuantType, quantize_dynamic
        quantize_dynamic(str(fused), str(quantized), weight_type=QuantType.QInt8,
                         extra_options={"DefaultTensorType": TensorProto.FLOAT})  # fused nodes have no inferred type
    return quantized if int8 else fused


def ort_peer(int8):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(str(ort_file(int8)), options, providers=["CPUExecutionProvider"])
    return lambda ids, mask: session.run(None, {"input_ids": ids, "attention_mask": mask})[0]


def openvino_peer(precision):
    import openvino

    plain = WORK / "minilm.onnx"
    export(plain)
    core = openvino.Core()
    settings = {"INFERENCE_NUM_THREADS": THREADS, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision}
    request = core.compile_model(str(plain), "CPU", settings).create_infer_request()
    return lambda ids, mask: request.infer({"input_ids": ids, "attention_mask": mask})[0]


def openvino_int8_peer():
    import nncf
    import openvino

    plain, quantized = WORK / "minilm.onnx", WORK / "minilm-nncf.xml"
    export(plain)
    core = openvino.Core()
    if not quantized.exists():
        samples = json.loads((WORK / "workloads.json").read_text())["mixed"]
        data = nncf.Dataset([dict(zip(("input_ids", "attention_mask"), pad([s]))) for s in samples])
        model = nncf.quantize(core.read_model(str(plain)), data, model_type=nncf.ModelType.TRANSFORMER, subset_size=len(samples))
        openvino.save_model(model, str(quantized))
    settings = {"INFERENCE_NUM_THREADS": THREADS, "PERFORMANCE_HINT": "LATENCY"}
    request = core.compile_model(str(quantized), "CPU", settings).create_infer_request()
    return lambda ids, mask: request.infer({"input_ids": ids, "attention_mask": mask})[0]


PEERS = {
    "torch f32 (sentence-transformers)": lambda: torch_peer("float32"),
    "torch bf16": lambda: torch_peer("bfloat16"),
    "ONNX Runtime f32": lambda: ort_peer(False),
    "ONNX Runtime int8": lambda: ort_peer(True),
    "OpenVINO f32": lambda: openvino_peer("f32"),
    "OpenVINO bf16": lambda: openvino_peer("bf16"),
    "OpenVINO int8": openvino_int8_peer,
}


def rate(run, batches, sentences):
    for ids, mask in batches:  # every shape once, so that compiling for a shape is not measured
        run(ids, mask)
    best = 0.0
    end = time.perf_counter() + SECONDS
    while True:
        start = time.perf_counter()
        for ids, mask in batches:
            run(ids, mask)
        stop = time.perf_counter()
        best = max(best, sentences / (stop - start))
        if stop > end:
            return best


def main():
    run = PEERS[NAME]()
    workloads = json.loads((WORK / "workloads.json").read_text())
    out = {"name": NAME, "threads": THREADS, "rates": {}}
    for name, sequences in workloads.items():
        ordered = sorted(sequences, key=len)
        ways = {
            "batch 1": [pad([s]) for s in sequences],
            "batch 32": [pad(sequences[i : i + 32]) for i in range(0, len(sequences), 32)],
            "batch 32 sorted": [pad(ordered[i : i + 32]) for i in range(0, len(ordered), 32)],
        }
        out["rates"][name] = {way: rate(run, batches, len(sequences)) for way, batches in ways.items()}
    one = pad([workloads["tokens16"][0]])
    times = []
    for _ in range(300):
        start = time.perf_counter()
        run(*one)
        times.append(1e3 * (time.perf_counter() - start))
    out["latency_ms"] = statistics.median(times[50:])
    reference = WORK / "reference.npy"
    vectors = np.concatenate([run(*pad([s])) for s in workloads["mixed"]])
    if NAME.startswith("torch f32") and not reference.exists():
        np.save(reference, vectors)
    if reference.exists():
        cosines = (vectors * np.load(reference)).sum(1) / np.linalg.norm(vectors, axis=1)
        out["cosine_min"] = float(cosines.min())
    print(json.dumps(out))


if __name__ == "__main__":
    main()
