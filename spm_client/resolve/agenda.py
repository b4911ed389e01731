"""Which plugin to decide next. Decides none, and knows no incompatibility.

Those with one choice left come first, then those that conflicts were about most often, then those that nothing still
open may put a range on: otherwise the newest would be taken of one, and cost the other its own newest.
"""

from collections.abc import Collection, Iterable
from heapq import heappop, heappush

from manifests.names import PluginName
from spm_client.resolve.incompatibility import ABSENT
from spm_client.resolve.partial_solution import PartialSolution

Place = tuple[bool, int, bool, bool, int, PluginName, int]
"""Where a plugin stands in the order, smallest first."""


class Agenda:
    """The plugins that are required and not yet decided. Offer a plugin when its choices have changed."""

    def __init__(self, solution: PartialSolution, asked: Collection[PluginName]) -> None:
        self._solution = solution
        self._asked = asked
        self._names: list[PluginName] = []
        self._is_decided: list[bool] = []
        self._conflicts: list[int] = []
        self._bounded_by: dict[PluginName, list[int]] = {}
        self._open: list[Place] = []

    def add_plugin(self, name: PluginName) -> None:
        self._names.append(name)
        self._is_decided.append(False)
        self._conflicts.append(0)

    def may_bound(self, plugin: int, others: Iterable[PluginName]) -> None:
        """Note that some release of a plugin puts a range on the others."""
        for other in others:
            self._bounded_by.setdefault(other, []).append(plugin)

    def count_conflict(self, plugin: int) -> None:
        self._conflicts[plugin] += 1

    def settle(self, plugin: int) -> None:
        self._is_decided[plugin] = True

    def reopen(self, plugin: int) -> None:
        self._is_decided[plugin] = False
        self.offer(plugin)

    def offer(self, plugin: int) -> None:
        place = self._place(plugin)
        if place is not None:
            heappush(self._open, place)

    def next(self) -> int | None:
        """Return the plugin to decide now; None where nothing is open."""
        while self._open:
            offered = heappop(self._open)
            place = self._place(offered[-1])
            if place is None:
                continue
            if place <= offered:
                return offered[-1]
            # What it was offered by has changed since; it goes to where it stands now.
            heappush(self._open, place)
        return None

    def _place(self, plugin: int) -> Place | None:
        """Return where a plugin stands; None where there is nothing to decide."""
        left = self._solution.left[plugin]
        if left & ABSENT or self._is_decided[plugin]:
            return None
        width = left.bit_count()
        name = self._names[plugin]
        waits = width > 1 and self._may_be_bounded(name)
        return (width > 1, -self._conflicts[plugin], waits, name not in self._asked, width, name, plugin)

    def _may_be_bounded(self, name: PluginName) -> bool:
        left, is_decided = self._solution.left, self._is_decided
        return any(
            not left[other] & ABSENT and not is_decided[other] and left[other].bit_count() > 1
            for other in self._bounded_by.get(name, ())
        )
