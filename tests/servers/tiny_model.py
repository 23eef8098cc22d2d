"""`python tiny_model.py DIR`: write a model directory that real servers load: random weights, a tokenizer of the real
format, nothing downloaded. Runs in a server's own environment, which has numpy, safetensors and tokenizers.
"""

import json
import re
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

HIDDEN, FFN, LAYERS, HEADS, KV_HEADS, HEAD_DIM = 256, 512, 2, 4, 2, 64
CONTEXT_TOKENS = 4096
END = "<|im_end|>"
SPECIAL = ["<|endoftext|>", "<|im_start|>", END]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    vocab = write_tokenizer(folder, corpus())
    write_config(folder, vocab)
    save_file(weights(vocab, np.random.default_rng(0)), folder / "model.safetensors", metadata={"format": "pt"})


def corpus() -> list[str]:
    """The words of the collector's prompts (read as text: the collector is not installed here) become single tokens."""
    prompts = Path(__file__).parents[2] / "collect" / "prompts.py"
    found = re.search(r'_TEXT: Final = """(.*?)"""', prompts.read_text("utf-8"), re.DOTALL)
    assert found is not None
    return found.group(1).split()


def write_tokenizer(folder: Path, words: list[str]) -> int:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=2048,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([" ".join(words)], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    described = {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": CONTEXT_TOKENS, "bos_token": None,
        "eos_token": END, "pad_token": "<|endoftext|>", "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(described, indent=2))
    return tokenizer.get_vocab_size()


def write_config(folder: Path, vocab: int) -> None:
    end = SPECIAL.index(END)
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": FFN,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM, "vocab_size": vocab, "max_position_embeddings": CONTEXT_TOKENS, "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": True, "torch_dtype": "float16",
        "attention_bias": False, "mlp_bias": False, "bos_token_id": None, "eos_token_id": end,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": end}))


def weights(vocab: int, random: np.random.Generator) -> dict[str, np.ndarray]:
    def matrix(rows: int, columns: int) -> np.ndarray:
        return (random.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float16)

    ones = np.ones(HIDDEN, np.float16)
    embedding = matrix(vocab, HIDDEN)
    embedding[: len(SPECIAL)] = 0  # the output matrix is the same one: the model seldom ends by itself
    found = {"model.embed_tokens.weight": embedding, "model.norm.weight": ones}
    for number in range(LAYERS):
        layer = f"model.layers.{number}."
        found |= {
            f"{layer}self_attn.q_proj.weight": matrix(HEADS * HEAD_DIM, HIDDEN),
            f"{layer}self_attn.k_proj.weight": matrix(KV_HEADS * HEAD_DIM, HIDDEN),
            f"{layer}self_attn.v_proj.weight": matrix(KV_HEADS * HEAD_DIM, HIDDEN),
            f"{layer}self_attn.o_proj.weight": matrix(HIDDEN, HEADS * HEAD_DIM),
            f"{layer}mlp.gate_proj.weight": matrix(FFN, HIDDEN),
            f"{layer}mlp.up_proj.weight": matrix(FFN, HIDDEN),
            f"{layer}mlp.down_proj.weight": matrix(HIDDEN, FFN),
            f"{layer}input_layernorm.weight": ones,
            f"{layer}post_attention_layernorm.weight": ones,
        }
    return found


if __name__ == "__main__":
    main()
