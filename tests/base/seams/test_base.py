"""What is replaced in another library is there again afterwards, whatever happens in between."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from onnxsmith.base.seams.base import added, private, replaced


class Parent:
    """Has what a child inherits."""

    def inherited(self) -> str:
        return "theirs"


class Child(Parent):
    """Inherits it."""


def test_what_stood_there_is_put_back() -> None:
    owner = SimpleNamespace(name="theirs")
    with replaced(owner, "name", "ours"):
        assert owner.name == "ours"
    assert vars(owner) == {"name": "theirs"}


def test_it_is_put_back_after_an_error() -> None:
    owner = SimpleNamespace(name="theirs")
    with pytest.raises(RuntimeError), replaced(owner, "name", "ours"):
        raise RuntimeError
    assert owner.name == "theirs"


def test_what_is_inherited_is_inherited_again() -> None:
    with replaced(Child, "inherited", lambda _: "ours"):
        assert Child().inherited() == "ours"
    assert "inherited" not in vars(Child)
    assert Child().inherited() == "theirs"


def test_a_name_that_is_gone_stays_gone_unless_it_is_to_be_made() -> None:
    owner = SimpleNamespace()
    with replaced(owner, "name", "ours"):
        assert not vars(owner)
    with replaced(owner, "name", "ours", create=True):
        assert owner.name == "ours"
    assert not vars(owner)


def test_entries_of_a_table_come_and_go() -> None:
    table = {"kept": 1, "changed": 2}
    with added(table, {"changed": 3, "new": 4}):
        assert table == {"kept": 1, "changed": 3, "new": 4}
    assert table == {"kept": 1, "changed": 2}


def test_a_second_thread_waits_until_the_first_has_put_back() -> None:
    owner = SimpleNamespace(name="theirs")
    first_in, first_may_end, seen = threading.Event(), threading.Event(), []

    def first() -> None:
        with replaced(owner, "name", "first"):
            first_in.set()
            first_may_end.wait(10)

    def second() -> None:
        first_in.wait(10)
        threading.Timer(0.1, first_may_end.set).start()
        with replaced(owner, "name", "second"):
            seen.append(owner.name)

    threads = [threading.Thread(target=one) for one in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert seen == ["second"]
    assert owner.name == "theirs"


def test_one_thread_may_replace_as_often_as_it_likes() -> None:
    owner = SimpleNamespace(name="theirs")
    with replaced(owner, "name", "outer"):
        with replaced(owner, "name", "inner"):
            assert owner.name == "inner"
        assert owner.name == "outer"
    assert owner.name == "theirs"


@pytest.mark.parametrize("path", ["no_such_package:name", "json:no_such_name", "json:dumps.no_such_name"])
def test_a_private_name_that_is_gone_is_none(path: str) -> None:
    assert private(path) is None
    assert private("json:dumps") is not None
