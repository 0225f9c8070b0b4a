"""YAML as hostile or hurried people write it."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from atoll.api.common.v1 import common_pb2
from atoll.client.spec import job_name, parse_spec, parse_text, read_spec_file, to_proto
from atoll.client.spec.models import Spec
from atoll.client.spec.quantities import duration_s, memory_bytes
from atoll.client.spec.reader import MOST_BYTES, MOST_DEPTH, read_documents
from atoll.core.model.errors import ErrorCode, InvalidInput
from atoll.core.model.validate import check_spec
from atoll.core.model.validate_text import NAME
from atoll.wire.spec import spec_from_proto


def refusal(text: str | bytes) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        read_documents(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: &x [1]\nb: *x", "line 1: anchors and aliases are not taken"),
        ("a: !!python/object:os.system x", "line 1: tags such as"),
        ("a: !thing x", "line 1: tags such as"),
        ("a: 1\nb: 2\na: 3", "line 3: `a` is given twice"),
        ("{[1]: 2}", "line 1: a key must be a text"),
        ("a: [", "line 1:"),
        ("a: 1\n\tb: 2", "line 2:"),
        ("\x00", "special characters are not allowed"),
        (b"\xff\xfe\xff", "unacceptable character"),
    ],
)
def test_what_is_not_plain_yaml_is_refused_with_its_line(text: str | bytes, told: str) -> None:
    error = refusal(text)
    assert error.code is ErrorCode.INVALID_FIELD
    assert told in error.message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("run: " + "x" * MOST_BYTES, "a spec has at most 1,000,000"),
        ("[" * 10_000, f"more than {MOST_DEPTH} levels deep"),
        ("a: " * 1 + "{b: " * 40 + "1" + "}" * 40, f"more than {MOST_DEPTH} levels deep"),
        ("a: [" + "1," * 200_000 + "]", "more than 100,000 values"),
    ],
    ids=["bytes", "open brackets", "mappings", "values"],
)
def test_what_is_too_large_is_refused_before_it_is_built(text: str, told: str) -> None:
    error = refusal(text)
    assert error.code is ErrorCode.TOO_LARGE
    assert told in error.message


def test_a_bomb_of_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "anchors and aliases" in refusal("\n".join(lines)).message


def test_only_decimal_numbers_true_false_and_null_are_more_than_text() -> None:
    text = "[1, -2, 1.5, 012, 0x10, 1_000, 1:30, on, yes, true, null, ~, 2026-01-31, 1e3, '7']"
    (document,) = read_documents(text)
    assert document.value == [
        1, -2, 1.5, "012", "0x10", "1_000", "1:30", "on", "yes", True, None, None, "2026-01-31",
        "1e3", "7",
    ]  # fmt: skip


def test_every_document_is_a_job_and_empty_ones_are_none() -> None:
    specs = parse_text("run: a\n---\n---\nname: second\nrun: b\n", name="my file.yaml")
    assert [spec.name for spec in specs] == ["my-file.yaml", "second"]


def test_a_wrong_document_is_told_by_its_number() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_text("run: a\n---\nrunn: b\n")
    assert {v.field for v in caught.value.violations} == {"jobs[1].runn", "jobs[1].run"}


@pytest.mark.parametrize("text", ["", "---\n---\n", "# nothing\n"])
def test_an_empty_file_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is empty"):
        parse_text(text)


def test_a_hostile_spec_does_not_make_an_answer_as_long_as_itself() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_text("\n".join(f"k{n}: 1" for n in range(5_000)))
    assert len(caught.value.violations) <= 50


def test_a_file_is_read_and_gives_its_name(tmp_path: Any) -> None:
    path = tmp_path / "train.yaml"
    path.write_text("run: python train.py\n")
    (spec,) = read_spec_file(path)
    assert spec.name == "train"


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
keys = st.sampled_from(sorted(Spec.model_fields))


def attempted(read: Callable[[], Any]) -> Any:
    """What was read, or the refusal."""
    try:
        return read()
    except InvalidInput as error:
        return error


@given(st.dictionaries(keys, values, max_size=4))
def test_any_mapping_is_a_spec_or_a_refusal_that_names_fields(given_keys: dict[str, Any]) -> None:
    found = attempted(lambda: to_proto(parse_spec(given_keys), now=0.0))
    wrong = found.violations if isinstance(found, InvalidInput) else ()
    assert isinstance(found, common_pb2.JobSpec) or wrong
    assert all(violation.field and violation.message for violation in wrong)


@given(st.text(max_size=200))
def test_any_text_is_specs_or_a_refusal(text: str) -> None:
    found = attempted(lambda: parse_text(text))
    assert found.violations if isinstance(found, InvalidInput) else found


plain = st.booleans() | st.integers(-(10**17), 10**17) | st.text(max_size=12)
documents = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(documents)
def test_what_yaml_writes_is_read_as_it_was(value: Any) -> None:
    (document,) = read_documents(yaml.safe_dump(value))
    assert document.value == value


accelerators = st.one_of(
    st.builds("{}:{}".format, st.sampled_from(["H100", "A100", "T4"]), st.integers(1, 8)),
    st.builds(lambda blocks: f"H100:{blocks / 100:.2f}", st.integers(1, 100)),
    st.integers(1, 8),
)


@given(
    st.fixed_dictionaries(
        {"run": st.just("true"), "name": st.from_regex(r"\A[a-z][a-z0-9-]{0,20}\Z")},
        optional={
            "num_nodes": st.integers(1, 16_384),
            "envs": st.dictionaries(
                st.from_regex(r"\A[A-Z_]{1,8}\Z"),
                st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
            ),
            "resources": st.fixed_dictionaries(
                {},
                optional={
                    "accelerators": accelerators,
                    "cpus": st.integers(1, 1_000_000),
                    "memory": st.builds("{}MiB".format, st.integers(1, 1 << 28)),
                },
            ),
            "time_limit": st.integers(1, 10 * 366 * 86_400),
            "ports": st.lists(st.integers(1, 65_535), unique=True, max_size=8),
            "retries": st.integers(0, 1000),
        },
    )
)
def test_what_the_client_accepts_keeps_the_servers_rules(given_keys: dict[str, Any]) -> None:
    proto = to_proto(parse_spec(given_keys), now=0.0)
    assert check_spec(spec_from_proto(proto), at="", profiles=()) == []


@given(st.integers(1, 99))
def test_every_whole_percent_is_a_share(blocks: int) -> None:
    spec = parse_spec({"run": "x", "resources": {"accelerators": f"H100:{blocks / 100}"}})
    assert spec.resources.accelerators is not None
    assert spec.resources.accelerators.blocks == blocks


@given(st.integers(1, 1 << 38))
def test_bytes_are_read_exactly(count: int) -> None:
    assert memory_bytes(f"{count}B") == count
    assert memory_bytes(f"{count}KiB" if count < 1 << 30 else f"{count}B") in (count, count << 10)


@given(st.integers(0, 300), st.integers(0, 23), st.integers(0, 59), st.integers(1, 59))
def test_the_forms_of_a_length_of_time_agree(
    days: int, hours: int, minutes: int, secs: int
) -> None:
    total = ((days * 24 + hours) * 60 + minutes) * 60 + secs
    forms = (
        f"{days}d{hours}h{minutes}m{secs}s",
        f"{days}-{hours:02}:{minutes:02}:{secs:02}",
        f"{days * 24 + hours}:{minutes:02}:{secs:02}",
        total,
        f"{total}s",
    )
    assert {duration_s(form) for form in forms} == {float(total)}


@given(st.text())
def test_any_text_makes_a_name(text: str) -> None:
    assert NAME.fullmatch(job_name(text))
