"""Which files are code, and in which language: by extension, and by the word after a fence."""

from __future__ import annotations

CODE_LANGUAGES = {
    "py": "python", "pyi": "python", "js": "javascript", "mjs": "javascript", "cjs": "javascript", "jsx": "jsx",
    "ts": "typescript", "mts": "typescript", "cts": "typescript", "tsx": "tsx", "go": "go", "rs": "rust",
    "java": "java", "kt": "kotlin", "kts": "kotlin", "scala": "scala", "swift": "swift", "rb": "ruby", "php": "php",
    "c": "c", "h": "c", "cc": "cpp", "cpp": "cpp", "cxx": "cpp", "hpp": "cpp", "hh": "cpp", "cs": "csharp",
    "m": "objectivec", "lua": "lua", "ex": "elixir", "exs": "elixir", "erl": "erlang", "elm": "elm", "ml": "ocaml",
    "mli": "ocaml", "hs": "haskell", "clj": "clojure", "dart": "dart", "zig": "zig", "sol": "solidity",
    "sh": "bash", "bash": "bash", "zsh": "bash", "fish": "fish", "ps1": "powershell", "sql": "sql", "r": "r",
    "jl": "julia", "pl": "perl", "pm": "perl", "css": "css", "scss": "scss", "less": "less", "html": "html",
    "vue": "vue", "svelte": "svelte", "json": "json", "yaml": "yaml", "yml": "yaml", "toml": "toml", "xml": "xml",
    "proto": "protobuf", "tf": "hcl", "tfvars": "hcl", "hcl": "hcl", "nix": "nix", "gradle": "groovy",
}  # fmt: skip
"""Extensions of code files and the language they mean; the extension stays in the slug."""

FENCE_LANGUAGES = {
    "golang": "go", "rust": "rust", "shell": "bash", "console": "bash", "c++": "cpp", "c#": "csharp", "py3": "python",
    "python3": "python", "node": "javascript", "yml": "yaml", "rb": "ruby", "kt": "kotlin",
}  # fmt: skip
"""Words after a fence that mean a language by another name than its extension."""

LANGUAGE_CHARACTERS_MAX = 32


def code_language(path: str) -> str:
    """The language of a code file, by the extension of its path or slug; empty when it is a page."""
    name = path.rpartition("/")[2]
    _, dot, extension = name.rpartition(".")
    return CODE_LANGUAGES.get(extension.lower(), "") if dot and name[0] != "." else ""


def fence_language(info: str) -> str:
    """The language a fence names, under its usual name; other words are kept as written, in lower case."""
    word = info.strip().lower().partition(" ")[0].partition("{")[0].strip(",:;{}.")[:LANGUAGE_CHARACTERS_MAX]
    return FENCE_LANGUAGES.get(word) or CODE_LANGUAGES.get(word) or word
