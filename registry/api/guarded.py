"""A Flask whose routes each name an action of the policy, and which asks the policy before any view runs."""

from collections.abc import Callable
from typing import Any

from flask import Flask, g, request
from werkzeug.exceptions import HTTPException

from manifests.errors import NotFound, RegistryRefused, SpmError, UsageError
from registry.api.problems import Problem, internal_problem, problem_of
from registry.services.policy import ALLOWED, ANYONE, Action, Caller, Role, require

Authenticate = Callable[[str], Caller]


class GuardedFlask(Flask):
    """Refuses to register a route without an action, so that nothing can be open by oversight."""

    def __init__(self, import_name: str, authenticate: Authenticate) -> None:
        self.actions: dict[str, Action] = {}
        self._authenticate = authenticate
        super().__init__(import_name, static_folder=None)
        self.before_request(self._guard)
        self.register_error_handler(Exception, _answer_error)

    def add_url_rule(
        self,
        rule: str,
        endpoint: str | None = None,
        view_func: Any = None,
        provide_automatic_options: bool | None = None,
        **options: Any,
    ) -> None:
        """Add a route; `action` is required and `OPTIONS` is never answered by itself."""
        action = options.pop("action", None)
        if not isinstance(action, Action):
            raise TypeError(f"the route {rule} names no action of registry.services.policy")
        name = endpoint or view_func.__name__
        if self.actions.setdefault(name, action) is not action:
            raise TypeError(f"the endpoint {name} has two actions")
        super().add_url_rule(rule, endpoint, view_func, provide_automatic_options=False, **options)

    def _guard(self) -> None:
        # Without an endpoint, routing failed: Flask raises its 404 or 405 next.
        if request.endpoint is None:
            return
        action = self.actions[request.endpoint]
        # What is open to all looks at no token: a stale one must not keep anybody from reading.
        g.caller = ANYONE if action in ALLOWED[Role.ANONYMOUS] else self._caller()
        require(g.caller, action)

    def _caller(self) -> Caller:
        header = request.headers.get("Authorization")
        return ANYONE if header is None else self._authenticate(header)


def caller() -> Caller:
    """Return who is asking; the guard has let them through."""
    found: Caller = g.caller
    return found


def _answer_error(error: Exception) -> Any:
    problem = _problem(error)
    return problem.body, problem.status, list(problem.headers)


def _problem(error: Exception) -> Problem:
    if isinstance(error, SpmError):
        return problem_of(error)
    if isinstance(error, HTTPException):
        return _routing_problem(error)
    return internal_problem(error, method=request.method, path=request.path)


def _routing_problem(error: HTTPException) -> Problem:
    path = f"{ascii(request.path)[1:-1]:.200}"
    if error.code == 404:
        return problem_of(NotFound(f"there is nothing at `{path}`"))
    if error.code == 405:
        allowed = sorted(getattr(error, "valid_methods", None) or ())
        refused = RegistryRefused(f"`{path}` does not take {request.method}", reason="method", allow=allowed)
        return problem_of(refused, ("Allow", ", ".join(allowed)))
    return problem_of(UsageError(f"the request is refused: {error.description}"))
