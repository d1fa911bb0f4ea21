"""all-MiniLM-L6-v2 with mean pooling and normalisation as one ONNX file, made once for MODE=tuned.

usage: ONNX_FILE=minilm.onnx python onnx_model.py
"""

import os

from library import model_dir


def onnx_file() -> str:
    return os.environ["ONNX_FILE"]


def export() -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    class Sentence(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = AutoModel.from_pretrained(model_dir(), attn_implementation="eager")

        def forward(self, input_ids, attention_mask):
            hidden = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            weight = attention_mask.unsqueeze(-1).to(hidden.dtype)
            return torch.nn.functional.normalize((hidden * weight).sum(1) / weight.sum(1), dim=1)

    sample = AutoTokenizer.from_pretrained(model_dir())(["hello", "a longer example"], padding=True, return_tensors="pt")
    torch.onnx.export(
        Sentence().eval(),
        (sample["input_ids"], sample["attention_mask"]),
        onnx_file(),
        input_names=["input_ids", "attention_mask"],
        output_names=["embedding"],
        dynamic_axes={name: {0: "batch", 1: "tokens"} for name in ("input_ids", "attention_mask")},
        opset_version=17,
        dynamo=False,
    )


if __name__ == "__main__":
    export()
