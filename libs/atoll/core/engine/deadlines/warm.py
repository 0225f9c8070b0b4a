"""Runs every kernel of the book once, so that a leader never compiles one."""

from atoll.core.engine.deadlines.book import Book
from atoll.core.engine.deadlines.terms import DeadlineJob, Taken

_SIZES = ((1, 1.0), (2, 1.8))


def warm_book() -> None:
    """Admit, refuse, lend, run and withdraw jobs in a small book."""
    book = Book(2, taken=[Taken(50, 60, 1)])
    book.admit(DeadlineJob(1, 1_000, _SIZES, 100.0, cost=1), 0)
    book.lend(0)
    book.begin(0)
    book.admit(DeadlineJob(2, 30, ((1, 1.0),), 20.0), 5)
    book.admit(DeadlineJob(3, 30, _SIZES, 500.0), 5)
    book.restore(DeadlineJob(4, 900, _SIZES, 10.0), 6, devices=1, since=5)
    book.renew(6)
    book.withdraw(2, 6)
    now = book.next_time(6)
    book.finish(now)
    book.free_at(now)
