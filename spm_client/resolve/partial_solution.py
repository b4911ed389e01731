"""What the solver knows so far: of each plugin the choices left, and the assignments that narrowed them.

Decides nothing. An assignment is a decision (it has no cause, and begins a level) or a derivation (its cause is the
incompatibility that left no other way).
"""

from spm_client.resolve.incompatibility import EVERYTHING, Incompatibility


class PartialSolution:
    """Assignments in the order in which they were made, undone level by level."""

    def __init__(self) -> None:
        self.left: list[int] = []
        """Of each plugin, the choices that remain."""
        self.level = 0
        self._plugins: list[int] = []
        self._before: list[int] = []
        self._causes: list[Incompatibility | None] = []
        self._levels: list[int] = []
        self._history: list[list[tuple[int, int]]] = []

    def add_plugin(self) -> int:
        """Return the number of a plugin of which nothing is known."""
        self.left.append(EVERYTHING)
        self._history.append([])
        return len(self.left) - 1

    def decide(self, plugin: int, choice: int) -> None:
        self.level += 1
        self.derive(plugin, choice, None)

    def derive(self, plugin: int, left: int, cause: Incompatibility | None) -> None:
        """Narrow a plugin to the choices that are left by the cause."""
        self._history[plugin].append((len(self._plugins), left))
        self._plugins.append(plugin)
        self._before.append(self.left[plugin])
        self._causes.append(cause)
        self._levels.append(self.level)
        self.left[plugin] = left

    def satisfied_at(self, plugin: int, mask: int) -> int:
        """Return the index of the earliest assignment after which only choices of the mask were left; -1 for none."""
        found = -1
        for index, left in reversed(self._history[plugin]):
            if left & ~mask:
                return found
            found = index
        return found

    def level_of(self, index: int) -> int:
        return self._levels[index] if index >= 0 else 0

    def derivation(self, index: int) -> tuple[int, Incompatibility]:
        """Return the plugin that a derivation narrowed, and its cause."""
        cause = self._causes[index]
        assert cause is not None, "the earliest assignment of a level is the only decision in it"
        return self._plugins[index], cause

    def backtrack(self, level: int) -> set[int]:
        """Undo what was assigned after this level, and return the plugins that it was about."""
        undone: set[int] = set()
        while self._levels and self._levels[-1] > level:
            plugin = self._plugins.pop()
            self.left[plugin] = self._before.pop()
            self._causes.pop()
            self._levels.pop()
            self._history[plugin].pop()
            undone.add(plugin)
        self.level = level
        return undone
