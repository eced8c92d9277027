"""A second resolver, written from the ten lines of docs/index.md and nothing else of qnn-forge, on plain JSON."""

from __future__ import annotations

import re
from typing import Any

Json = dict[str, Any]
ORDER = ["fp16", "mixed", "w8a16", "w8a8", "w4a16"]


def plain(name: str) -> str:
    name = re.sub(r"®|™|\((r|tm)\)", "", name.lower()).strip()
    while shorter := re.fullmatch(r"(?:qualcomm|snapdragon|dragonwing)[\s_-]*(.+)", name):
        name = shorter[1]
    return re.sub(r"[\s_-]", "", name)


def chip(table: Json, name: str) -> Json | None:
    if number := re.fullmatch(r"soc_id:(\d+)", name):
        return next((row for row in table["chips"] if row["soc_id"] == int(number[1])), None)
    if number := re.fullmatch(r"soc0:(\d+)", name):
        return next((row for row in table["chips"] if int(number[1]) in row.get("linux_soc0", [])), None)
    if name.isdigit():
        return None
    wanted = [plain(name)] + ([plain(name)[:-1]] if re.search(r"[0-9][pqPQ]$", name) else [])
    without = {plain(other) for row in table["without_htp"] for other in [row["name"], *row.get("aliases", [])]}
    for one in wanted:
        for keys in (["aliases", "ro_soc_model"], ["marketing"]):
            found = []
            for row in table["chips"]:
                own = [row["name"]] if "aliases" in keys else []
                if one in map(plain, own + [other for key in keys for other in row.get(key, [])]):
                    found.append(row)
            if found:
                return found[0] if len(found) == 1 else None
        if one in without:
            return None
    return None


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def answer(documents: Json, ask: Json) -> tuple[str, str | None]:  # noqa: C901, PLR0911 - as many as the prose has
    device = chip(documents["v1/chips.json"], ask["soc"])
    model = documents.get(f"v1/models/{ask['model']}.json")
    if device is None or model is None:
        return "no", None
    document = documents.get(f"v1/models/{ask['model']}/{ask['version'] or model['latest']}.json")
    if document is None:
        return "no", None
    variants = document["variants"]
    if not ask.get("bucket") and len({variant["bucket"] for variant in variants}) > 1:
        return "no", None
    variants = [variant for variant in variants if ask.get("bucket") in (None, variant["bucket"])]
    variants = [variant for variant in variants if ask.get("precision") in (None, variant["precision"])]
    variants = [one for one in variants if device["fp16"] or one["precision"] not in ("fp16", "mixed")]
    if not variants:
        return "no", None

    def own(file: Json) -> bool:
        return bool(file["soc_id"] == device["soc_id"])

    def loads(file: Json) -> bool:
        small = file["vtcm_mb"] <= device["vtcm_mb"] and file["hvx_threads"] <= device["hvx_threads"]
        return own(file) or (file["arch"] == device["arch"] and small)

    files = [(one["precision"], file) for one in variants for file in one["files"] if loads(file)]
    if not files:
        return "build it", None
    if ask.get("runtime"):
        runtime = numbers(ask["runtime"])
        files = [one for one in files if numbers(one[1]["minimum_runtime"])[: len(runtime)] <= runtime]
        if not files:
            return ("build it" if runtime[:2] >= [2, 48] else "no"), None
    revision = ask.get("revision")
    files = [one for one in files if revision in (None, one[1]["revision"])]
    if not (revision and ask.get("allow_yanked")):
        files = [one for one in files if "yanked" not in one[1]]
    if not files:
        return "no", None

    def rank(one: tuple[str, Json]) -> tuple[Any, ...]:
        precision, file = one
        place = ORDER.index(precision) if precision in ORDER else len(ORDER)
        newest = [-number for number in numbers(file["qairt"])]
        size = (-file["vtcm_mb"], -file["hvx_threads"])
        return not own(file), place, precision, *size, newest, -file["revision"], file["soc_id"]

    best = min(files, key=rank)[1]
    return ("use" if own(best) and "yanked" not in best else "use with a warning"), best["name"]
